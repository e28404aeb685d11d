"""The inverse of unit lower triangular matrices, one launch forward and two products backward."""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # Triton is made for Linux alone; without it no device runs this either.
    triton = None


def joined_inverse(lower: Tensor) -> Tensor:
    """(I + A)^-1 for strictly lower triangular A [..., C, C], joining diagonal blocks.

    As stable as substitution; a power series overflows where neighbouring keys are alike, as on
    blank paper.
    """
    size = lower.shape[-1]
    lead = lower.shape[:-2]
    blocks = lower.new_ones(*lead, size, 1, 1)
    half = 1
    while half < size:
        count = size // (2 * half)
        tiles = lower.reshape(*lead, count, 2 * half, count, 2 * half)
        corner = tiles.diagonal(dim1=-4, dim2=-2).movedim(-1, -3)[..., half:, :half]
        pairs = blocks.reshape(*lead, count, 2, half, half)
        first, second = pairs[..., 0, :, :], pairs[..., 1, :, :]
        joined = -corner if half == 1 else -(second @ (corner @ first))
        top = torch.cat([first, torch.zeros_like(joined)], -1)
        blocks = torch.cat([top, torch.cat([joined, second], -1)], -2)
        half *= 2
    return blocks.reshape(*lead, size, size)


if triton is not None:

    @triton.jit
    def _substitute(lower, inverse, SIZE: tl.constexpr):
        """Rows of one matrix's inverse, each from those above it, in float32."""
        base = tl.program_id(0).to(tl.int64) * SIZE * SIZE
        columns = tl.arange(0, SIZE)
        cells = columns[:, None] * SIZE + columns[None, :]
        found = tl.where(columns[:, None] == columns[None, :], 1.0, 0.0)
        for row in range(1, SIZE):
            # Entries at and after the diagonal are zero, so rows not yet found do not count.
            weights = tl.load(lower + base + row * SIZE + columns)
            summed = tl.sum(weights[:, None] * found, axis=0)
            found = tl.where(columns[:, None] == row, found - summed[None, :], found)
        tl.store(inverse + base + cells, found)


@torch.library.custom_op("ocria_recipes::unit_lower_inverse", mutates_args=())
def unit_lower_inverse(lower: Tensor) -> Tensor:
    """(I + A)^-1 for strictly lower triangular A [G, C, C], float32.

    By substitution on a GPU, by joined blocks elsewhere. The gradient is that of any inverse,
    -X^T dX X^T, instead of one through each step.
    """
    if not lower.is_cuda:
        return joined_inverse(lower)
    lower, inverse = (
        lower.contiguous(),
        torch.empty_like(lower, memory_format=torch.contiguous_format),
    )
    _substitute[(lower.shape[0],)](lower, inverse, SIZE=lower.shape[-1], num_warps=4)
    return inverse


@unit_lower_inverse.register_fake
def _(lower: Tensor) -> Tensor:
    return torch.empty_like(lower, memory_format=torch.contiguous_format)


def _save(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(output)


def _backward(ctx, grad: Tensor) -> Tensor:  # type: ignore[no-untyped-def]
    (inverse,) = ctx.saved_tensors
    return -(inverse.mT @ (grad @ inverse.mT)).tril(-1)


unit_lower_inverse.register_autograd(_backward, setup_context=_save)
