# mypy: disallow-untyped-defs=false
"""What the kernels of the delta layer share."""

import triton
import triton.language as tl


@triton.jit
def memory_at(cell, TYPE: tl.constexpr):
    """A tensor by the address that a cell of the table holds; torch aligns far wider than this."""
    return tl.multiple_of(tl.load(cell).to(tl.pointer_type(TYPE)), 16)
