"""Makes a shipped checkpoint folder from a bf16 Hugging Face folder; same input, same bytes.

    python -m ocria.models.recipes.checkpoint.make SOURCE TARGET [--quantized FOLDER]
        [--name NAME] [--training FILE]

The vision tower keeps its bytes, in shards of its own, so that a remade decoder does not commit
it again. Decoder linears become NVFP4, the embedding FP8; norms, convolutions and the gates of
the recurrence stay as they are. With `--quantized`, decoder and embedding come from a folder that
`ocria quantize` has made of SOURCE; without, they are rounded to nearest.
"""

import argparse
import csv
import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.calibration.folder import PLOT_FILE, TABLE_FILE
from ocria.models.qwen3_5.config import Qwen35Config, read_config
from ocria.models.recipes.checkpoint import card, formats
from ocria.quantization.schemes import FP8, NVFP4
from ocria.weights import CheckpointReader, Manifest, write_manifest
from ocria.weights.manifest import digest_files
from ocria.weights.shards import INDEX_FILE

MIB = 1 << 20
# Bytes that the repository allows: for one file, for the tower, and for decoder with embedding.
FILE_LIMIT = 16 * MIB
VISION_LIMIT = int(30.5 * MIB)
DECODER_LIMIT = 19 * MIB
# Room for a shard's header.
_SHARD_TENSOR_BYTES = FILE_LIMIT - MIB // 8
TOKENIZER_FILE = "tokenizer.json"
_COPIED = ("generation_config.json", "tokenizer_config.json")


def make(
    source: Path,
    target: Path,
    *,
    name: str,
    training: str,
    grayscale: bool,
    quantized: Path | None = None,
) -> Manifest:
    """Writes the checkpoint into `target`, an empty or new folder.

    `quantized` is a folder that `ocria quantize` has made of `source`; None rounds to nearest.

    Raises:
        WeightsError: `source` is not a qwen3_5 checkpoint.
        ValueError: the result does not fit the repository's byte limits, or weights are damaged.
    """
    Qwen35Config.from_folder(source)
    target.mkdir(parents=True, exist_ok=True)
    if any(target.iterdir()):
        raise ValueError(f"{target} is not empty")
    reader = CheckpointReader(source)
    vision = _write_shards(target, "vision", formats.vision_tensors(reader))
    if quantized is None:
        parts = formats.decoder_tensors(reader), formats.embedding_tensors(reader)
        section = formats.CONFIG.to_json()
    else:
        ready = CheckpointReader(quantized)
        parts = (
            formats.ready_tensors(ready, embedding=False),
            formats.ready_tensors(ready, embedding=True),
        )
        section = read_config(quantized)["quantization_config"]
    decoder = _write_shards(target, "decoder", parts[0])
    decoder |= _write_shards(target, "embedding", parts[1])
    _check_bytes(target, set(vision.values()), VISION_LIMIT)
    _check_bytes(target, set(decoder.values()), DECODER_LIMIT)
    max_pixels = _write_settings(
        source, target, vision | decoder, section=section, grayscale=grayscale
    )
    manifest = Manifest(
        name=name,
        licence="Apache-2.0",
        training=training,
        precision=f"{NVFP4.name}+{FP8.name}",
        files=digest_files(target),
    )
    write_manifest(target, manifest)
    text = card.model_card(
        manifest,
        Qwen35Config.from_folder(target),
        num_parameters=sum(math.prod(info.shape) for info in reader),
        max_pixels=max_pixels,
        wide=_wide(target),
        sensitivity=_sensitivity(quantized, target),
    )
    (target / "README.md").write_text(text, encoding="utf-8")
    return manifest


def _write_shards(target: Path, part: str, tensors: Iterator[tuple[str, Tensor]]) -> dict[str, str]:
    """Writes a part in as few files as the limit allows; tensor name to file name."""
    shards: list[dict[str, Tensor]] = [{}]
    size = 0
    for name, tensor in tensors:
        if size + tensor.nbytes > _SHARD_TENSOR_BYTES and shards[-1]:
            shards.append({})
            size = 0
        # A copy: fused projections share one global scale, and files share no memory.
        shards[-1][name] = tensor.clone(memory_format=torch.contiguous_format)
        size += tensor.nbytes
    placed = {}
    for i, shard in enumerate(shards, start=1):
        file = f"{part}-{i:05d}-of-{len(shards):05d}.safetensors"
        save_file(shard, target / file, metadata={"format": "pt"})
        # safetensors writes files that only their owner can read.
        (target / file).chmod(0o644)
        placed |= dict.fromkeys(shard, file)
    return placed


def _check_bytes(target: Path, files: set[str], limit: int) -> None:
    sizes = {file: (target / file).stat().st_size for file in sorted(files)}
    too_large = [file for file, size in sizes.items() if size >= FILE_LIMIT]
    if too_large or sum(sizes.values()) > limit:
        raise ValueError(f"over {limit} bytes together or {FILE_LIMIT} in one file: {sizes}")


def _write_settings(
    source: Path,
    target: Path,
    placed: dict[str, str],
    *,
    section: dict[str, Any],
    grayscale: bool,
) -> int:
    """Writes the JSON files; pixels of the largest page that the preprocessor lets through."""
    for file in _COPIED:
        if (source / file).is_file():
            shutil.copyfile(source / file, target / file)
    # Indents would be half of it.
    tokenizer = json.loads((source / TOKENIZER_FILE).read_text(encoding="utf-8"))
    text = json.dumps(tokenizer, ensure_ascii=False, separators=(",", ":"))
    (target / TOKENIZER_FILE).write_text(text + "\n", encoding="utf-8")
    preprocessor = json.loads((source / "preprocessor_config.json").read_text(encoding="utf-8"))
    config = {**read_config(source), "quantization_config": section}
    total = sum((target / file).stat().st_size for file in set(placed.values()))
    index = {"metadata": {"total_size": total}, "weight_map": dict(sorted(placed.items()))}
    _write_json(target / "config.json", config)
    _write_json(target / "preprocessor_config.json", {**preprocessor, "do_grayscale": grayscale})
    _write_json(target / INDEX_FILE, index)
    return int(preprocessor["size"]["longest_edge"])


def _wide(target: Path) -> list[str]:
    """Decoder modules that are stored in FP8."""
    layers = (info for info in CheckpointReader(target) if ".layers." in info.name)
    codes = (info for info in layers if info.name.endswith(".weight"))
    return [
        info.name.removesuffix(".weight") for info in codes if info.dtype is torch.float8_e4m3fn
    ]


def _sensitivity(quantized: Path | None, target: Path) -> list[dict[str, str]]:
    """Rows of the sensitivity table, if one was measured; its plot goes into `target`."""
    if quantized is None or not (quantized / TABLE_FILE).is_file():
        return []
    shutil.copyfile(quantized / PLOT_FILE, target / PLOT_FILE)
    with (quantized / TABLE_FILE).open(encoding="utf-8", newline="") as file:
        return list(csv.DictReader(file))


def _write_json(path: Path, content: dict[str, Any]) -> None:
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    path.write_text(text, encoding="utf-8")


def main() -> None:
    """Command line of this recipe."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("source", type=Path, help="bf16 folder")
    parser.add_argument("target", type=Path, help="folder to make")
    parser.add_argument("--quantized", type=Path, help="folder that `ocria quantize` has made")
    parser.add_argument("--name", default="ocria-nano")
    parser.add_argument("--training", type=Path, help="text file: what the weights were trained on")
    parser.add_argument("--colour", action="store_true", help="the model reads colour, not grey")
    given = parser.parse_args()
    training = (
        given.training.read_text(encoding="utf-8").strip() if given.training else card.TRAINING
    )
    manifest = make(
        given.source,
        given.target,
        name=given.name,
        training=training,
        grayscale=not given.colour,
        quantized=given.quantized,
    )
    for file in manifest.files:
        print(f"{file.num_bytes:>10}  {file.sha256}  {file.name}")
    print(f"{manifest.num_bytes:>10}  {manifest.digest}  {manifest.name}")


if __name__ == "__main__":
    main()
