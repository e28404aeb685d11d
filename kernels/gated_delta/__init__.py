"""Gated delta rule over absolute blocks of rows. See README.md and reference.py."""

from .reference import causal_conv_silu, decay_and_beta, delta_blocks

__all__ = ["causal_conv_silu", "decay_and_beta", "delta_blocks"]
