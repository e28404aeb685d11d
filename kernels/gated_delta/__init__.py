"""Gated delta rule over absolute blocks of rows. See README.md, reference.py and window.py."""

from ocria.kernels.dispatch import with_kernel
from ocria.kernels.sequence_table import SequenceTable
from ocria.kernels.triton_mode import takes_triton

from . import window
from .reference import causal_conv_silu, decay_and_beta, delta_blocks
from .window import DeltaWeights

__all__ = [
    "DeltaWeights",
    "causal_conv_silu",
    "decay_and_beta",
    "delta_blocks",
    "delta_fold",
    "delta_pass",
]

delta_pass = with_kernel(window.delta_pass)


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    if takes_triton(table.memory[0].conv_in_LEX):
        from .triton_impl import delta_fold as fused

        return fused(table, weights)
    return window.delta_fold(table, weights)
