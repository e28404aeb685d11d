"""From a bf16 checkpoint folder to a calibrated one: read, measure, allot, round, write."""

from collections.abc import Callable
from pathlib import Path

import torch
from torch import Tensor

from ocria.calibration.allocation import Loss, allocate, write_table
from ocria.calibration.divergence import Judge
from ocria.calibration.folder import Identity, new_folder, write_checkpoint
from ocria.calibration.options import DEFAULT_SHARE, QuantizeOptions, QuantizeResult
from ocria.calibration.passages import Passage, read_passages
from ocria.calibration.pictures import calibration_patches
from ocria.calibration.rounding import Format, num_bytes
from ocria.calibration.sensitivity import measure_sensitivity
from ocria.calibration.sequential import SequentialRounding
from ocria.calibration.sites import EMBEDDING, HEAD, Site, decoder_sites
from ocria.errors import UsageError, WeightsError
from ocria.models.device import resolve_device
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import canonical_name
from ocria.models.registry import LoadedModel, load
from ocria.quantization.layouts import PackedTensor, read_quantization
from ocria.vision import PreprocessorConfig
from ocria.weights import CheckpointReader, read_manifest

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""

TABLE_FILE = "sensitivity.csv"
# Of the pages, one in this many is held out to measure on.
_HELD_OUT = 4
# Held-out pages that each product is tried on; all of them measure the result.
_TRIED_ON = 3
_VISION = "model.visual."


class Parent:
    """A bf16 checkpoint, opened and loaded.

    Raises:
        WeightsError: no qwen3_5 checkpoint, quantised already, or weights that are NaN or
            infinite.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        config = Qwen35Config.from_folder(folder)
        if read_quantization(folder, read_config(folder)).groups:
            raise WeightsError(
                f"the checkpoint is quantised already: {folder}",
                hint="quantise the bf16 checkpoint that it was made from",
            )
        self.reader = CheckpointReader(folder)
        self._stored = {canonical_name(info.name): info.name for info in self.reader}
        self.sites: tuple[Site, ...] = decoder_sites(config.text)
        self._refuse_damage()
        self.model: LoadedModel = load(folder, device=device)

    @property
    def target(self) -> Qwen35:
        """The model that runs."""
        target = self.model.target
        assert isinstance(target, Qwen35), "the registry builds qwen3_5 models"
        return target

    def read(self, module: str) -> Tensor:
        """Weight [N, K] of a stored module, as it is stored."""
        return self.reader.read(self._stored[f"{module}.weight"])

    def num_bytes(self) -> int:
        """Bytes of everything but the vision tower."""
        outside = (
            info for info in self.reader if not canonical_name(info.name).startswith(_VISION)
        )
        return sum(info.num_bytes for info in outside)

    def _refuse_damage(self) -> None:
        modules = [member for site in self.sites for member in site.members]
        for module in (*modules, EMBEDDING):
            if f"{module}.weight" not in self._stored:
                raise WeightsError(f"the checkpoint lacks {module}.weight")
            if not torch.isfinite(self.read(module)).all():
                raise WeightsError(
                    f"`{module}.weight` holds NaN or infinity",
                    hint="the checkpoint is damaged: training diverged, or a copy went wrong",
                )


def quantize(
    options: QuantizeOptions,
    progress: Progress,
    passages_of: Callable[[Parent], list[Passage]] | None = None,
) -> QuantizeResult:
    """Makes the folder `options.target`.

    `passages_of` gives pages with what should be written of them, for those who know it; None has
    the parent read the options' pages. Every fourth is held out to measure on.

    Raises:
        WeightsError: see `Parent`.
        InputError: a calibration file is no document, or too few pages have text.
        OutputError: the target exists, or cannot be written.
        DeviceError: the device cannot be used.
    """
    with new_folder(options.target, overwrite=options.overwrite) as folder:
        parent = Parent(options.source, resolve_device(options.device))
        passages = (
            _passages(parent, options, progress) if passages_of is None else passages_of(parent)
        )
        judge = Judge(parent.target, passages[::_HELD_OUT], parent.model.tokens.suppressed_ids)
        losses = _losses(parent, judge, progress)
        plan = _plan(parent, losses, options)
        learnt = [passage for i, passage in enumerate(passages) if i % _HELD_OUT]
        packed = _round(parent, learnt, plan, progress)
        divergence = judge.judge(parent.target)
        manifest = write_checkpoint(
            folder, parent.reader, packed, layout=options.layout, identity=_identity(options)
        )
        write_table(folder / TABLE_FILE, losses, plan)
        saved = sum(parent.read(module).nbytes - num_bytes(packed[module]) for module in packed)
        return QuantizeResult(
            manifest=manifest,
            losses=losses,
            plan=plan,
            divergence=divergence,
            source_bytes=parent.num_bytes(),
            target_bytes=parent.num_bytes() - saved,
        )


def _passages(parent: Parent, options: QuantizeOptions, progress: Progress) -> list[Passage]:
    preprocessor = PreprocessorConfig.from_folder(options.source)
    images = calibration_patches(options.calibrate, preprocessor, num_self_made=options.num_pages)
    passages = []
    read = read_passages(
        parent.model, images, merge=preprocessor.merge_size, max_tokens=options.max_tokens
    )
    for passage in read:
        passages.append(passage)
        progress("reading pages", len(passages), len(images))
    return passages


def _losses(parent: Parent, judge: Judge, progress: Progress) -> tuple[Loss, ...]:
    done = _Counter("trying products", len(parent.sites), progress)
    return measure_sensitivity(
        parent.target,
        parent.read,
        parent.sites,
        judge,
        num_passages=_TRIED_ON,
        progress=done.count,
    )


def _plan(parent: Parent, losses: tuple[Loss, ...], options: QuantizeOptions) -> dict[str, Format]:
    """Formats of all products; the embedding, and a head of its own, are FP8."""
    budget, total = options.budget_bytes, parent.num_bytes()
    if budget is None and options.max_loss is None:
        budget = int(total * DEFAULT_SHARE)
    if budget is not None:
        wide: tuple[str, ...] = (EMBEDDING,) if parent.target.tied else (EMBEDDING, HEAD)
        kept = total - sum(2 * loss.num_weights for loss in losses)
        kept -= sum(_fp8_saves(parent.read(module)) for module in wide)
        budget -= kept
        least = sum(loss.num_bytes("nvfp4") for loss in losses)
        if budget < least:
            raise UsageError(
                f"--budget {budget + kept} is too small: all NVFP4 takes {least + kept} bytes"
            )
    plan = allocate(losses, budget_bytes=budget, max_loss=options.max_loss)
    return {**plan, EMBEDDING: "fp8", HEAD: "fp8"}


def _fp8_saves(weight_NK: Tensor) -> int:
    num_rows, num_columns = weight_NK.shape
    return weight_NK.nbytes - num_rows * (num_columns + torch.bfloat16.itemsize)


def _round(
    parent: Parent, passages: list[Passage], plan: dict[str, Format], progress: Progress
) -> dict[str, PackedTensor]:
    done = _Counter("rounding products", len(parent.sites) + 1, progress)
    rounding = SequentialRounding(parent.target, parent.read, passages, plan, done.count)
    return rounding.run()


def _identity(options: QuantizeOptions) -> Identity:
    source = read_manifest(options.source)
    return Identity(
        name=options.name or (source.name if source else options.target.resolve().name),
        licence=source.licence if source else "unknown",
        training=source.training if source else "Not stated by the checkpoint it was made from.",
    )


class _Counter:
    """Turns names of finished products into progress."""

    def __init__(self, what: str, total: int, progress: Progress) -> None:
        self._what, self._total, self._progress, self._done = what, total, progress, 0

    def count(self, _: str) -> None:
        self._done += 1
        self._progress(self._what, self._done, self._total)
