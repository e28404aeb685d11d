"""A training checkpoint to a drafter's folder: config.json and model.safetensors.

    python -m ocria.models.recipes.drafter.export RUN/checkpoint.safetensors OUT [--format fp8]

In FP8 every matrix has a scale a row, codebooks too, which are stored as modules for that; `mixed`
has the feed-forward matrices, and the one that joins taps, in NVFP4. A folder that was exported can
be the source as well.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ocria.models.drafter.loading import canonical_name
from ocria.models.qwen3_5.config import read_config
from ocria.quantization import fp8, nvfp4
from ocria.quantization.layouts import (
    PackedTensor,
    config_sections,
    format_of,
    read_quantization,
    stored_tensors,
)
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader

_MODEL = "model."
_JOINS_TAPS = "fc.weight"
Format = Literal["bf16", "fp8", "mixed"]
FORMATS: tuple[Format, ...] = ("bf16", "fp8", "mixed")


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights under public names in float32, and the config without formats.

    Args:
        path: a training checkpoint, or a folder that `save_drafter` has written.
    """
    if path.is_dir():
        content = read_config(path)
        formats = read_quantization(path, content)
        source = QuantizedSource(CheckpointReader(path), formats, canonical_name)
        content.pop("quantization_config", None)
        return {name: source.read(name, torch.float32) for name in source.names()}, content
    with safe_open(path, "pt") as file:
        content = json.loads(file.metadata()["config"])
        weights = {
            name.removeprefix(_MODEL): file.get_tensor(name)
            for name in file.keys()  # noqa: SIM118  the file is no mapping
            if name.startswith(_MODEL)
        }
    return weights, content


def save_drafter(
    out: Path, weights: dict[str, Tensor], content: dict[str, Any], kind: Format
) -> int:
    """Writes the folder; bytes of its weights."""
    out.mkdir(parents=True, exist_ok=True)
    content = dict(content)
    if kind != "bf16":
        packed = {
            name.removesuffix(".weight"): _packed(name, tensor, kind)
            for name, tensor in weights.items()
            if tensor.ndim == 2
        }
        formats = {module: format_of(tensor) for module, tensor in packed.items()}
        content["quantization_config"], _ = config_sections(formats, (), "compressed-tensors")
        stored = {name: t.bfloat16() for name, t in weights.items() if t.ndim != 2}
        for module, tensor in packed.items():
            stored |= dict(stored_tensors(module, tensor, "compressed-tensors"))
    else:
        stored = {name: tensor.bfloat16() for name, tensor in weights.items()}
    stored = {name: tensor.contiguous() for name, tensor in sorted(stored.items())}
    path = out / "model.safetensors"
    save_file(stored, path, metadata={"format": "pt"})
    # safetensors writes files that only their owner can read.
    path.chmod(0o644)
    (out / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path.stat().st_size


def _packed(name: str, weight_NK: Tensor, kind: Format) -> PackedTensor:
    narrow = kind == "mixed" and (".mlp." in name or name == _JOINS_TAPS)
    return (nvfp4 if narrow else fp8).quantize(weight_NK)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--format", choices=FORMATS, default="fp8")
    arguments = parser.parse_args()
    weights, content = read_checkpoint(arguments.checkpoint)
    size = save_drafter(arguments.out, weights, content, arguments.format)
    print(f"{arguments.out}: {size / 2**20:.2f} MiB of weights in {arguments.format}")


if __name__ == "__main__":
    main()
