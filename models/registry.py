"""Turns a checkpoint folder into a model that is ready to run; `finding` finds folders."""

import logging
import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

import torch
from torch import Tensor

from ocria.document import ModelInfo
from ocria.errors import WeightsError
from ocria.models.base import Target
from ocria.models.device import dtype_of
from ocria.models.finding import CheckpointRow
from ocria.models.presets import NATIVE, PRESETS, Preset, preset_of
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.qwen3_5.fused import can_fuse
from ocria.models.qwen3_5.mixed import TABLES, fits_blocks, nvfp4_groups
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES, canonical_name, refuse_baked_norms
from ocria.models.qwen3_5.stored_weights import hold_stored, plain_weights_fit
from ocria.models.special_tokens import SpecialTokens, special_tokens
from ocria.options import Precision
from ocria.quantization.layouts import read_quantization
from ocria.quantization.rounded_source import UNCALIBRATED, MixedSource, PlainSource
from ocria.quantization.source import QuantizedSource
from ocria.tokenizer import Tokenizer
from ocria.weights import CheckpointReader, LoadReport, assign, read_manifest
from ocria.weights.hub import NOTICE
from ocria.weights.hub_cache import cached_snapshot, name_of, parse_hub_id
from ocria.weights.manifest import Manifest, check_sizes, digest_of_files

Weights = QuantizedSource | MixedSource | PlainSource

_DTYPE_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedModel:
    """A model that is ready to run, and what the pipeline must know of it.

    Attributes:
        target: what the engine drives.
        tokenizer: text of its ids.
        tokens: stop ids, suppressed ids and the prompt template.
        folder: the checkpoint; its preprocessor file says how pages are prepared.
        info: name, digest and precision, for the result.
        report: what the load found beside the model's own tensors.
        preset: how it is asked and how its answer is read.
    """

    target: Target
    tokenizer: Tokenizer
    tokens: SpecialTokens
    folder: Path
    info: ModelInfo
    report: LoadReport
    preset: Preset = NATIVE


def list_cached() -> tuple[CheckpointRow, ...]:
    """The presets whose checkpoints lie in the hub's local cache; `-` for a precision unread."""
    rows = []
    for preset in PRESETS:
        hub_id = parse_hub_id(preset.hub_id or "")
        folder = cached_snapshot(hub_id) if hub_id is not None else None
        if folder is not None:
            rows.append(
                CheckpointRow(
                    name=preset.name,
                    folder=folder,
                    licence=preset.licence,
                    precision=_stored_precision(folder),
                    num_bytes=sum(file.stat().st_size for file in folder.iterdir()),
                    digest=digest_of_files(folder),
                )
            )
    return tuple(rows)


def _stored_precision(folder: Path) -> str:
    """Formats of a folder's weights; a damaged one must not hide the others from a list."""
    try:
        reader = CheckpointReader(folder)
        source = QuantizedSource(reader, read_quantization(folder, read_config(folder)))
        return "+".join(source.formats()) or _plain_format(reader)
    except WeightsError as error:
        _LOGGER.warning("%s: %s", folder, error)
        return "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint:
    """A folder whose files have been looked through; its weights lie in mapped files still.

    Attributes:
        folder: where it is.
        config: sizes of the model.
        tokenizer: text of its ids.
        tokens: see `LoadedModel`.
        preset: see `LoadedModel`.
        source: its tensors, in the precision that was asked for.
        info: name, digest and precision.
    """

    folder: Path
    config: Qwen35Config
    tokenizer: Tokenizer
    tokens: SpecialTokens
    preset: Preset
    source: Weights
    info: ModelInfo


def open_checkpoint(
    folder: Path, *, device: torch.device, precision: Precision = "auto"
) -> Checkpoint:
    """Reads a folder's settings and the headers of its shards.

    Args:
        folder: see `find_checkpoint`.
        device: where tensors will be read to.
        precision: `auto` takes weights as they are stored, `bf16` expands what is in codes,
            `mixed` rounds plain weights to NVFP4 and FP8 as they are read.

    Raises:
        WeightsError: missing, damaged or contradictory files, or another architecture.
    """
    raw = read_config(folder)
    config = Qwen35Config.from_mapping(raw)
    manifest = read_manifest(folder)
    if manifest is not None:
        check_sizes(folder, manifest)
    tokenizer = Tokenizer(folder / "tokenizer.json")
    preset = preset_of(folder, raw, tokenizer.special_ids)
    tokens = special_tokens(folder, config, tokenizer, preset)
    reader = CheckpointReader(folder)
    stored = QuantizedSource(reader, read_quantization(folder, raw), canonical_name, device)
    source = _in_precision(stored, precision)
    return Checkpoint(
        folder=folder,
        config=config,
        tokenizer=tokenizer,
        tokens=tokens,
        preset=preset,
        source=source,
        info=_info(folder, manifest, source, reader, precision),
    )


def load(
    folder: Path,
    *,
    device: torch.device,
    dtype: torch.dtype | None = None,
    precision: Precision = "auto",
    packed: bool | None = None,
    keep_plain: bool = False,
) -> LoadedModel:
    """Builds the model of a checkpoint folder and fills it.

    Args:
        folder: see `find_checkpoint`.
        device: where it runs.
        dtype: None takes what the device multiplies best (`ocria.models.device.dtype_of`).
        precision: see `open_checkpoint`.
        packed: see `build`.
        keep_plain: see `build`.

    Raises:
        WeightsError: missing, damaged or contradictory files, or another architecture.
    """
    checkpoint = open_checkpoint(folder, device=device, precision=precision)
    return fill(checkpoint, device, dtype, packed=packed, keep_plain=keep_plain)


def fill(
    checkpoint: Checkpoint,
    device: torch.device,
    dtype: torch.dtype | None = None,
    *,
    packed: bool | None = None,
    keep_plain: bool = False,
) -> LoadedModel:
    """The model of an opened checkpoint; `packed` and `keep_plain` as in `build`.

    Raises:
        WeightsError: a tensor is missing or has another shape, or norms are stored as 1 + w.
    """
    source = checkpoint.source
    target, report = build(
        checkpoint.config,
        source,
        device=device,
        dtype=dtype or dtype_of(device),
        packed=packed,
        keep_plain=keep_plain,
    )
    if report.unexpected:
        _LOGGER.info("not used: %s", ", ".join(report.unexpected))
    return LoadedModel(
        target=target,
        tokenizer=checkpoint.tokenizer,
        tokens=checkpoint.tokens,
        folder=checkpoint.folder,
        info=checkpoint.info,
        report=report,
        preset=checkpoint.preset,
    )


def build(
    config: Qwen35Config,
    source: Weights,
    *,
    device: torch.device,
    dtype: torch.dtype,
    packed: bool | None = None,
    keep_plain: bool = False,
) -> tuple[Qwen35, LoadReport]:
    """The model of `config`, filled from `source` and laid out for `device`.

    `packed` keeps quantised weights in their codes on a CPU: same bits, a third of the memory, 2.7
    times the time of a pass. None does so where plain weights do not fit. Where fused kernels
    run the decoder, its layers' modules are gone: they would hold a second copy of the weights.
    `keep_plain` is for those who compare both.

    Raises:
        WeightsError: a tensor is missing or has another shape, or norms are stored as 1 + w.
    """
    with torch.device("meta"):
        model = Qwen35(config)
    if packed is None:
        num_weights = sum(math.prod(source.shape(name)) for name in source.names())
        packed = device.type == "cpu" and not plain_weights_fit(num_weights, dtype)
    held = hold_stored(model, source, dtype) if packed else set()
    is_lean = not keep_plain and can_fuse(config.text, device, dtype)
    plain = _WithoutProducts(source, device) if is_lean else source
    report = assign(model, plain, dtype=dtype, float32_names=FLOAT32_NAMES)
    unexpected = tuple(name for name in report.unexpected if name not in held)
    refuse_baked_norms(source)
    model.prepare(dtype, device, stored=source.read_packed, keep_plain=keep_plain)
    return model, replace(report, renamed=tuple(source.renamed), unexpected=unexpected)


class _WithoutProducts:
    """A source whose large matrices take no memory: kernels read them as they are stored."""

    def __init__(self, source: Weights, device: torch.device) -> None:
        self._source, self._device = source, device
        groups = nvfp4_groups(source.names())
        self._spared = {name for group in groups for name in group} | {"lm_head.weight"}

    def names(self) -> Iterable[str]:
        return self._source.names()

    def shape(self, name: str) -> tuple[int, ...]:
        return self._source.shape(name)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        if name not in self._spared:
            return self._source.read(name, dtype)
        return torch.zeros((), dtype=dtype, device=self._device).expand(self.shape(name))


def _in_precision(stored: QuantizedSource, precision: Precision) -> Weights:
    if precision == "bf16":
        return PlainSource(stored, torch.bfloat16)
    if precision == "auto":
        return stored
    matrices = [name for name in stored.names() if fits_blocks(stored.shape(name))]
    tables = [name for name in TABLES if name in matrices]
    source = MixedSource(stored, nvfp4_groups(matrices), tables)
    if source.is_rounded:
        _LOGGER.log(
            NOTICE,
            "weights are rounded to nearest as they load, without calibration; "
            "`ocria quantize` makes a better copy once",
        )
    return source


def _info(
    folder: Path,
    manifest: Manifest | None,
    source: Weights,
    reader: CheckpointReader,
    precision: Precision,
) -> ModelInfo:
    formats = "+".join(source.formats()) or _plain_format(reader)
    if isinstance(source, MixedSource) and source.is_rounded:
        formats = f"{formats}, {UNCALIBRATED}"
    elif precision == "bf16":
        formats = "bf16"
    if manifest is not None:
        kept = manifest.precision if precision == "auto" else formats
        return ModelInfo(name=manifest.name, digest=manifest.digest, precision=kept)
    return ModelInfo(name=name_of(folder), digest=digest_of_files(folder), precision=formats)


def _plain_format(reader: CheckpointReader) -> str:
    dtypes = {_DTYPE_NAMES.get(info.dtype) for info in reader}
    return next((name for name in ("fp32", "bf16", "fp16") if name in dtypes), "unknown")
