"""Finds checkpoints and turns a folder into a model that is ready to run."""

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from ocria.document import ModelInfo
from ocria.errors import WeightsError
from ocria.models.base import Target
from ocria.models.device import dtype_of
from ocria.models.presets import NATIVE, PRESETS, Preset, preset_named, preset_of
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES, canonical_name, refuse_baked_norms
from ocria.models.special_tokens import SpecialTokens, special_tokens
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.tokenizer import Tokenizer
from ocria.weights import CheckpointReader, LoadReport, assign, read_manifest
from ocria.weights.hub import NEEDED, fetch, parse_hub_id
from ocria.weights.manifest import Manifest, check_sizes, digest_of_files

SHIPPED = Path(__file__).parent / "checkpoints"
_DTYPE_NAMES = {torch.bfloat16: "bf16", torch.float16: "fp16", torch.float32: "fp32"}


@dataclass(frozen=True, kw_only=True, slots=True)
class CheckpointRow:
    """One line of `ocria models`."""

    name: str
    folder: Path
    licence: str
    precision: str
    num_bytes: int
    digest: str


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


def find_checkpoint(name: str | Path) -> Path:
    """Folder of a checkpoint by name: shipped, a folder's path, a preset, or an id of the hub.

    A preset and an id are looked up in the hub's local cache; only what is not there is fetched.

    Raises:
        WeightsError: none of these, or not on this machine and not to be had; the hint lists
            the names, or the files that were looked for.
    """
    folder = Path(name)
    shipped = SHIPPED / folder.name if len(folder.parts) == 1 else folder
    for candidate in (shipped, folder):
        if (candidate / "config.json").is_file():
            return candidate
    if folder.is_dir():
        raise WeightsError(
            f"model `{name}` is not a checkpoint folder (no config.json)",
            hint=f"a folder holds {', '.join(names[0] for names in NEEDED)} and *.safetensors",
        )
    preset = preset_named(str(name))
    hub_id = parse_hub_id((preset.hub_id if preset else None) or str(name))
    if hub_id is not None:
        return fetch(hub_id)
    shipped_names = [row.name for row in list_checkpoints()]
    names = ", ".join([*shipped_names, *(preset.name for preset in PRESETS)])
    raise WeightsError(f"model `{name}` is unknown", hint=f"a folder, or one of: {names}")


def list_checkpoints() -> tuple[CheckpointRow, ...]:
    """The shipped checkpoints, by name.

    Raises:
        WeightsError: a manifest cannot be understood.
    """
    rows = []
    for folder in sorted(SHIPPED.iterdir()) if SHIPPED.is_dir() else ():
        manifest = read_manifest(folder)
        if manifest is not None:
            rows.append(
                CheckpointRow(
                    name=manifest.name,
                    folder=folder,
                    licence=manifest.licence,
                    precision=manifest.precision,
                    num_bytes=manifest.num_bytes,
                    digest=manifest.digest,
                )
            )
    return tuple(rows)


def load(folder: Path, *, device: torch.device, dtype: torch.dtype | None = None) -> LoadedModel:
    """Builds the model of a checkpoint folder and fills it.

    Args:
        folder: see `find_checkpoint`.
        device: where it runs.
        dtype: None takes what the device multiplies best (`ocria.models.device.dtype_of`).

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
    source = QuantizedSource(reader, read_quantization(folder, raw), canonical_name)
    target, report = build(config, source, device=device, dtype=dtype or dtype_of(device))
    return LoadedModel(
        target=target,
        tokenizer=tokenizer,
        tokens=tokens,
        folder=folder,
        info=_info(folder, manifest, source, reader),
        report=report,
        preset=preset,
    )


def build(
    config: Qwen35Config, source: QuantizedSource, *, device: torch.device, dtype: torch.dtype
) -> tuple[Qwen35, LoadReport]:
    """The model of `config`, filled from `source` and laid out for `device`.

    Raises:
        WeightsError: a tensor is missing or has another shape, or norms are stored as 1 + w.
    """
    with torch.device("meta"):
        model = Qwen35(config)
    report = assign(model, source, dtype=dtype, float32_names=FLOAT32_NAMES)
    refuse_baked_norms(source)
    model.prepare(dtype, device)
    return model, replace(report, renamed=tuple(source.renamed))


def _info(
    folder: Path, manifest: Manifest | None, source: QuantizedSource, reader: CheckpointReader
) -> ModelInfo:
    if manifest is not None:
        return ModelInfo(name=manifest.name, digest=manifest.digest, precision=manifest.precision)
    dtypes = {_DTYPE_NAMES.get(info.dtype) for info in reader}
    plain = next((name for name in ("fp32", "bf16", "fp16") if name in dtypes), "unknown")
    return ModelInfo(
        name=folder.resolve().name,
        digest=digest_of_files(folder),
        precision="+".join(source.formats()) or plain,
    )
