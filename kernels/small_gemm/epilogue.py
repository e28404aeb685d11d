# mypy: disallow-untyped-defs=false
"""The end of a product: parts of a sum, scales, norm, activation or residual, and the store."""

import triton
import triton.language as tl


@triton.jit
def finish(
    acc, squares, row_scale, residual, y, band, row, num_rows, num_out, num_in, eps,
    FORMAT: tl.constexpr, NORM: tl.constexpr, EPILOGUE: tl.constexpr,
    BLOCK_N: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """Scales, norm, activation or residual, and the store."""
    scale = tl.load(row_scale + band * BLOCK_N + tl.arange(0, BLOCK_N))
    if FORMAT == 2:
        scale = scale * 256.0
    acc = acc * scale[:, None]
    if NORM:
        acc = acc * tl.rsqrt(squares / num_in + eps)[None, :]
    if EPILOGUE == 2:
        pairs = tl.permute(tl.reshape(acc, (BLOCK_N // 2, 2, TILE)), (0, 2, 1))
        gate, up = tl.split(pairs)
        result = gate / (1.0 + tl.exp(-gate)) * up
        n = band * (BLOCK_N // 2) + tl.arange(0, BLOCK_N // 2)
        width = num_out // 2
    else:
        result = acc
        n = band * BLOCK_N + tl.arange(0, BLOCK_N)
        width = num_out
    inside = (n < width)[:, None] & (row < num_rows)[None, :]
    place = row[None, :] * width + n[:, None]
    if EPILOGUE == 1:
        result = result + tl.load(residual + place, mask=inside, other=0.0).to(tl.float32)
    tl.store(y + place, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def finish_parts(
    acc, squares, row_scale, residual, y, partial, arrived, band, row_tile, part, row,
    num_rows, num_out, num_in, eps,
    FORMAT: tl.constexpr, NORM: tl.constexpr, EPILOGUE: tl.constexpr, BLOCK_N: tl.constexpr,
    SPLIT_K: tl.constexpr, TILE: tl.constexpr,
):  # fmt: skip
    """`finish` of a sum [BLOCK_N, TILE] that `SPLIT_K` programs have in parts."""
    if SPLIT_K == 1:
        finish(
            acc, squares, row_scale, residual, y, band, row, num_rows, num_out, num_in, eps,
            FORMAT, NORM, EPILOGUE, BLOCK_N, TILE,
        )  # fmt: skip
    else:
        n = tl.arange(0, BLOCK_N)
        # The last program to arrive adds the parts, in their order: the sum does not depend on
        # who that is.
        SLOT: tl.constexpr = BLOCK_N * TILE + TILE
        cell = row_tile * tl.num_programs(0) + band
        inner = n[:, None] * TILE + tl.arange(0, TILE)[None, :]
        base = partial + cell.to(tl.int64) * (SPLIT_K * SLOT)
        tl.store(base + part * SLOT + inner, acc)
        tl.store(base + part * SLOT + BLOCK_N * TILE + tl.arange(0, TILE), squares)
        tl.debug_barrier()
        before = tl.atomic_add(arrived + cell, 1, sem="acq_rel")
        if before == SPLIT_K - 1:
            tl.debug_barrier()
            total = tl.zeros((BLOCK_N, TILE), tl.float32)
            total_squares = tl.zeros((TILE,), tl.float32)
            for p in tl.static_range(SPLIT_K):
                total += tl.load(base + p * SLOT + inner, cache_modifier=".cg")
                total_squares += tl.load(
                    base + p * SLOT + BLOCK_N * TILE + tl.arange(0, TILE), cache_modifier=".cg"
                )
            tl.store(arrived + cell, 0)
            finish(
                total, total_squares, row_scale, residual, y, band, row, num_rows, num_out,
                num_in, eps, FORMAT, NORM, EPILOGUE, BLOCK_N, TILE,
            )  # fmt: skip
