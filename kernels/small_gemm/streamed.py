# mypy: disallow-untyped-defs=false
"""The product of wide codes from memory: programs of one warp, codes straight to registers.

A program takes 16 output rows of the weight and a tile of 16 rows of x. Codes are read two steps
ahead, x comes from the L1, and nobody waits at a barrier. A norm's gains, which every program would
multiply, go before, once a row. Shape legend: see reference.py. No GPU has run it: README.md.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .epilogue import finish_parts
from .reference import Norm
from .streamed_fragments import (
    FOUR_PLACES,
    e2m1_tile,
    e2m1_words,
    e4m3_tile,
    e4m3_words,
    gathered,
)


@triton.jit
def _rows(
    x, row_tile, first, num_rows, stride, NUM_IN: tl.constexpr, BLOCK_K: tl.constexpr,
    TILE: tl.constexpr,
):  # fmt: skip
    """Columns of x [BLOCK_K, TILE] in the order of codes, straight from the L1 to the lanes.

    Behind the last row it is read again: nobody stores that, and no mask takes instructions.
    """
    tl.static_assert(TILE == 16)
    GROUPS: tl.constexpr = BLOCK_K // 64
    lane, inner = tl.arange(0, 32)[:, None], tl.arange(0, 8)[None, :]
    column = first + lane % 4 * 16 + inner
    row = row_tile * TILE + lane // 4
    low = x + tl.minimum(row, num_rows - 1) * stride + column
    high = x + tl.minimum(row + 8, num_rows - 1) * stride + column
    left = tl.full((32, 8), 1, tl.int32)
    falls: tl.constexpr = 0 if NUM_IN % BLOCK_K == 0 else 1
    if falls:
        left = NUM_IN - column + tl.zeros((32, 8), tl.int32)
    a = gathered(low, left, 64, 64 * falls, GROUPS, "")
    b = gathered(low + 8, left - 8 * falls, 64, 64 * falls, GROUPS, "")
    c = gathered(high, left, 64, 64 * falls, GROUPS, "")
    d = gathered(high + 8, left - 8 * falls, 64, 64 * falls, GROUPS, "")
    # g, t, j - 2 u, h, e, groups, u, rows / 8.
    parts = tl.join(tl.join(a, b), tl.join(c, d))
    parts = tl.reshape(parts, (8, 4, 2, 2, 2, GROUPS, 2, 2))
    if FOUR_PLACES:
        turned = tl.permute(parts, (5, 6, 2, 1, 3, 4, 7, 0))
    else:
        turned = tl.permute(parts, (5, 6, 2, 3, 1, 4, 7, 0))
    return tl.reshape(turned, (BLOCK_K, TILE))


@triton.jit
def _stored(codes, block_scales, tile, left, FORMAT: tl.constexpr, BLOCK_K: tl.constexpr):
    """A tile as it is stored, and its block scales if it has any; zeros if none is `left`."""
    tile = tile.to(tl.int64)
    if FORMAT == 2:
        return e2m1_words(codes, block_scales, tile, left, BLOCK_K)
    else:
        return e4m3_words(codes, tile, left, BLOCK_K), 0


@triton.jit
def _more(
    acc, word, scale, x, row_tile, step, num_rows, stride_x,
    FORMAT: tl.constexpr, NUM_IN: tl.constexpr, BLOCK_K: tl.constexpr, TILE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """The sum with one step's products."""
    w = e2m1_tile(word, scale, BLOCK_K, WIDE) if FORMAT == 2 else e4m3_tile(word, BLOCK_K, WIDE)
    x_KM = _rows(x, row_tile, step * BLOCK_K, num_rows, stride_x, NUM_IN, BLOCK_K, TILE)
    if WIDE:
        x_KM = x_KM.to(tl.float32)
    return tl.dot(w, x_KM, acc)


@triton.jit
def gains_kernel(x, gain, y, squares, num_in, stride_x, WIDTH: tl.constexpr, WIDE: tl.constexpr):
    """A norm's gains on x, and sums of squares. Grid: rows."""
    row, k = tl.program_id(0), tl.arange(0, WIDTH)
    inside = k < num_in
    wide = tl.load(x + row * stride_x + k, mask=inside, other=0.0).to(tl.float32)
    tl.store(squares + row, tl.sum(wide * wide))
    scaled = rounded(wide * tl.load(gain + k, mask=inside, other=0.0), WIDE)
    tl.store(y + row * num_in + k, scaled.to(y.dtype.element_ty), mask=inside)


# The arguments of `small_gemm_kernel`, in its order.
@triton.jit(do_not_specialize=["num_rows"])
def streamed_kernel(
    x, codes, block_scales, row_scale, row_squares, residual, y, partial, arrived,
    num_rows, num_out, NUM_IN: tl.constexpr, stride_x, eps,
    FORMAT: tl.constexpr, NORM: tl.constexpr, EPILOGUE: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STEPS: tl.constexpr,
    SPLIT_K: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: bands of the weight, tiles of rows, parts of K.

    With a norm x has its gains, and `row_squares` are the sums of squares (`gains_kernel`).
    """
    tl.static_assert(BLOCK_N == 16)
    tl.static_assert(FORMAT != 0)
    band, row_tile, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = row_tile * TILE + tl.arange(0, TILE)
    STEPS: tl.constexpr = (NUM_STEPS + SPLIT_K - 1) // SPLIT_K
    first = part * STEPS
    last = tl.minimum(first + STEPS, NUM_STEPS)
    acc = tl.zeros((BLOCK_N, TILE), tl.float32)
    squares = tl.zeros((TILE,), tl.float32)
    tile = band * NUM_STEPS
    word, scale = _stored(codes, block_scales, tile + first, last - first, FORMAT, BLOCK_K)
    next_word, next_scale = _stored(
        codes, block_scales, tile + first + 1, last - first - 1, FORMAT, BLOCK_K
    )
    for step in tl.range(first, last, num_stages=1, loop_unroll_factor=2):
        last_word, last_scale = _stored(
            codes, block_scales, tile + step + 2, last - step - 2, FORMAT, BLOCK_K
        )
        acc = _more(
            acc, word, scale, x, row_tile, step, num_rows, stride_x,
            FORMAT, NUM_IN, BLOCK_K, TILE, WIDE,
        )  # fmt: skip
        word, scale = next_word, next_scale
        next_word, next_scale = last_word, last_scale
    if NORM:
        at = row_squares + tl.minimum(row, num_rows - 1)
        # Parts of a sum are added: the first one has the squares.
        if first == 0:
            squares = tl.load(at)
    finish_parts(
        acc, squares, row_scale, residual, y, partial, arrived, band, row_tile, part, row,
        num_rows, num_out, NUM_IN, eps, FORMAT, NORM, EPILOGUE, BLOCK_N, SPLIT_K, TILE,
    )  # fmt: skip


def with_gains(x_MK: Tensor, norm: Norm) -> tuple[Tensor, Tensor]:
    """x times the norm's gains, [M, K] in its dtype, and the rows' sums of squares, float32 [M]."""
    num_rows, num_in = x_MK.shape
    y_MK = torch.empty(num_rows, num_in, dtype=x_MK.dtype, device=x_MK.device)
    squares_M = torch.empty(num_rows, device=x_MK.device)
    gains_kernel[(num_rows,)](
        x_MK, norm.gain_K, y_MK, squares_M, num_in, x_MK.stride(0),
        WIDTH=triton.next_power_of_2(num_in), WIDE=is_interpreted(), num_warps=8,
    )  # fmt: skip
    return y_MK, squares_M
