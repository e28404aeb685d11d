"""Convolutions, attention and context of a DFlash layer: the specification.

Shape legend
    B  rows of a block, H hidden size, O rows that a convolution mixes, G its groups
    R  rows that join the context, S positions, E draft layers
    Q  query heads, J key-value heads, D channels of a head
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ocria.kernels.small_gemm import Norm


class DraftHeads(NamedTuple):
    """Heads of a layer.

    Attributes:
        q_gain_D: float32, of the queries' plain norm; likewise `k_gain_D`.
        cos_SF: float32 [positions, D / 2]; likewise `sin_SF`.
        num_heads: Q.
        num_kv_heads: J.
        eps: of the norms.
    """

    q_gain_D: Tensor
    k_gain_D: Tensor
    cos_SF: Tensor
    sin_SF: Tensor
    num_heads: int
    num_kv_heads: int
    eps: float


class DraftSight(NamedTuple):
    """What a row sees: positions less than `window` away (0: all), none behind it if causal."""

    window: int
    is_causal: bool


def mixed_rows(
    x_BH: Tensor,
    coefficients_BC: Tensor,
    base_OH: Tensor,
    first: int,
    *,
    norm: Norm | None = None,
    residual_BH: Tensor | None = None,
) -> Tensor:
    """residual + sum over o of (base[o] + c[o]) * norm(x) of the row o before, rounded once.

    Args:
        x_BH: rows before the first count as zeros.
        coefficients_BC: row by row; columns `first` to `first` + O * G are c, by o, then group.
        base_OH: float32.
        first: see above.
        norm: plain RMS norm; None takes x as it is.
        residual_BH: None adds nothing.
    """
    wide = torch.promote_types(x_BH.dtype, torch.float32)
    x = x_BH.to(wide)
    if norm is not None:
        x = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + norm.eps) * norm.gain_K.to(wide)
    num_back, width = base_OH.shape
    # Both sides of a sublayer have their own: C = 2 * O * G.
    groups = coefficients_BC.shape[1] // (2 * num_back)
    made = coefficients_BC.to(wide)[:, first : first + num_back * groups]
    kernel_BOH = base_OH.to(wide) + made.unflatten(-1, (num_back, groups)).repeat_interleave(
        width // groups, -1
    )
    y = torch.zeros_like(x) if residual_BH is None else residual_BH.to(wide)
    for back in range(num_back):
        y = y + kernel_BOH[:, back] * torch.roll(x, back, 0).index_fill(
            0, torch.arange(min(back, len(x)), device=x.device), 0.0
        )
    return y.to(x_BH.dtype)


def write_context(
    made_RE: Tensor, kept_2EJSD: Tensor, positions_R: Tensor, gains_ED: Tensor, heads: DraftHeads
) -> None:
    """Norms and turns the keys of accepted rows and puts keys and values in their places.

    Args:
        made_RE: products of rows: of each layer J keys of D numbers, then J values.
        kept_2EJSD: keys, then values.
        positions_R: int64.
        gains_ED: float32, of the layers' keys; those of `heads` are not used.
        heads: of any layer.
    """
    num_layers, width = gains_ED.shape
    made = made_RE.unflatten(-1, (num_layers, 2, heads.num_kv_heads, width))
    keys = _turned(made[:, :, 0], gains_ED[:, None], positions_R, heads)
    for kind, part in enumerate((keys, made[:, :, 1])):
        kept_2EJSD[kind].index_copy_(2, positions_R, part.permute(1, 2, 0, 3).to(kept_2EJSD.dtype))


def draft_attention(
    qkv_BE: Tensor, kept_2JSD: Tensor, numbers: Tensor, heads: DraftHeads, sight: DraftSight
) -> Tensor:
    """Attention of a block's rows over the context and each other, [B, Q * D].

    Args:
        qkv_BE: products: Q queries, J keys, J values.
        kept_2JSD: one layer's context.
        numbers: int64, on the device: the first two add up to the length of the context, which is
            the position of the block's first row.
        heads: of the layer.
        sight: likewise.
    """
    num_rows, width = len(qkv_BE), kept_2JSD.shape[-1]
    wide = torch.promote_types(qkv_BE.dtype, torch.float32)
    split = [heads.num_heads, heads.num_kv_heads, heads.num_kv_heads]
    queries, keys, values = qkv_BE.unflatten(-1, (-1, width)).split(split, 1)
    length = numbers[0] + numbers[1]
    steps_B = torch.arange(num_rows, device=qkv_BE.device)
    positions_B = length + steps_B
    queries = _turned(queries, heads.q_gain_D, positions_B, heads).to(wide)
    keys = _turned(keys, heads.k_gain_D, positions_B, heads)
    all_keys, all_values = (
        torch.cat([kept, own.transpose(0, 1)], 1).to(wide)
        for kept, own in ((kept_2JSD[0], keys), (kept_2JSD[1], values))
    )
    places_S = torch.arange(kept_2JSD.shape[2], device=qkv_BE.device)
    is_context = (places_S < length).expand(num_rows, -1)
    seen = torch.cat([is_context, torch.ones_like(steps_B[:, None] >= steps_B)], 1)
    places = torch.cat([places_S, positions_B])
    distance = positions_B[:, None] - places
    if sight.window:
        seen = seen & (distance.abs() < sight.window)
    if sight.is_causal:
        seen = seen & (distance >= 0)
    group = heads.num_heads // heads.num_kv_heads
    queries_JUBD = queries.unflatten(1, (-1, group)).permute(1, 2, 0, 3)
    scores = queries_JUBD @ all_keys[:, None].mT * width**-0.5
    weights = scores.masked_fill(~seen, -torch.inf).softmax(-1)
    mixed_JUBD = weights @ all_values[:, None]
    return mixed_JUBD.permute(2, 0, 1, 3).flatten(1).to(qkv_BE.dtype)


def _turned(x: Tensor, gain: Tensor, positions: Tensor, heads: DraftHeads) -> Tensor:
    """Norms rows [T, ..., D] and turns them by halves, rounded once."""
    wide = torch.promote_types(x.dtype, torch.float32)
    y = x.to(wide)
    y = y * torch.rsqrt(y.square().mean(-1, keepdim=True) + heads.eps) * gain.to(wide)
    shape = (len(x), *(1,) * (x.dim() - 2), -1)
    cos, sin = (t[positions].to(wide).view(shape) for t in (heads.cos_SF, heads.sin_SF))
    first, second = y.chunk(2, -1)
    turned = torch.cat([first * cos - second * sin, second * cos + first * sin], -1)
    return turned.to(x.dtype)
