"""Products of few rows with NVFP4, FP8 or bfloat16 weights. See README.md and reference.py."""

import torch
from torch import Tensor

from ocria.kernels.dispatch import with_kernel
from ocria.kernels.triton_mode import takes_triton

from . import reference
from .layout import BY_RULE, PackedWeight, Tiling, TilingTable, WeightCodes, pack, unpack
from .reference import Norm

__all__ = [
    "BY_RULE",
    "Norm",
    "PackedWeight",
    "Tiling",
    "TilingTable",
    "WeightCodes",
    "pack",
    "small_gemm",
    "two_products",
    "unpack",
]

small_gemm = with_kernel(reference.small_gemm)


def two_products(
    x_MK: Tensor,
    first: PackedWeight,
    second: PackedWeight,
    *,
    norm: Norm | None,
    second_dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """Both products of the same rows, the second in `second_dtype`.

    One launch where the weights' tilings agree; each number has the bits that it has alone.
    """
    if takes_triton(x_MK):
        from .triton_impl import can_join
        from .triton_impl import two_products as fused

        if can_join(first, second):
            return fused(x_MK, first, second, norm=norm, second_dtype=second_dtype)
    return (
        small_gemm(x_MK, first, norm=norm),
        small_gemm(x_MK, second, norm=norm, out_dtype=second_dtype),
    )
