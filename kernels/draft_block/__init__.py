"""What a DFlash layer does between its products. See README.md and reference.py."""

from torch import Tensor

from ocria.kernels.small_gemm import Norm
from ocria.kernels.triton_mode import takes_triton

from . import reference
from .reference import DraftHeads, DraftSight

__all__ = ["DraftHeads", "DraftSight", "draft_attention", "mixed_rows", "write_context"]


def mixed_rows(
    x_BH: Tensor,
    coefficients_BC: Tensor,
    base_OH: Tensor,
    first: int,
    *,
    norm: Norm | None = None,
    residual_BH: Tensor | None = None,
) -> Tensor:
    """See `reference.mixed_rows`."""
    if takes_triton(x_BH):
        from .triton_impl import mixed_rows as fused

        return fused(x_BH, coefficients_BC, base_OH, first, norm=norm, residual_BH=residual_BH)
    return reference.mixed_rows(
        x_BH, coefficients_BC, base_OH, first, norm=norm, residual_BH=residual_BH
    )


def write_context(
    made_RE: Tensor, kept_2EJSD: Tensor, positions_R: Tensor, gains_ED: Tensor, heads: DraftHeads
) -> None:
    """See `reference.write_context`."""
    if takes_triton(made_RE):
        from .triton_impl import write_context as fused

        fused(made_RE, kept_2EJSD, positions_R, gains_ED, heads)
    else:
        reference.write_context(made_RE, kept_2EJSD, positions_R, gains_ED, heads)


def draft_attention(
    qkv_BE: Tensor,
    kept_2JSD: Tensor,
    numbers: Tensor,
    heads: DraftHeads,
    sight: DraftSight,
) -> Tensor:
    """See `reference.draft_attention`."""
    if takes_triton(qkv_BE):
        from .triton_impl import draft_attention as fused

        return fused(qkv_BE, kept_2JSD, numbers, heads, sight)
    return reference.draft_attention(qkv_BE, kept_2JSD, numbers, heads, sight)
