"""What an engine made of a page."""

from __future__ import annotations

from dataclasses import dataclass

PAGE_SEPARATOR = "\n\n"
FAILED = "failed"
TRUNCATED = "truncated"


@dataclass(frozen=True, kw_only=True)
class ReadBlock:
    """One block of a page: its Markdown and the engine's confidence in 0..1."""

    text: str
    confidence: float


@dataclass(frozen=True, kw_only=True)
class PagePrediction:
    """What an engine read on one page (1-based number).

    `status` is that of the document JSON, or `failed` with a reason in `error`. Seconds and tokens
    are None where the engine does not say; CPU seconds are those of this process and of children
    that ended, on `threads` threads. Where `side_by_side` is over 1, that many pages were read at
    once, and both are this page's shares of the time that they took.
    """

    number: int
    markdown: str
    seconds: float | None = None
    tokens: int | None = None
    status: str = "ok"
    error: str | None = None
    blocks: tuple[ReadBlock, ...] = ()
    cpu_seconds: float | None = None
    threads: int | None = None
    side_by_side: int = 1


def failed_page(number: int, error: Exception, *, seconds: float) -> PagePrediction:
    """The page that an engine raised on."""
    return PagePrediction(
        number=number, markdown="", seconds=seconds, status=FAILED,
        error=f"{type(error).__name__}: {error}",
    )  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Prediction:
    """All pages of an item that were read, in order."""

    pages: tuple[PagePrediction, ...]

    @property
    def markdown(self) -> str:
        """Markdown of all pages."""
        return PAGE_SEPARATOR.join(page.markdown for page in self.pages)
