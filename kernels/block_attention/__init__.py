"""Causal attention over a key-value cache with an absolute split. See README.md, reference.py."""

from .reference import block_attention

__all__ = ["block_attention"]
