"""Every knob of an evaluation, checked once."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from ocria.errors import UsageError
from ocria.options import Furniture

DEFAULT_WORK = Path("ocria-eval")
DEFAULT_DPI = 200


@dataclass(frozen=True, kw_only=True, slots=True)
class EvalOptions:
    """Options of one evaluation.

    Attributes:
        dataset: folder with `index.jsonl`, or one of the layouts of `ocria.eval.datasets`.
        engines: names of the engines to run and compare, in the order of the report.
        pred: folder of existing Markdown (`DIR/<file>.md`), scored instead of running an engine.
        only: keep items whose kind or set contains this text.
        limit: at most this many items, spread over the sets in turn.
        report: where the HTML page goes; None writes none.
        work: where predictions are kept, one folder an engine; a second run reads them.
        device: `auto`, `cpu`, `cuda` or `cuda:N`, for the engines that can use it.
        model: checkpoint name or folder for OCRia.
        dpi: resolution at which PDF pages are rasterised for every engine.
        with_text_layer: let OCRia read the PDF itself, text layer included; a case apart.
        shard: (I, N) runs only every Nth item, from the Ith (0-based), and scores what is there.
        threads: CPU threads that each engine may use; None takes every core that this process may.
        side_by_side: pages that OCRia reads at once, if memory allows; None: 8 on a CPU, else 1.
            Readings are the same; seconds of pages in company are shares.
        rerun: ignore kept predictions.
        unscored: also run files without truth, for failures, loops and times.
        katex: folder of an installed `katex` package, to compare formulas as pictures too.
        furniture: whether OCRia's running heads, feet and page numbers are scored.
    """

    dataset: Path
    engines: tuple[str, ...] = ("ocria",)
    pred: Path | None = None
    only: str | None = None
    limit: int | None = None
    report: Path | None = None
    work: Path = DEFAULT_WORK
    device: str = "auto"
    model: str | None = None
    dpi: int = DEFAULT_DPI
    with_text_layer: bool = False
    shard: tuple[int, int] = (0, 1)
    threads: int | None = None
    side_by_side: int | None = None
    rerun: bool = False
    unscored: bool = False
    katex: Path | None = None
    furniture: Furniture = "drop"

    def __post_init__(self) -> None:
        if self.limit is not None and self.limit < 1:
            raise UsageError(f"--limit must be at least 1, not {self.limit}")
        if not 36 <= self.dpi <= 600:
            raise UsageError(f"--dpi must be 36 to 600, not {self.dpi}")
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"--threads must be at least 1, not {self.threads}")
        if self.side_by_side is not None and self.side_by_side < 1:
            raise UsageError(f"--side-by-side must be at least 1, not {self.side_by_side}")
        index, count = self.shard
        if not 0 <= index < count:
            raise UsageError(
                f"--shard {index}/{count} does not exist", hint="I/N with I from 0 to N-1"
            )
        if self.with_text_layer and self.engines != ("ocria",):
            raise UsageError("--with-text-layer is measured for the engine `ocria` alone")
        if self.pred is None and not self.engines:
            raise UsageError("name an engine, or give --pred")
        if len(set(self.engines)) != len(self.engines):
            raise UsageError("each engine can be named once")

    @property
    def num_threads(self) -> int:
        """CPU threads of each engine."""
        return self.threads or usable_cores()


def usable_cores() -> int:
    """Cores that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def parse_shard(text: str) -> tuple[int, int]:
    """`I/N` as written at the shell. Raises UsageError."""
    left, slash, right = text.partition("/")
    if not slash or not left.isdecimal() or not right.isdecimal() or int(right) < 1:
        raise UsageError(f"--shard must be I/N, not `{text}`", hint="for example --shard 0/4")
    return int(left), int(right)
