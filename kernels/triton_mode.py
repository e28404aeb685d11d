"""Whether a call takes Triton, and whether Triton itself is interpreted."""

import os

import torch
from torch import Tensor


def is_interpreted() -> bool:
    """Whether kernels run in Triton's interpreter on the CPU.

    Its bfloat16 arithmetic is wrong (it is kept as uint16), so kernels widen to float32 there, in a
    branch that a compiled kernel does not have.
    """
    return os.environ.get("TRITON_INTERPRET") == "1"


def takes_triton(x: Tensor) -> bool:
    """Whether an operation on `x` runs as a Triton kernel: bfloat16 on a CUDA device."""
    return x.is_cuda and x.dtype == torch.bfloat16
