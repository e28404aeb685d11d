"""Best tokens without materialised logits. See README.md and reference.py."""

from torch import Tensor

from ocria.kernels.small_gemm import Norm, PackedWeight
from ocria.kernels.triton_mode import takes_triton

from . import reference
from .reference import BestTokens

__all__ = ["BestTokens", "best_tokens"]


def best_tokens(
    x_MD: Tensor, weight: PackedWeight, *, norm: Norm | None, forbidden_V: Tensor
) -> BestTokens:
    """See `reference.best_tokens`."""
    if takes_triton(x_MD):
        from .triton_impl import best_tokens as fused

        return fused(x_MD, weight, norm=norm, forbidden_V=forbidden_V)
    return reference.best_tokens(x_MD, weight, norm=norm, forbidden_V=forbidden_V)
