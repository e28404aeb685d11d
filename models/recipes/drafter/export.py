"""A training checkpoint to a drafter's folder: config.json and model.safetensors, bf16 or FP8.

    python -m ocria.models.recipes.drafter.export RUN/checkpoint.safetensors OUT [--format fp8]

In FP8 every matrix has a scale a row, codebooks too, which are stored as modules for that.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any, Literal

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ocria.quantization import fp8
from ocria.quantization.layouts import config_sections, stored_tensors

_MODEL = "model."
Format = Literal["bf16", "fp8"]


def read_checkpoint(path: Path) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Weights under public names in float32, and the config."""
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
    if kind == "fp8":
        packed = {
            name.removesuffix(".weight"): fp8.quantize(tensor)
            for name, tensor in weights.items()
            if tensor.ndim == 2
        }
        content["quantization_config"], _ = config_sections(packed, (), "compressed-tensors")
        stored = {name: t.bfloat16() for name, t in weights.items() if t.ndim != 2}
        for module, tensor in packed.items():
            stored |= dict(stored_tensors(module, tensor, "compressed-tensors"))
    else:
        stored = {name: tensor.bfloat16() for name, tensor in weights.items()}
    stored = {name: tensor.contiguous() for name, tensor in sorted(stored.items())}
    path = out / "model.safetensors"
    save_file(stored, path, metadata={"format": "pt"})
    (out / "config.json").write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
    return path.stat().st_size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("out", type=Path)
    parser.add_argument("--format", choices=("bf16", "fp8"), default="fp8")
    arguments = parser.parse_args()
    weights, content = read_checkpoint(arguments.checkpoint)
    size = save_drafter(arguments.out, weights, content, arguments.format)
    print(f"{arguments.out}: {size / 2**20:.2f} MiB of weights in {arguments.format}")


if __name__ == "__main__":
    main()
