"""What is said about a document at its end: pages in trouble, one summary line, figures."""

import time
from dataclasses import dataclass, field

from ocria.console import counted, event_line
from ocria.document import Page
from ocria.errors import ExitCode

TROUBLE = frozenset({"failed", "truncated"})
# Below this, most of a page's words are wrong more often than not. Chosen on self-made pages
# (docs/log.md).
DOUBTFUL_CONFIDENCE = 0.6
MAX_NAMED = 10
STAGES = ("rasterize", "vision", "prefill", "decode")


@dataclass(kw_only=True, slots=True)
class Tally:
    """Counts pages as they leave; keeps the pages that need a word, and no text."""

    num_pages: int = 0
    num_tokens: int = 0
    trouble: list[str] = field(default_factory=list)
    doubtful: list[tuple[int, float]] = field(default_factory=list)
    num_repaired: int = 0
    started_s: float = field(default_factory=time.monotonic)
    stage_seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    drafter: str | None = None
    num_steps: int = 0
    num_emitted: float = 0.0
    accepted_histogram: list[int] = field(default_factory=list)

    def add(self, page: Page) -> None:
        """Counts one page that has left."""
        self.num_pages += 1
        self.num_tokens += page.num_tokens
        self.num_repaired += page.status == "repaired"
        if page.status in TROUBLE:
            self.trouble.append(_trouble_line(page))
        elif page.confidence is not None and page.confidence < DOUBTFUL_CONFIDENCE:
            self.doubtful.append((page.number, page.confidence))
        self._add_stats(page)

    @property
    def exit_code(self) -> ExitCode:
        """OK, or PARTIAL when a page failed or was truncated."""
        return ExitCode.PARTIAL if self.trouble else ExitCode.OK

    def doubts(self) -> str | None:
        """One line that names the pages whose reading is not to be trusted, worst first."""
        if not self.doubtful:
            return None
        worst = sorted(self.doubtful, key=lambda item: item[1])
        named = ", ".join(f"{number} ({value:.2f})" for number, value in worst[:MAX_NAMED])
        more = f" and {len(worst) - MAX_NAMED} more" if len(worst) > MAX_NAMED else ""
        pages = "page" if len(worst) == 1 else "pages"
        return (
            f"doubtful reading of {pages} {named}{more}: low confidence, compare with the original"
        )

    def summary(self, name: str, target: str | None) -> str:
        """One line: pages, tokens, seconds, and where the result lies."""
        elapsed_s = time.monotonic() - self.started_s
        parts = [
            counted(self.num_pages, "page"),
            counted(self.num_tokens, "token"),
            f"{elapsed_s:.1f} s",
        ]
        if self.num_repaired:
            parts.append(f"{self.num_repaired} repaired")
        if self.doubtful:
            parts.append(f"{len(self.doubtful)} doubtful")
        if self.trouble:
            parts.append(f"{len(self.trouble)} failed or truncated")
        return f"{name}: {', '.join(parts)}" + (f" -> {target}" if target else "")

    def stats_line(self, name: str) -> str:
        """The figures of `--stats` as one JSON object. Times are seconds."""
        elapsed_s = time.monotonic() - self.started_s
        decode_s = self.stage_seconds["decode"]
        figures = {
            "name": name,
            "num_pages": self.num_pages,
            "num_tokens": self.num_tokens,
            "seconds": {stage: round(s, 3) for stage, s in self.stage_seconds.items()}
            | {"total": round(elapsed_s, 3)},
            "decode_tokens_per_second": round(self.num_tokens / decode_s, 1) if decode_s else None,
            "decoding": {
                "drafter": self.drafter,
                "steps": self.num_steps,
                "tokens_per_step": round(self.num_emitted / self.num_steps, 3),
                "accepted_histogram": self.accepted_histogram,
            }
            if self.num_steps
            else None,
        }
        return event_line("stats", figures)

    def _add_stats(self, page: Page) -> None:
        if page.stats is None:
            return
        for stage in STAGES:
            self.stage_seconds[stage] += getattr(page.stats.seconds, stage)
        decoding = page.stats.decoding
        if decoding is None:
            return
        names = {*(self.drafter or decoding.drafter).split("+"), decoding.drafter}
        # Pages may differ: a scan between born-digital ones has no text layer.
        self.drafter = "+".join(sorted(names - {"none"})) or "none"
        self.num_steps += decoding.steps
        self.num_emitted += decoding.steps * decoding.tokens_per_step
        missing = len(decoding.accepted_histogram) - len(self.accepted_histogram)
        self.accepted_histogram += [0] * missing
        for accepted, count in enumerate(decoding.accepted_histogram):
            self.accepted_histogram[accepted] += count


def _trouble_line(page: Page) -> str:
    if page.error is not None:
        return f"page {page.number}: {page.status} ({page.error.code}): {page.error.message}"
    if page.status == "truncated":
        tokens = counted(page.num_tokens, "token")
        return f"page {page.number}: truncated after {tokens} (see --max-tokens)"
    return f"page {page.number}: {page.status}"
