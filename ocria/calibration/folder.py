"""A quantised checkpoint folder: shards by part, settings, manifest; complete or not there.

Everything is written beside the target under a temporary name and renamed at the end.
"""

import json
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.errors import OutputError
from ocria.models.presets import with_preset
from ocria.models.qwen3_5.config import read_config
from ocria.models.qwen3_5.names import canonical_name
from ocria.quantization.layouts import (
    LayoutName,
    PackedTensor,
    config_sections,
    format_of,
    stored_tensors,
)
from ocria.quantization.modelopt import CONFIG_FILE
from ocria.quantization.schemes import SchemeName
from ocria.weights import CheckpointReader, Manifest, write_manifest
from ocria.weights.manifest import digest_files
from ocria.weights.shards import INDEX_FILE

TABLE_FILE = "sensitivity.csv"
PLOT_FILE = "sensitivity.svg"
MIB = 1 << 20
# Files stay below 16 MiB where tensors allow it: code hosts refuse or slow down larger ones.
_SHARD_TENSOR_BYTES = 16 * MIB - MIB // 8
_COPIED = (
    "chat_template.jinja",
    "chat_template.json",
    "generation_config.json",
    "instruction.txt",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
)
_EMBEDDINGS = ("model.language_model.embed_tokens.", "lm_head.")
_VISION = "model.visual."
IGNORED = ("model.visual.*", "*.in_proj_a", "*.in_proj_b")
"""Modules that stay as they are, as wildcards."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Identity:
    """What the manifest says of a checkpoint; see `ocria.weights.Manifest`."""

    name: str
    licence: str
    training: str


@contextmanager
def new_folder(target: Path, *, overwrite: bool) -> Iterator[Path]:
    """An empty folder that becomes `target` if the block ends well, and vanishes otherwise.

    Raises:
        OutputError: `target` exists and may not be replaced, or cannot be written.
    """
    if target.exists() and not overwrite:
        raise OutputError(
            f"the output exists already: {target}",
            hint="replace it with `--overwrite`, or name another",
        )
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        part = Path(tempfile.mkdtemp(prefix=f".{target.name}-", suffix=".part", dir=target.parent))
    except OSError as error:
        raise OutputError(
            f"cannot write into the folder: {target.parent}",
            hint="choose a folder that you may write to",
        ) from error
    try:
        yield part
        part.chmod(0o755)
        replace_folder(part, target)
    finally:
        shutil.rmtree(part, ignore_errors=True)


def write_checkpoint(
    folder: Path,
    reader: CheckpointReader,
    packed: Mapping[str, PackedTensor],
    *,
    layout: LayoutName,
    identity: Identity,
) -> Manifest:
    """Writes shards, settings and manifest into `folder`, which is empty.

    Args:
        folder: where to.
        reader: the bf16 parent; tensors that are not packed keep their bytes.
        packed: weights by their module's canonical name.
        layout: how they are stored.
        identity: name and licence for the manifest.

    Raises:
        OutputError: the folder cannot be written.
    """
    try:
        placed: dict[str, str] = {}
        for part in ("vision", "decoder", "embedding"):
            placed |= _write_shards(folder, part, _tensors(reader, packed, part, layout))
        formats = {name: format_of(tensor) for name, tensor in packed.items()}
        write_settings(folder, reader.folder, placed, formats, layout)
        return write_identity(folder, formats, identity)
    except OSError as error:
        raise OutputError(f"cannot write {folder}", hint="is the disk full?") from error


def write_identity(folder: Path, formats: Mapping[str, SchemeName], identity: Identity) -> Manifest:
    """Writes the manifest of a folder that is whole otherwise; reads all of it."""
    manifest = Manifest(
        name=identity.name,
        licence=identity.licence,
        training=identity.training,
        precision="+".join(sorted({*formats.values()}, reverse=True)) or "bf16",
        files=digest_files(folder),
    )
    write_manifest(folder, manifest)
    return manifest


def _part_of(name: str) -> str:
    if name.startswith(_VISION):
        return "vision"
    return "embedding" if name.startswith(_EMBEDDINGS) else "decoder"


def _tensors(
    reader: CheckpointReader, packed: Mapping[str, PackedTensor], part: str, layout: LayoutName
) -> Iterator[tuple[str, Tensor]]:
    """Stored tensors of a part by canonical name, sorted, read one at a time."""
    names = {canonical_name(info.name): info.name for info in reader}
    for name in sorted(names):
        if _part_of(name) != part:
            continue
        module, _, leaf = name.rpartition(".")
        if leaf == "weight" and module in packed:
            yield from stored_tensors(module, packed[module], layout)
        else:
            yield name, reader.read(names[name])


def _write_shards(folder: Path, part: str, tensors: Iterator[tuple[str, Tensor]]) -> dict[str, str]:
    """Writes a part in as few files as the limit allows; tensor name to file name."""
    shards: list[list[str]] = []
    shard: dict[str, Tensor] = {}
    size = 0
    for name, tensor in tensors:
        if shard and size + tensor.nbytes > _SHARD_TENSOR_BYTES:
            shards.append(_save(folder, part, len(shards), shard))
            shard, size = {}, 0
        # A copy: fused projections share one global scale, and files share no memory.
        shard[name] = tensor.clone(memory_format=torch.contiguous_format)
        size += tensor.nbytes
    if shard:
        shards.append(_save(folder, part, len(shards), shard))
    placed: dict[str, str] = {}
    for i, names in enumerate(shards):
        file = f"{part}-{i + 1:05d}-of-{len(shards):05d}.safetensors"
        _unnumbered(folder, part, i).rename(folder / file)
        placed |= dict.fromkeys(names, file)
    return placed


def _save(folder: Path, part: str, index: int, shard: dict[str, Tensor]) -> list[str]:
    path = _unnumbered(folder, part, index)
    save_file(shard, path, metadata={"format": "pt"})
    # safetensors writes files that only their owner can read.
    path.chmod(0o644)
    return list(shard)


def _unnumbered(folder: Path, part: str, index: int) -> Path:
    # How many shards there are is known once all are written.
    return folder / f"{part}-{index + 1:05d}.part"


def write_settings(
    folder: Path,
    source: Path,
    placed: Mapping[str, str],
    formats: Mapping[str, SchemeName],
    layout: LayoutName,
) -> None:
    """Writes config and index, and copies what else belongs to a checkpoint.

    Args:
        folder: holds the shards.
        source: the bf16 parent.
        placed: tensor name to file name.
        formats: of the packed weights, by their module's canonical name.
        layout: how they are stored.
    """
    for file in _COPIED:
        if (source / file).is_file():
            shutil.copyfile(source / file, folder / file)
    config = with_preset(read_config(source), source)
    if formats:
        # A tied head is the embedding: what reads the folder must not look for scales of its own.
        head = () if "lm_head" in formats else ("lm_head",)
        section, separate = config_sections(formats, (*head, *IGNORED), layout)
        config = {**config, "quantization_config": section}
        if separate is not None:
            _write_json(folder / CONFIG_FILE, separate)
    total = sum((folder / file).stat().st_size for file in set(placed.values()))
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))}
    _write_json(folder / "config.json", config)
    _write_json(folder / INDEX_FILE, index)


def _write_json(path: Path, content: Mapping[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def replace_folder(part: Path, target: Path) -> None:
    """Gives the finished folder its name; an older one leaves only once the new one is whole."""
    try:
        if target.exists():
            old = part.with_suffix(".old")
            target.rename(old)
            part.rename(target)
            shutil.rmtree(old)
        else:
            part.rename(target)
    except OSError as error:
        raise OutputError(f"cannot rename the finished folder to {target}") from error
