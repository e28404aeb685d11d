"""Every knob of a batch, checked once."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args

from ocria.errors import UsageError
from ocria.options import Furniture, OutputFormat, ParseOptions
from ocria.rasterize import check_pages


@dataclass(frozen=True, kw_only=True, slots=True)
class BatchOptions:
    """Options of a batch.

    Attributes:
        inputs: folders, files, globs, or `-` for a list on standard input.
        out_dir: where results go, and what a later run needs to go on.
        formats: what is written of each document.
        parse: how each document is read.
        furniture: see `ocria.output.open_writer`; likewise `page_markers`.
        recursive: look into the folders of a folder.
        jobs: processes that rasterise; None takes the number of cores, 8 at most.
        gpus: GPUs to use; None takes the one that `parse.device` names.
        lanes: processes with a model for each GPU; None decides by cores and memory.
        ray: `local`, or a cluster's address; None uses this process alone.
        retry_failed: read failed pages again.
        fail_fast: stop at the first page that fails or is truncated, or document that fails; one
            of an earlier run counts.
        timeout_s: for a page, drawing and reading each; None waits forever.
        overwrite: replace files that no earlier run has made.
    """

    inputs: tuple[str, ...]
    out_dir: Path
    formats: tuple[OutputFormat, ...] = ("md",)
    parse: ParseOptions = field(default_factory=ParseOptions)
    furniture: Furniture = "drop"
    page_markers: bool = False
    recursive: bool = True
    jobs: int | None = None
    gpus: int | None = None
    lanes: int | None = None
    ray: str | None = None
    retry_failed: bool = False
    fail_fast: bool = False
    timeout_s: float | None = None
    overwrite: bool = False

    def __post_init__(self) -> None:
        check_pages(self.parse.pages)
        if self.jobs is not None and self.jobs < 1:
            raise UsageError(f"--jobs must be at least 1, not {self.jobs}")
        if self.lanes is not None and self.lanes < 1:
            raise UsageError(f"--lanes must be at least 1, not {self.lanes}")
        if self.timeout_s is not None and not self.timeout_s > 0:
            raise UsageError(f"--timeout must be above 0 seconds, not {self.timeout_s:g}")

    @property
    def shows_pages(self) -> bool:
        """Whether a format shows the pages' pictures."""
        return "html" in self.formats

    @property
    def output_settings(self) -> Mapping[str, Any]:
        """The settings that can change the files, beyond those that change what is read."""
        return {
            "formats": list(self.formats),
            "furniture": self.furniture,
            "page_markers": self.page_markers,
            "pages": self.parse.pages,
            "stats": self.parse.stats,
        }


def parse_formats(text: str) -> tuple[OutputFormat, ...]:
    """`md,json` as formats, each once.

    Raises:
        UsageError: an unknown format, or none.
    """
    known: tuple[OutputFormat, ...] = get_args(OutputFormat)
    names = [part.strip() for part in text.split(",")]
    for name in names:
        if name not in known:
            raise UsageError(f"unknown format: `{name}`", hint=f"one of {', '.join(known)}")
    return tuple(format_ for format_ in known if format_ in names)
