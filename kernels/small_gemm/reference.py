"""A product with a stored-format weight, norm before and activation behind it: the specification.

Shape legend: M rows, K inputs, N output rows of the weight.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from .layout import PackedWeight, unpack


class Norm(NamedTuple):
    """A zero-centred RMS norm in front of the product: x / rms(x) * gain, gain = 1 + w, [K]."""

    gain_K: Tensor
    eps: float


def small_gemm(
    x_MK: Tensor,
    weight: PackedWeight,
    *,
    norm: Norm | None = None,
    residual_MN: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """y = norm(x) W^T, then + residual or, of a paired weight, SiLU(gate) * up.

    Args:
        x_MK: [M, K].
        weight: [N, K] in tiles.
        norm: applied to x first. Its root mean square multiplies the sum at the end, so what is
            rounded to the dtype of x is x * gain.
        residual_MN: added before the only rounding.
        out_dtype: None takes that of x.

    Returns:
        [M, N], or [M, N / 2] of a paired weight; summed in at least float32.
    """
    wide = torch.promote_types(x_MK.dtype, torch.float32)
    x_wide = x_MK.to(wide)
    if norm is None:
        y_MN = x_wide @ unpack(weight).to(wide).mT
    else:
        scaled = (x_wide * norm.gain_K.to(wide)).to(x_MK.dtype).to(wide)
        rstd = torch.rsqrt(x_wide.square().mean(-1, keepdim=True) + norm.eps)
        y_MN = (scaled @ unpack(weight).to(wide).mT) * rstd
    if weight.paired:
        y_MN = F.silu(y_MN[:, 0::2]) * y_MN[:, 1::2]
    if residual_MN is not None:
        y_MN = y_MN + residual_MN.to(wide)
    return y_MN.to(out_dtype or x_MK.dtype)
