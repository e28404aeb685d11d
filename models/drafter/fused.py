"""A drafter as a short list of fused kernels: what runs in bfloat16 on a CUDA device.

A dozen launches a layer, where the plain modules have some hundred. The numbers are those of
`DFlash.forward` up to rounding: a proposal is verified, so that costs nothing but luck.

Shape legend
    B  rows of a block, R  rows that join the context, X their tapped values, H hidden size
    E  draft layers, J key-value heads, S positions, D channels of a head
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ocria.kernels.draft_block import (
    DraftHeads,
    DraftSight,
    draft_attention,
    mixed_rows,
    write_context,
)
from ocria.kernels.draft_choice import Codebooks, best_candidates, best_path
from ocria.kernels.small_gemm import Norm, PackedWeight, WeightCodes, pack, small_gemm
from ocria.models.base import WINDOW
from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.layers import DraftLayer, DraftLinear, DynamicConv, PlainRMSNorm, Turn
from ocria.models.drafter.model import DFlash

_MOST_POSITIONS = (1 << 16) + WINDOW
"""As many as the target has, and a block behind them."""


class _Conv(NamedTuple):
    """Weights of the convolutions around a sublayer; `behind` is where their second half begins."""

    projection: PackedWeight
    before_OH: Tensor
    after_OH: Tensor
    behind: int


class _Layer(NamedTuple):
    """One layer's weights; the convolutions of the second generation only."""

    first: Norm
    attention_conv: _Conv | None
    qkv: PackedWeight
    heads: DraftHeads
    sight: DraftSight
    out: PackedWeight
    second: Norm
    mlp_conv: _Conv | None
    gate_up: PackedWeight
    down: PackedWeight


def can_fuse_draft(config: DrafterConfig, device: torch.device, dtype: torch.dtype) -> bool:
    """Whether the kernels take this drafter: bfloat16 on CUDA, heads of a power of two."""
    width = config.head_dim
    is_power = width >= 16 and width & (width - 1) == 0
    return device.type == "cuda" and dtype == torch.bfloat16 and is_power


class FusedDraft:
    """Runs a drafter's context, layers and choice.

    Args:
        model: whose weights are taken, not packed for a CPU.
    """

    def __init__(self, model: DFlash) -> None:
        config = model.config
        self._scale = config.embedding_scale
        self._fc = _packed(model.fc)
        self._context_norm = _norm(model.hidden_norm)
        self._norm = model.norm
        layers = [layer for layer in model.layers if isinstance(layer, DraftLayer)]
        attentions = [layer.self_attn for layer in layers]
        self._context_kv = _packed(*(p for a in attentions for p in (a.k_proj, a.v_proj)))
        self._gains_ED = torch.stack([a.k_norm.weight.float() for a in attentions])
        turn = model.turn(torch.arange(_MOST_POSITIONS, device=self._gains_ED.device))
        self._gate: PackedWeight | None = None
        self._books: Codebooks | None = None
        if config.selector is not None:
            selector, self._num_candidates = model.candidate_selector, config.selector.top_k
            self._gate = _packed(selector.hidden_projection)
            self._books = Codebooks(
                selector.predecessor_codebook.detach(),
                selector.successor_codebook.detach(),
                config.output_multiplier,
                config.softcap or 0.0,
            )
        self._layers = [_layer(layer, config, place, turn) for place, layer in enumerate(layers)]

    def write(self, rows_RX: Tensor, kept_2EJSD: Tensor, positions_R: Tensor) -> None:
        """Puts keys and values of accepted rows in their places."""
        fused_RH = small_gemm(rows_RX, self._fc)
        made_RE = small_gemm(fused_RH, self._context_kv, norm=self._context_norm)
        write_context(made_RE, kept_2EJSD, positions_R, self._gains_ED, self._layers[0].heads)

    def hidden(self, embedded_BH: Tensor, kept_2EJSD: Tensor, numbers: Tensor) -> Tensor:
        """Normed hidden rows [B, H] of a block.

        Args:
            embedded_BH: the target's embedding of [last token, mask, mask, ...].
            kept_2EJSD: the context.
            numbers: int64, on the device: the first two add up to the context's length.
        """
        x_BH = embedded_BH * self._scale if self._scale != 1.0 else embedded_BH
        for place, layer in enumerate(self._layers):
            x_BH = _run(layer, x_BH, kept_2EJSD[:, place], numbers)
        normed_BH: Tensor = self._norm(x_BH)
        return normed_BH

    def choose(
        self, hidden_KH: Tensor, logits_KV: Tensor, forbidden_V: Tensor, anchor_1: Tensor
    ) -> Tensor:
        """Token ids [K] to propose; see `DFlash.choose`.

        Args:
            hidden_KH: rows of `hidden` without the first.
            logits_KV: float32, the target's head of them.
            forbidden_V: uint8, ones for ids that are never proposed.
            anchor_1: the last token.
        """
        if self._gate is None or self._books is None:
            return best_candidates(logits_KV, forbidden_V, 1)[0][:, 0]
        ids_KC, scores_KC = best_candidates(logits_KV, forbidden_V, self._num_candidates)
        gate_KR = small_gemm(hidden_KH, self._gate, out_dtype=torch.float32)
        return best_path(ids_KC, scores_KC, gate_KR, self._books, anchor_1)


def _run(layer: _Layer, x_BH: Tensor, kept_2JSD: Tensor, numbers: Tensor) -> Tensor:
    conv = layer.attention_conv
    if conv is None:
        qkv_BE = small_gemm(x_BH, layer.qkv, norm=layer.first)
        mixed_BE = draft_attention(qkv_BE, kept_2JSD, numbers, layer.heads, layer.sight)
        x_BH = small_gemm(mixed_BE, layer.out, residual_MN=x_BH)
        inner_BI = small_gemm(x_BH, layer.gate_up, norm=layer.second)
        return small_gemm(inner_BI, layer.down, residual_MN=x_BH)
    made_BC = small_gemm(x_BH, conv.projection, norm=layer.first, out_dtype=torch.float32)
    y_BH = mixed_rows(x_BH, made_BC, conv.before_OH, 0, norm=layer.first)
    qkv_BE = small_gemm(y_BH, layer.qkv)
    mixed_BE = draft_attention(qkv_BE, kept_2JSD, numbers, layer.heads, layer.sight)
    y_BH = small_gemm(mixed_BE, layer.out)
    x_BH = mixed_rows(y_BH, made_BC, conv.after_OH, conv.behind, residual_BH=x_BH)
    conv = layer.mlp_conv
    assert conv is not None, "a layer has both convolutions or none"
    made_BC = small_gemm(x_BH, conv.projection, norm=layer.second, out_dtype=torch.float32)
    y_BH = mixed_rows(x_BH, made_BC, conv.before_OH, 0, norm=layer.second)
    y_BH = small_gemm(small_gemm(y_BH, layer.gate_up), layer.down)
    return mixed_rows(y_BH, made_BC, conv.after_OH, conv.behind, residual_BH=x_BH)


def _layer(layer: DraftLayer, config: DrafterConfig, place: int, turn: Turn) -> _Layer:
    attention, rule, mlp = layer.self_attn, config.layers[place], layer.mlp
    half = config.head_dim // 2
    cos_SF, sin_SF = (part[:, 0, :half].contiguous() for part in turn)
    return _Layer(
        first=_norm(layer.input_layernorm),
        attention_conv=_conv(layer.attention_conv) if layer.has_conv else None,
        qkv=_packed(attention.q_proj, attention.k_proj, attention.v_proj),
        heads=DraftHeads(
            q_gain_D=attention.q_norm.weight.float(),
            k_gain_D=attention.k_norm.weight.float(),
            cos_SF=cos_SF,
            sin_SF=sin_SF,
            num_heads=config.num_attention_heads,
            num_kv_heads=config.num_key_value_heads,
            eps=config.rms_norm_eps,
        ),
        sight=DraftSight(rule.window or 0, rule.is_causal),
        out=_packed(attention.o_proj),
        second=_norm(layer.post_attention_layernorm),
        mlp_conv=_conv(layer.mlp_conv) if layer.has_conv else None,
        gate_up=_packed(mlp.gate_proj, mlp.up_proj, paired=True),
        down=_packed(mlp.down_proj),
    )


def _conv(conv: DynamicConv) -> _Conv:
    before_OH, after_OH = conv.base_kernel.float()
    _, num_back, num_groups = conv.shape
    return _Conv(
        _packed(conv.kernel_projection),
        before_OH.contiguous(),
        after_OH.contiguous(),
        num_back * num_groups,
    )


def _norm(norm: PlainRMSNorm) -> Norm:
    """The kernels' gain is what they multiply with: no one is added to a plain norm's."""
    return Norm(norm.weight.float(), norm.eps)


def _packed(*products: DraftLinear, paired: bool = False) -> PackedWeight:
    weights = [product.weight for product in products]
    ones = [torch.ones(len(weight), device=weight.device) for weight in weights]
    codes = [
        WeightCodes("bf16", weight.bfloat16(), one)
        for weight, one in zip(weights, ones, strict=True)
    ]
    return pack(codes, paired=paired)
