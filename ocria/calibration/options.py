"""What `ocria quantize` is asked for, and what it answers."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from ocria.calibration.allocation import Loss
from ocria.calibration.divergence import Divergence
from ocria.calibration.rounding import Format
from ocria.errors import UsageError
from ocria.quantization.layouts import LayoutName
from ocria.weights import Manifest

# Share of its bf16 bytes that a decoder may keep when nothing else is asked for.
DEFAULT_SHARE = 0.40


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantizeOptions:
    """One quantisation.

    Attributes:
        source: bf16 checkpoint folder.
        target: folder to make.
        calibrate: PDFs and images whose pages calibrate; empty takes self-made pages.
        budget_bytes: most bytes of decoder, embedding and head together, as they are read for a
            token; None takes `DEFAULT_SHARE` of the bf16 bytes, unless `max_loss` is given.
        max_loss: formats are widened until the summed loss of all products, in nats of the
            next-token distribution, is below this; None widens while bytes last.
        layout: how the weights are stored.
        num_pages: self-made pages to draw; of all pages every fourth is held out to measure on.
        max_tokens: most tokens read of a page.
        name: name of the checkpoint; None takes the source's, or the target folder's.
        overwrite: the target may be replaced.
        device: where the model runs.
        calibration: False rounds to nearest and runs no model at all.
        stream: hold one layer at a time instead of the whole model; None does so for checkpoints
            above 1 GiB.

    Raises:
        UsageError: a number that makes no sense.
    """

    source: Path
    target: Path
    calibrate: tuple[Path, ...] = ()
    budget_bytes: int | None = None
    max_loss: float | None = None
    layout: LayoutName = "compressed-tensors"
    num_pages: int = 16
    max_tokens: int = 320
    name: str | None = None
    overwrite: bool = False
    device: str = "auto"
    calibration: bool = True
    stream: bool | None = None

    def __post_init__(self) -> None:
        if self.budget_bytes is not None and self.budget_bytes <= 0:
            raise UsageError(f"--budget must be a number of bytes, not {self.budget_bytes}")
        if self.max_loss is not None and not self.max_loss >= 0:
            raise UsageError(f"--max-loss must be 0 or more nats, not {self.max_loss}")
        if self.num_pages < 2:
            raise UsageError("at least two pages are needed: one to calibrate, one to measure on")
        if self.max_loss is not None and not self.calibration:
            raise UsageError("--max-loss needs calibration: without it no loss is measured")
        if self.calibrate and not self.calibration:
            raise UsageError("--calibrate and --no-calibration contradict each other")


@dataclass(frozen=True, kw_only=True, slots=True)
class QuantizeResult:
    """What came of it.

    Attributes:
        manifest: of the new folder.
        losses: what each product loses alone in NVFP4.
        plan: format of each product.
        divergence: of the child from its parent, on the pages held out; None without calibration.
        source_bytes: decoder, embedding and head of the parent; `target_bytes` of the child.
    """

    manifest: Manifest
    losses: tuple[Loss, ...]
    plan: Mapping[str, Format]
    divergence: Divergence | None
    source_bytes: int
    target_bytes: int
