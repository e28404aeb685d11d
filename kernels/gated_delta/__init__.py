"""Gated delta rule over absolute blocks of rows. See README.md, reference.py and window.py."""

from torch import Tensor

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


def delta_pass(
    table: SequenceTable,
    layer: int,
    qkvz_MZ: Tensor,
    ba_MR: Tensor,
    weights: DeltaWeights,
    *,
    prefill: bool,
) -> Tensor:
    """See `window.delta_pass`."""
    if takes_triton(qkvz_MZ):
        from .triton_impl import delta_pass as fused

        return fused(table, layer, qkvz_MZ, ba_MR, weights, prefill=prefill)
    return window.delta_pass(table, layer, qkvz_MZ, ba_MR, weights, prefill=prefill)


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    if takes_triton(table.memory[0].conv_in_LEX):
        from .triton_impl import delta_fold as fused

        return fused(table, weights)
    return window.delta_fold(table, weights)
