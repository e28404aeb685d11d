"""Turns a drafter's folder into a module for one target, or says why the two do not fit."""

from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import torch
from torch import Tensor

from ocria.errors import WeightsError
from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.model import DFlash
from ocria.models.qwen3_5.config import read_config
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader, assign
from ocria.weights.manifest import DRAFTER_FOLDER

_CODEBOOKS = ("predecessor_codebook", "successor_codebook")
# Foreign spellings of tensors that are the same.
_DIALECT = {
    "encoder.fc.weight": "fc.weight",
    "encoder.output_norm_enc.weight": "hidden_norm.weight",
}


@runtime_checkable
class DraftHost(Protocol):
    """A target that drafters can be made for: its sizes, and what it lends them."""

    vocab_size: int
    hidden_size: int
    num_layers: int
    device: torch.device
    dtype: torch.dtype

    def embed(self, ids: Tensor) -> Tensor:
        """Embedding rows [T, H]."""
        ...

    def head(self, hidden_TH: Tensor) -> Tensor:
        """Logits [T, V]."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class LoadedDrafter:
    """A drafter that is ready to propose.

    Attributes:
        model: packed for its device.
        precision: storage format, such as `fp8`.
        folder: where it came from.
    """

    model: DFlash
    precision: str
    folder: Path


def find_drafter(checkpoint: Path, named: Path | None = None) -> Path | None:
    """Folder of the drafter that lies in a checkpoint's, or of the one named; None without one.

    Raises:
        WeightsError: `named` is not a drafter's folder.
    """
    if named is None:
        inside = checkpoint / DRAFTER_FOLDER
        return inside if (inside / "config.json").is_file() else None
    if not (named / "config.json").is_file():
        raise WeightsError(
            f"no drafter in {named}", hint="a drafter's folder holds config.json and *.safetensors"
        )
    return named


def load_drafter(folder: Path, host: DraftHost) -> LoadedDrafter:
    """Reads a drafter of either generation for the target `host`.

    Raises:
        WeightsError: damaged files, tensors missing or left over, or made for another target.
    """
    content = read_config(folder)
    config = DrafterConfig.from_mapping(content)
    _check_fit(config, host)
    with torch.device("meta"):
        model = DFlash(config)
    reader = CheckpointReader(folder)
    source = QuantizedSource(reader, read_quantization(folder, content), canonical_name)
    report = assign(model, source, dtype=host.dtype)
    if report.unexpected:
        # A second-generation drafter read as a first would draft, and badly.
        raise WeightsError(
            f"the drafter holds tensors that its config does not explain: "
            f"{', '.join(report.unexpected[:5])}",
            hint="config.json and weights must come from the same checkpoint",
        )
    # Frequencies were made on the meta device with the module.
    model.reset_frequencies()
    model.to(host.device).requires_grad_(False).eval()
    model.pack()
    precision = "+".join(source.formats()) or str(host.dtype).removeprefix("torch.")
    return LoadedDrafter(model=model, precision=precision, folder=folder)


def canonical_name(stored: str) -> str:
    """The public name of a stored tensor.

    A codebook is a bare parameter; stored in FP8 it has a module's name, for its scales.
    """
    module, _, leaf = stored.rpartition(".")
    if leaf == "weight" and module.rpartition(".")[2] in _CODEBOOKS:
        return module
    return _DIALECT.get(stored, stored)


def _check_fit(config: DrafterConfig, host: DraftHost) -> None:
    """Holds the config against the target."""
    hint = "a drafter works with the target it was trained for, and no other"
    for what, ours, theirs in (
        ("hidden size", config.hidden_size, host.hidden_size),
        ("vocabulary", config.vocab_size, host.vocab_size),
        ("target depth", config.num_target_layers or host.num_layers, host.num_layers),
    ):
        if ours != theirs:
            raise WeightsError(
                f"the drafter was made for another target: its {what} is {ours}, "
                f"the model's {theirs}",
                hint=hint,
            )
    beyond = [layer for layer in config.target_layer_ids if not 0 <= layer < host.num_layers]
    if beyond:
        raise WeightsError(
            f"the drafter reads layer {beyond[0]}, the model has 0 to {host.num_layers - 1}",
            hint=hint,
        )
    if config.mask_token_id >= host.vocab_size:
        raise WeightsError(
            f"the drafter's mask token {config.mask_token_id} is outside the vocabulary of "
            f"{host.vocab_size}",
            hint=hint,
        )
