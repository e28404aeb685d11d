"""RMS norm of every head, then a gate. See README.md and reference.py."""

from torch import Tensor

from ocria.kernels.triton_mode import takes_triton

from . import reference

__all__ = ["gated_norm"]


def gated_norm(x_MV: Tensor, z_MV: Tensor, gain_W: Tensor, eps: float) -> Tensor:
    """See `reference.gated_norm`."""
    if takes_triton(x_MV):
        from .triton_impl import gated_norm as fused

        return fused(x_MV, z_MV, gain_W, eps)
    return reference.gated_norm(x_MV, z_MV, gain_W, eps)
