"""From a bf16 checkpoint folder to a calibrated one: read, measure, allot, round, write."""

from collections.abc import Callable
from pathlib import Path

import torch

from ocria.calibration.allocation import Loss, write_table
from ocria.calibration.divergence import Judge
from ocria.calibration.folder import PLOT_FILE, TABLE_FILE, Identity, new_folder, write_checkpoint
from ocria.calibration.options import QuantizeOptions, QuantizeResult
from ocria.calibration.passages import Passage, read_passages
from ocria.calibration.pictures import calibration_patches
from ocria.calibration.plan import plan_formats
from ocria.calibration.progress import Counter, Progress
from ocria.calibration.rounding import num_bytes
from ocria.calibration.sensitivity import measure_sensitivity
from ocria.calibration.sensitivity_plot import write_plot
from ocria.calibration.sequential import round_resident
from ocria.calibration.stream_run import quantize_streamed
from ocria.calibration.streamed import StoredParent
from ocria.errors import UsageError
from ocria.models.device import resolve_device
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import LoadedModel, load
from ocria.vision import PreprocessorConfig
from ocria.weights import CheckpointReader, read_manifest

# Of the pages, one in this many is held out to measure on.
_HELD_OUT = 4
# Held-out pages that each product is tried on; all of them measure the result.
_TRIED_ON = 3
# Larger checkpoints are streamed.
_RESIDENT_BYTES = 1 << 30


class Parent(StoredParent):
    """A bf16 checkpoint, opened and loaded.

    Raises:
        WeightsError: as `StoredParent`.
    """

    def __init__(self, folder: Path, device: torch.device) -> None:
        super().__init__(folder)
        self.model: LoadedModel = load(folder, device=device, keep_plain=True)
        # What is measured and rounded are the modules' own weights.
        self.target.fused = None

    @property
    def target(self) -> Qwen35:
        """The model that runs."""
        target = self.model.target
        assert isinstance(target, Qwen35), "the registry builds qwen3_5 models"
        return target


def quantize(
    options: QuantizeOptions,
    progress: Progress,
    passages_of: Callable[[Parent], list[Passage]] | None = None,
) -> QuantizeResult:
    """Makes the folder `options.target`.

    A checkpoint above 1 GiB, or any without calibration, is streamed: see
    `ocria.calibration.stream_run`.

    `passages_of` gives pages with what should be written of them, for those who know it; None has
    the parent read the options' pages. Every fourth is held out to measure on.

    Raises:
        WeightsError: see `StoredParent`.
        InputError: a calibration file is no document, or too few pages have text.
        OutputError: the target exists, or cannot be written.
        DeviceError: the device cannot be used.
        UsageError: the budget is too small, or a loss in nats is asked for and none is measured.
    """
    if passages_of is None and _streams(options):
        if options.max_loss is not None:
            raise UsageError(
                "--max-loss is measured with the whole model in memory",
                hint="give `--budget`, or load the model as a whole with `--no-stream`",
            )
        return quantize_streamed(options, _identity(options), progress)
    with new_folder(options.target, overwrite=options.overwrite) as folder:
        parent = Parent(options.source, resolve_device(options.device))
        passages = (
            _passages(parent, options, progress) if passages_of is None else passages_of(parent)
        )
        judge = Judge(parent.target, passages[::_HELD_OUT], parent.model.tokens.suppressed_ids)
        losses = _losses(parent, judge, progress)
        plan = plan_formats(parent, losses, options)
        learnt = [passage for i, passage in enumerate(passages) if i % _HELD_OUT]
        done = Counter("rounding products", len(parent.sites) + 1, progress)
        packed = round_resident(parent.target, parent.read, learnt, plan, done.count)
        divergence = judge.judge(parent.target)
        manifest = write_checkpoint(
            folder, parent.reader, packed, layout=options.layout, identity=_identity(options)
        )
        write_table(folder / TABLE_FILE, losses, plan)
        write_plot(folder / PLOT_FILE, losses, plan)
        saved = sum(parent.read(module).nbytes - num_bytes(packed[module]) for module in packed)
        return QuantizeResult(
            manifest=manifest,
            losses=losses,
            plan=plan,
            divergence=divergence,
            source_bytes=parent.num_bytes(),
            target_bytes=parent.num_bytes() - saved,
        )


def _streams(options: QuantizeOptions) -> bool:
    if options.stream is not None or not options.calibration:
        return options.stream is not False or not options.calibration
    return sum(info.num_bytes for info in CheckpointReader(options.source)) > _RESIDENT_BYTES


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
    done = Counter("trying products", len(parent.sites), progress)
    return measure_sensitivity(
        parent.target,
        parent.read,
        parent.sites,
        judge,
        num_passages=_TRIED_ON,
        progress=done.count,
    )


def _identity(options: QuantizeOptions) -> Identity:
    source = read_manifest(options.source)
    return Identity(
        name=options.name or (source.name if source else options.target.resolve().name),
        licence=source.licence if source else "unknown",
        training=source.training if source else "Not stated by the checkpoint it was made from.",
    )
