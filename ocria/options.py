"""Every knob of a parse, checked once. Knows nothing of where a value came from."""

from dataclasses import dataclass
from typing import Literal, get_args

from ocria.errors import UsageError

DrafterName = Literal["auto", "none", "ngram", "text-layer", "dflash", "mtp"]
Precision = Literal["auto", "bf16", "mixed"]
Furniture = Literal["drop", "keep"]
OutputFormat = Literal["md", "json", "jsonl", "html"]

DEFAULT_MODEL = "ocria-nano"
DEFAULT_MAX_TOKENS = 8192
DEFAULT_MAX_PIXELS = 200_000_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ParseOptions:
    """Options of one parse.

    Attributes:
        pages: page selection such as `1,3-5,8-,-1` (1-based); None means all.
        model: name of a known checkpoint, a folder, or an id of the hub.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        precision: of the weights; `auto` takes them as they are stored.
        drafter: source of speculative proposals; never changes the result.
        drafter_model: folder or hub id of a DFlash drafter; None takes the one in the model's own
            folder.
        max_tokens: limit for each page; reaching it gives status `truncated`.
        dpi: None rasterises straight to the size the model wants.
        password: for encrypted documents.
        stats: measure each page.
        max_pixels: a page or image frame with more pixels is not decoded at all.
    """

    pages: str | None = None
    model: str = DEFAULT_MODEL
    device: str = "auto"
    precision: Precision = "auto"
    drafter: DrafterName = "auto"
    drafter_model: str | None = None
    max_tokens: int = DEFAULT_MAX_TOKENS
    dpi: int | None = None
    password: str | None = None
    stats: bool = False
    max_pixels: int = DEFAULT_MAX_PIXELS

    def __post_init__(self) -> None:
        if self.drafter not in get_args(DrafterName):
            raise UsageError(
                f"unknown drafter: `{self.drafter}`",
                hint=f"one of {', '.join(get_args(DrafterName))}",
            )
        if self.drafter_model is not None and self.drafter not in ("auto", "dflash"):
            raise UsageError(f"--drafter-model has no use with --drafter {self.drafter}")
        if self.precision not in get_args(Precision):
            raise UsageError(
                f"unknown precision: `{self.precision}`",
                hint=f"one of {', '.join(get_args(Precision))}",
            )
        if self.max_tokens < 1:
            raise UsageError(f"--max-tokens must be at least 1, not {self.max_tokens}")
        if self.dpi is not None and not 18 <= self.dpi <= 1200:
            raise UsageError(f"--dpi must be `auto` or 18 to 1200, not {self.dpi}")
