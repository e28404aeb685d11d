"""Parts of a draft layer. Names are those of public DFlash checkpoints.

Shape legend
    P  sequences, N blocks of a sequence, B rows of a block, S context rows
    H  hidden size, Q query heads, J key-value heads, U query heads of a key-value head
    D  channels of a head, O rows that a convolution mixes, G its groups

Source: Chen et al. 2026, "DFlash" (arXiv 2602.06036), section 3; the convolutions are those of
the second generation. Norms are of the plain kind, unlike the target's 1 + w.
"""

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from ocria.models.base import ROW_TILE
from ocria.models.drafter.config import ConvConfig, DrafterConfig
from ocria.models.layers.packed import can_pack, pack, packed_product

# Blocks of a sequence that attend in one call where there are so many: in training.
TOGETHER = 16


class DraftLinear(nn.Module):
    """y = x W^T over the last dimension; `pack` lays the weight out for the CPU once."""

    def __init__(self, in_features: int, out_features: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(out_features, in_features))
        self._packed: Tensor | None = None

    def pack(self) -> None:
        """Drops the plain weight where a blocked one is faster; only inference can go on."""
        if can_pack(self.weight):
            self._packed = pack(self.weight.detach(), ROW_TILE)
            self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, x: Tensor) -> Tensor:
        if self._packed is None:
            return F.linear(x, self.weight)
        return packed_product(x.flatten(0, -2), self._packed).unflatten(0, x.shape[:-1])


class PlainRMSNorm(nn.Module):
    """y = x / rms(x) * w."""

    def __init__(self, width: int, eps: float) -> None:
        super().__init__()
        self.eps = eps
        self.weight = nn.Parameter(torch.empty(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), self.weight.to(x.dtype), self.eps)


class Turn(NamedTuple):
    """cos and sin of rotary positions [..., 1, D], to turn [..., heads, D]."""

    cos: Tensor
    sin: Tensor

    @classmethod
    def at(cls, positions: Tensor, frequencies_F: Tensor) -> "Turn":
        """Angles of integer positions [...] for D / 2 frequencies, formed in float32."""
        angles = positions[..., None, None].float() * frequencies_F.float()
        both = torch.cat([angles, angles], -1)
        return cls(both.cos(), both.sin())

    def __call__(self, x: Tensor) -> Tensor:
        """Rotate-half pairing over the whole head."""
        first, second = x.chunk(2, -1)
        turned = torch.cat([-second, first], -1)
        return x * self.cos.to(x.dtype) + turned * self.sin.to(x.dtype)


class LayerContext(NamedTuple):
    """Rotated keys and values [P, J, S, D] of the accepted rows, for one layer."""

    keys_PJSD: Tensor
    values_PJSD: Tensor


@dataclass(frozen=True)
class Sight:
    """What the rows of a block see, for one layer; True is seen.

    Attributes:
        context: [P, N, B or 1, S].
        block: [B, B], or None where the whole block is seen.
        num_rows: B.
    """

    context: Tensor
    block: Tensor | None
    num_rows: int

    @cached_property
    def together(self) -> Tensor:
        """The same for `TOGETHER` blocks side by side, [P * N / G, 1, G * B, S + G * B].

        Added to scores. One for all layers that see alike; rows begin at multiples of 16 bytes, as
        the kernel asks.
        """
        pages, count, _, far = self.context.shape
        rows = self.num_rows
        near = torch.eye(TOGETHER, device=self.context.device, dtype=torch.bool)
        near = near.repeat_interleave(rows, 0).repeat_interleave(rows, 1)
        if self.block is not None:
            near = near & self.block.repeat(TOGETHER, TOGETHER)
        groups, own = pages * count // TOGETHER, TOGETHER * rows
        width = far + own
        bias = self.context.new_zeros(groups, 1, own, -(-width // 8) * 8, dtype=torch.bfloat16)[
            ..., :width
        ]
        seen = self.context.expand(-1, -1, rows, -1).reshape(groups, 1, own, far)
        bias[..., :far].masked_fill_(~seen, -torch.inf)
        bias[..., far:].masked_fill_(~near, -torch.inf)
        return bias


class DynamicConv(nn.Module):
    """Mixes each row with the ones before it in its block, by coefficients made from a norm's rows.

    The first axis of the kernels tells before (0) from after (1) the sublayer.
    """

    def __init__(self, config: ConvConfig, width: int) -> None:
        super().__init__()
        self.shape = (2, config.kernel_size, width // config.group_size)
        self.group_size = config.group_size
        self.base_kernel = nn.Parameter(torch.empty(2, config.kernel_size, width))
        self.kernel_projection = DraftLinear(width, 2 * config.kernel_size * self.shape[2])

    def kernels(self, normed_PNBH: Tensor) -> Tensor:
        """Coefficients [P, N, B, 2, O, H]."""
        moved = self.kernel_projection(normed_PNBH).unflatten(-1, self.shape)
        return self.base_kernel.to(moved.dtype) + moved.repeat_interleave(self.group_size, -1)

    @staticmethod
    def mix(kernels_PNBOH: Tensor, x_PNBH: Tensor) -> Tensor:
        """sum over o of kernel[o] * x of the row o before; rows before the block are zero."""
        mixed = kernels_PNBOH[..., 0, :] * x_PNBH
        for back in range(1, kernels_PNBOH.shape[-2]):
            earlier = F.pad(x_PNBH, (0, 0, back, 0))[..., : x_PNBH.shape[-2], :]
            mixed = mixed + kernels_PNBOH[..., back, :] * earlier
        return mixed


class DraftAttention(nn.Module):
    """A block's rows over [accepted context; block]. Keys and queries are normed by head."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, head = config.hidden_size, config.head_dim
        self.num_heads, self.num_kv_heads = config.num_attention_heads, config.num_key_value_heads
        self.q_proj = DraftLinear(width, self.num_heads * head)
        self.k_proj = DraftLinear(width, self.num_kv_heads * head)
        self.v_proj = DraftLinear(width, self.num_kv_heads * head)
        self.o_proj = DraftLinear(self.num_heads * head, width)
        self.q_norm = PlainRMSNorm(head, config.rms_norm_eps)
        self.k_norm = PlainRMSNorm(head, config.rms_norm_eps)
        self.scale = head**-0.5

    def keys_values(self, x: Tensor, turn: Turn) -> tuple[Tensor, Tensor]:
        """Turned keys and values [..., J, D] of rows [..., H]."""
        heads = (self.num_kv_heads, -1)
        keys = turn(self.k_norm(self.k_proj(x).unflatten(-1, heads)))
        return keys, self.v_proj(x).unflatten(-1, heads)

    def forward(self, x_PNBH: Tensor, context: LayerContext, turn: Turn, sight: Sight) -> Tensor:
        query = turn(self.q_norm(self.q_proj(x_PNBH).unflatten(-1, (self.num_heads, -1))))
        query_PJNBUD = query.unflatten(3, (self.num_kv_heads, -1)).permute(0, 3, 1, 2, 4, 5)
        keys, values = self.keys_values(x_PNBH, turn)
        if x_PNBH.shape[1] % TOGETHER == 0:
            return self.o_proj(self._crowded(query, keys, values, context, sight))
        keys_PJNBD, values_PJNBD = (t.permute(0, 3, 1, 2, 4) for t in (keys, values))
        far = (query_PJNBUD * self.scale).flatten(2, 4) @ context.keys_PJSD.mT
        far = far.unflatten(2, query_PJNBUD.shape[2:5])
        far = far.masked_fill(~sight.context[:, None, :, :, None], -torch.inf)
        near = (query_PJNBUD * self.scale).flatten(3, 4) @ keys_PJNBD.mT
        near = near.unflatten(3, query_PJNBUD.shape[3:5])
        if sight.block is not None:
            near = near.masked_fill(~sight.block[:, None], -torch.inf)
        # The block's own rows keep every softmax defined, also without any context.
        weights = torch.cat([far, near], -1).softmax(-1).to(values.dtype)
        far, near = weights.split([far.shape[-1], near.shape[-1]], -1)
        mixed = (far.flatten(2, 4) @ context.values_PJSD).unflatten(2, query_PJNBUD.shape[2:5])
        mixed = mixed + (near.flatten(3, 4) @ values_PJNBD).unflatten(3, near.shape[3:5])
        return self.o_proj(mixed.permute(0, 2, 3, 1, 4, 5).flatten(3))

    def _crowded(
        self,
        query_PNBQD: Tensor,
        keys_PNBJD: Tensor,
        values_PNBJD: Tensor,
        context: LayerContext,
        sight: Sight,
    ) -> Tensor:
        """Many blocks of a sequence: groups of them share one call, and scores are never stored."""
        pages, count, rows = query_PNBQD.shape[:3]
        groups = count // TOGETHER
        shared = self.num_heads // self.num_kv_heads

        def beside(far_PJSD: Tensor, near_PNBJD: Tensor) -> Tensor:
            far = far_PJSD[:, None].expand(-1, groups, -1, -1, -1)
            near = near_PNBJD.view(pages, groups, TOGETHER * rows, self.num_kv_heads, -1)
            both = torch.cat([far, near.transpose(2, 3).to(far.dtype)], -2)
            return both.flatten(0, 1).repeat_interleave(shared, 1)

        query = query_PNBQD.reshape(pages * groups, TOGETHER * rows, self.num_heads, -1)
        keys, values = (
            beside(context.keys_PJSD, keys_PNBJD),
            beside(context.values_PJSD, values_PNBJD),
        )
        with sdpa_kernel([SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH]):
            mixed = F.scaled_dot_product_attention(
                query.transpose(1, 2).to(keys.dtype),
                keys,
                values,
                attn_mask=sight.together.to(keys.dtype),
                scale=self.scale,
            )
        return mixed.transpose(1, 2).reshape(pages, count, rows, -1)


class DraftFeedForward(nn.Module):
    """down(SiLU(gate x) * up x)."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = DraftLinear(width, inner)
        self.up_proj = DraftLinear(width, inner)
        self.down_proj = DraftLinear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class DraftLayer(nn.Module):
    """x + attention(norm x), then x + feed-forward(norm x), each between two convolutions."""

    def __init__(self, config: DrafterConfig) -> None:
        super().__init__()
        width, eps = config.hidden_size, config.rms_norm_eps
        self.input_layernorm = PlainRMSNorm(width, eps)
        self.post_attention_layernorm = PlainRMSNorm(width, eps)
        self.self_attn = DraftAttention(config)
        self.mlp = DraftFeedForward(config)
        self.has_conv = config.conv is not None
        if config.conv is not None:
            self.attention_conv = DynamicConv(config.conv, width)
            self.mlp_conv = DynamicConv(config.conv, width)

    def forward(self, x_PNBH: Tensor, context: LayerContext, turn: Turn, sight: Sight) -> Tensor:
        normed = self.input_layernorm(x_PNBH)
        if not self.has_conv:
            x_PNBH = x_PNBH + self.self_attn(normed, context, turn, sight)
            return x_PNBH + self.mlp(self.post_attention_layernorm(x_PNBH))
        before, after = self.attention_conv.kernels(normed).unbind(-3)
        mixed = self.self_attn(DynamicConv.mix(before, normed), context, turn, sight)
        x_PNBH = x_PNBH + DynamicConv.mix(after, mixed)
        normed = self.post_attention_layernorm(x_PNBH)
        before, after = self.mlp_conv.kernels(normed).unbind(-3)
        return x_PNBH + DynamicConv.mix(after, self.mlp(DynamicConv.mix(before, normed)))
