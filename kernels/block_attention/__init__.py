"""Causal attention over a key-value cache with an absolute split. See README.md, reference.py."""

from torch import Tensor

from ocria.kernels.sequence_table import SequenceTable
from ocria.kernels.triton_mode import takes_triton

from . import window
from .reference import block_attention
from .window import AttentionWeights, RotaryTable

__all__ = ["AttentionWeights", "RotaryTable", "attention_pass", "block_attention"]


def attention_pass(
    table: SequenceTable,
    layer: int,
    qkv_ME: Tensor,
    rotary: RotaryTable,
    weights: AttentionWeights,
    key_block: int,
) -> Tensor:
    """See `window.attention_pass`."""
    if takes_triton(qkv_ME):
        from .triton_impl import attention_pass as fused

        return fused(table, layer, qkv_ME, rotary, weights, key_block)
    return window.attention_pass(table, layer, qkv_ME, rotary, weights, key_block)
