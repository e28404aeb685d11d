"""RMS norm of every head, then a gate: the specification.

Shape legend: M rows, R heads, W head width.
"""

import torch
import torch.nn.functional as F
from torch import Tensor


def gated_norm(x_MV: Tensor, z_MV: Tensor, gain_W: Tensor, eps: float) -> Tensor:
    """x / rms(x) * gain * SiLU(z), norm before gate; one gain for all heads.

    Args:
        x_MV: [M, R * W].
        z_MV: likewise; rows may lie apart.
        gain_W: [W], plain.
        eps: of the norm.

    Returns:
        [M, R * W] in the dtype of x, rounded once.
    """
    wide = torch.promote_types(x_MV.dtype, torch.float32)
    x_MRW = x_MV.to(wide).unflatten(-1, (-1, gain_W.shape[0]))
    normal_MRW = x_MRW * torch.rsqrt(x_MRW.square().mean(-1, keepdim=True) + eps)
    return ((normal_MRW * gain_W.to(wide)).flatten(1) * F.silu(z_MV.to(wide))).to(x_MV.dtype)
