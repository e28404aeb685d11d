# mypy: disallow-untyped-defs=false
"""What the kernels of the delta layer share."""

import triton
import triton.language as tl


@triton.jit
def memory_at(cell, TYPE: tl.constexpr):
    """A tensor by the address that a cell of the table holds; torch aligns far wider than this."""
    return tl.multiple_of(tl.load(cell).to(tl.pointer_type(TYPE)), 16)


@triton.jit
def halves(x):
    """First and second half of the rows of a matrix."""
    folded = tl.reshape(x, (2, x.shape[0] // 2, x.shape[1]))
    return tl.split(tl.permute(folded, (1, 2, 0)))


@triton.jit
def inverse(A_CC, C: tl.constexpr):
    """(I + A)^-1 of a strictly lower triangular A: inverses of diagonal blocks, joined in pairs.

    This is substitution by blocks: it stays exact when keys are nearly alike, where a power series
    overflows. A row depends on the rows of A up to its own; all else is multiplied by exact zeros.
    """
    row, column = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    X_CC = tl.where(row == column, 1.0, 0.0)
    X_CC = X_CC - tl.where(row // 2 == column // 2, A_CC, 0.0)
    for level in tl.static_range(1, 5):
        joins = (row // (2 << level) == column // (2 << level)) & (
            row // (1 << level) != column // (1 << level)
        )
        below = tl.dot(tl.where(joins, A_CC, 0.0), X_CC, input_precision="tf32x3")
        X_CC = X_CC - tl.dot(X_CC, below, input_precision="tf32x3")
    return X_CC
