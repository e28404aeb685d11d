"""What passes between a run and the lanes that read for it; all of it survives pickling."""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ocria.batch.identity import Identity
from ocria.document import Page, PageFailure, Source
from ocria.errors import PageErrorCode


class Assignment(NamedTuple):
    """A document to read, or some of its pages.

    Attributes:
        key: the run's number for this assignment.
        path: the document; an absolute path that every lane can read.
        name: what to call it.
        journal: what is known of it already.
        identity: what the journal's pages must belong to, beside the content.
        numbers: the pages to read; None takes all that the journal does not hold.
        split_above: a document with more pages left than this is handed back unread, to be shared
            out; None reads it here whatever its length.
        retry_failed: pages that the journal holds as failed are read again.
        num_workers: processes that draw its pages.
    """

    key: int
    path: Path
    name: str
    journal: Path
    identity: Identity
    numbers: tuple[int, ...] | None = None
    split_above: int | None = None
    retry_failed: bool = False
    num_workers: int = 1


class Opened(NamedTuple):
    """The document is open.

    Attributes:
        key: of the assignment.
        source: what it is.
        wanted: the pages that its result will have.
        left: those that are not known yet.
        is_split: they are not read under this assignment: there are too many.
    """

    key: int
    source: Source
    wanted: tuple[int, ...]
    left: tuple[int, ...]
    is_split: bool


class PageRead(NamedTuple):
    """One page is done, well or badly.

    Attributes:
        key: of the assignment.
        page: as it was read.
        seconds: in the model.
        picture: a small JPEG of a page worth showing in the report.
        image: the upright page as PNG, for formats that show it.
    """

    key: int
    page: Page
    seconds: float
    picture: bytes | None
    image: bytes | None


class Drawn(NamedTuple):
    """All pages of the assignment are on their way to the model: who drew them is free."""

    key: int


class Finished(NamedTuple):
    """Nothing more comes of this assignment."""

    key: int


class Refused(NamedTuple):
    """The document could not be opened; nothing more comes of this assignment."""

    key: int
    code: str
    message: str


Message = Opened | PageRead | Drawn | Finished | Refused


def unread_pages(
    key: int, numbers: Iterable[int], reason: str, code: PageErrorCode = "decode_failed"
) -> Iterator[PageRead]:
    """Pages that no lane could read, as failed."""
    for number in sorted(numbers):
        failure = PageFailure(code=code, message=reason)
        page = Page(number=number, width_pt=0.0, height_pt=0.0, status="failed", error=failure)
        yield PageRead(key, page, 0.0, None, None)


def journal_header(source: Source, identity: Identity) -> Mapping[str, Any]:
    """What the pages of a journal belong to: content, settings and model, whatever its name."""
    return {
        "sha256": source.sha256,
        "media_type": source.media_type,
        "num_pages": source.num_pages,
        "settings": identity.settings,
        "model": identity.model,
    }
