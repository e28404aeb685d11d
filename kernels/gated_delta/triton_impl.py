"""The mixer of a delta layer in Triton: rows through the convolution, then blocks.

Windows, folds and prefill chunks go by the same kernels: triton_append.py, triton_blocks.py.
"""

import torch
from torch import Tensor

from ocria.kernels.sequence_table import SequenceTable
from ocria.kernels.specimen import Specimen

from . import triton_append, triton_blocks
from .window import DeltaWeights


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
    num_rows, columns = qkvz_MZ.shape[0], weights.num_value_heads * weights.value_dim
    out_MV = torch.empty(num_rows, columns, dtype=qkvz_MZ.dtype, device=qkvz_MZ.device)
    assert weights.taps_XT.stride(0) == 1, "a tap's weights lie in one piece"
    assert qkvz_MZ.stride(1) == 1 and ba_MR.is_contiguous(), "rows lie in one piece"
    rows = triton_append.append_rows(table, layer, qkvz_MZ, ba_MR, weights, prefill=prefill)
    if rows is None:
        triton_blocks.delta_window(table, layer, weights, out_MV)
    else:
        triton_blocks.delta_chunk(table, layer, weights, rows, out_MV)
    return out_MV


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    triton_blocks.delta_fold(table, weights)


def specimens() -> list[Specimen]:
    """Of both files."""
    return triton_append.specimens() + triton_blocks.specimens()
