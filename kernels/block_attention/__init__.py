"""Causal attention over a key-value cache with an absolute split. See README.md, reference.py."""

from ocria.kernels.dispatch import with_kernel

from . import window
from .reference import block_attention
from .window import AttentionWeights, RotaryTable

__all__ = ["AttentionWeights", "RotaryTable", "attention_pass", "block_attention"]

attention_pass = with_kernel(window.attention_pass)
