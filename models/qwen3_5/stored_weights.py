"""A decoder that keeps its weights as they are stored, where memory lacks for plain ones."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn

from ocria.models.layers.linear import TiledLinear
from ocria.models.qwen3_5.model import Qwen35
from ocria.quantization.linear import PackedLinear
from ocria.quantization.rounded_source import Stored
from ocria.quantization.schemes import WeightScheme

_EMBEDDING = "model.language_model.embed_tokens"
# Share of the free memory that plain weights may take: states, pages and vision need room too.
_SHARE = 0.5


class CodedSource(Protocol):
    """Tensors that can be had as they are stored."""

    def names(self) -> Iterable[str]:
        """Names of all logical tensors."""
        ...

    def scheme(self, name: str) -> WeightScheme | None:
        """Format of a tensor, None for plain numbers."""
        ...

    def read_packed(self, name: str) -> Stored:
        """The tensor in its format."""
        ...


class StoredEmbedding(nn.Module):
    """Rows of a packed matrix; `weight` only says where they go and in which dtype."""

    def __init__(self, stored: PackedLinear, weight: Tensor) -> None:
        super().__init__()
        self.stored = stored
        self.weight = weight

    def forward(self, ids_T: Tensor) -> Tensor:
        """[T] -> [T, D]."""
        return self.stored.rows(ids_T, self.weight.dtype)


def hold_stored(model: Qwen35, source: CodedSource, dtype: torch.dtype) -> set[str]:
    """Gives every product whose weight is quantised the packed one; names that are taken care of.

    Args:
        model: built on the meta device, before anything is assigned to it.
        source: the checkpoint.
        dtype: of activations.

    Raises:
        WeightsError: scales that are none.
    """
    held, names = set(), set(source.names())
    for name, module in model.named_modules():
        weight = f"{name}.weight"
        if isinstance(module, TiledLinear) and weight in names and source.scheme(weight):
            module.hold(_packed(source, weight))
            held.add(weight)
    weight = f"{_EMBEDDING}.weight"
    if source.scheme(weight):
        packed = _packed(source, weight)
        decoder = model.model.language_model
        decoder.embed_tokens = StoredEmbedding(packed, torch.empty(0, dtype=dtype))
        held.add(weight)
        if model.tied:
            model.lm_head.hold(packed)
    return held


def plain_weights_fit(num_weights: int, dtype: torch.dtype) -> bool:
    """Whether plain weights leave enough of the memory that is free now."""
    return num_weights * dtype.itemsize <= _SHARE * free_bytes()


def free_bytes() -> int:
    """Memory that can be had without swapping; all of it where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
        fields = dict(line.split(":", 1) for line in lines)
        return int(fields["MemAvailable"].split()[0]) * 1024
    except (OSError, KeyError, ValueError):
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def _packed(source: CodedSource, name: str) -> PackedLinear:
    return PackedLinear([source.read_packed(name)])
