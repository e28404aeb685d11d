"""Gated DeltaNet mixer: convolution, gates, delta rule by absolute blocks, gated norm.

Shape legend
    T  rows of a window or prefill chunk, D hidden size, E ring rows, C rows of a fold block
    R  value heads, H key heads, K key width, W value width, X convolution channels
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from ocria.kernels.gated_delta import causal_conv_silu, decay_and_beta, delta_blocks
from ocria.models.base import FOLD_BLOCK, RING_ROWS, SequenceState
from ocria.models.layers.linear import TiledLinear, fuse
from ocria.models.layers.norm import GatedRMSNorm
from ocria.models.layers.span import Span
from ocria.models.qwen3_5.config import TextConfig


class _Rows(NamedTuple):
    """What a layer keeps of the rows it has read: before and after the convolution, and gates."""

    qkv_TX: Tensor
    conv_TX: Tensor
    g_TR: Tensor
    beta_TR: Tensor


class DeltaMixer(nn.Module):
    """One `linear_attention` layer's mixer. `index` counts the delta layers only."""

    def __init__(self, config: TextConfig, index: int) -> None:
        super().__init__()
        self.index = index
        self.num_key_heads = config.linear_num_key_heads
        self.num_value_heads = config.linear_num_value_heads
        self.key_dim = config.linear_key_head_dim
        self.value_dim = config.linear_value_head_dim
        self.num_taps = config.linear_conv_kernel_dim
        keys = self.num_key_heads * self.key_dim
        values = self.num_value_heads * self.value_dim
        self.sizes = (keys, keys, values)
        hidden = config.hidden_size
        self.in_proj_qkv = TiledLinear(hidden, 2 * keys + values)
        self.in_proj_z = TiledLinear(hidden, values)
        self.in_proj_b = TiledLinear(hidden, self.num_value_heads)
        self.in_proj_a = TiledLinear(hidden, self.num_value_heads)
        self.conv1d = nn.Conv1d(2 * keys + values, 2 * keys + values, self.num_taps, bias=False)
        self.conv1d.weight = nn.Parameter(torch.empty(2 * keys + values, 1, self.num_taps))
        self.A_log = nn.Parameter(torch.empty(self.num_value_heads))
        self.dt_bias = nn.Parameter(torch.empty(self.num_value_heads))
        self.norm = GatedRMSNorm(self.value_dim, config.rms_norm_eps)
        self.out_proj = TiledLinear(values, hidden)

    def prepare(self) -> None:
        """Joins projections that read the same input, and packs."""
        self.in_proj_qkvz = fuse(self.in_proj_qkv, self.in_proj_z)
        self.in_proj_ba = fuse(self.in_proj_b, self.in_proj_a)
        del self.in_proj_qkv, self.in_proj_z, self.in_proj_b, self.in_proj_a
        for linear in (self.in_proj_qkvz, self.in_proj_ba, self.out_proj):
            linear.pack()

    def forward(self, x_TD: Tensor, state: SequenceState, span: Span) -> Tensor:
        """Mixes the rows of the span; a prefill's whole blocks go into the checkpoint at once."""
        qkv_TX, z_TV = self.in_proj_qkvz(x_TD).split([sum(self.sizes), self.sizes[2]], -1)
        b_TR, a_TR = self.in_proj_ba(x_TD).chunk(2, -1)
        g_TR, beta_TR = decay_and_beta(a_TR, b_TR, self.A_log, self.dt_bias)
        conv_TX = self._convolve(qkv_TX, state, span)
        rows = _Rows(qkv_TX, conv_TX, g_TR, beta_TR)
        self._append(rows, state, span)
        if span.prefill:
            out_TRW = self._prefill_blocks(rows, state, span)
        else:
            out_TRW = self._window_blocks(state, span, x_TD.shape[0])
        z_TRW = z_TV.reshape(-1, self.num_value_heads, self.value_dim)
        return self.out_proj(self.norm(out_TRW, z_TRW, x_TD.dtype).flatten(1))

    def _convolve(self, qkv_TX: Tensor, state: SequenceState, span: Span) -> Tensor:
        before = torch.arange(span.start - self.num_taps + 1, span.start, device=qkv_TX.device)
        earlier_TX = state.conv_in_LEX[self.index, before % RING_ROWS]
        earlier_TX = torch.where((before >= 0)[:, None], earlier_TX, 0)
        return causal_conv_silu(torch.cat([earlier_TX, qkv_TX]), self.conv1d.weight[:, 0])

    def _append(self, rows: _Rows, state: SequenceState, span: Span) -> None:
        kept = slice(max(0, span.num_rows - RING_ROWS), span.num_rows)
        position = torch.arange(span.start + kept.start, span.end, device=rows.conv_TX.device)
        ring = position % RING_ROWS
        state.conv_in_LEX[self.index, ring] = rows.qkv_TX[kept]
        state.conv_out_LEX[self.index, ring] = rows.conv_TX[kept]
        state.decay_LER[self.index, ring] = rows.g_TR[kept]
        state.beta_LER[self.index, ring] = rows.beta_TR[kept]

    def _heads(self, conv: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        q, k, v = conv.split(self.sizes, -1)
        keys, values = (self.num_key_heads, self.key_dim), (self.num_value_heads, self.value_dim)
        return q.unflatten(-1, keys), k.unflatten(-1, keys), v.unflatten(-1, values)

    def _prefill_blocks(self, rows: _Rows, state: SequenceState, span: Span) -> Tensor:
        assert span.start % FOLD_BLOCK == 0, f"{span.start} is not a fold boundary"
        padded = rows.conv_TX.shape[0]
        real_T1 = (torch.arange(padded, device=rows.conv_TX.device) < span.num_rows)[:, None]
        conv_GCX, g_GCR, beta_GCR = (
            torch.where(real_T1, kept, 0).unflatten(0, (-1, FOLD_BLOCK))
            for kept in (rows.conv_TX, rows.g_TR, rows.beta_TR)
        )
        before_RKW = state.checkpoint_LRKW[self.index]
        out_GCRW, after_GRKW = delta_blocks(before_RKW, *self._heads(conv_GCX), g_GCR, beta_GCR)
        whole = span.num_rows // FOLD_BLOCK
        if whole:
            before_RKW.copy_(after_GRKW[whole - 1])
        return out_GCRW.flatten(0, 1)

    def _ring_block(
        self, before_RKW: Tensor, state: SequenceState, block: int, end: int
    ) -> tuple[Tensor, Tensor]:
        """Outputs [C, R, W] and end state of one block, its rows before position `end` only."""
        first = block * FOLD_BLOCK
        ring = slice(first % RING_ROWS, first % RING_ROWS + FOLD_BLOCK)
        device = before_RKW.device
        real_C1 = (torch.arange(first, first + FOLD_BLOCK, device=device) < end)[:, None]
        conv_GCX, g_GCR, beta_GCR = (
            torch.where(real_C1, kept[self.index, ring], 0)[None]
            for kept in (state.conv_out_LEX, state.decay_LER, state.beta_LER)
        )
        out_GCRW, after_GRKW = delta_blocks(before_RKW, *self._heads(conv_GCX), g_GCR, beta_GCR)
        return out_GCRW[0], after_GRKW[0]

    def _window_blocks(self, state: SequenceState, span: Span, num_padded: int) -> Tensor:
        start, end, before_RKW = span.start, span.end, state.checkpoint_LRKW[self.index]
        pieces = []
        for block in range(start // FOLD_BLOCK, (end - 1) // FOLD_BLOCK + 1):
            out_CRW, before_RKW = self._ring_block(before_RKW, state, block, end)
            first = max(start - block * FOLD_BLOCK, 0)
            pieces.append(out_CRW[first : min(end - block * FOLD_BLOCK, FOLD_BLOCK)])
        out_TRW = before_RKW.new_zeros(num_padded, self.num_value_heads, self.value_dim)
        out_TRW[: span.num_rows] = torch.cat(pieces)
        return out_TRW

    def fold(self, state: SequenceState, block: int) -> None:
        """Moves the checkpoint over one whole committed block."""
        before_RKW = state.checkpoint_LRKW[self.index]
        _, after_RKW = self._ring_block(before_RKW, state, block, (block + 1) * FOLD_BLOCK)
        before_RKW.copy_(after_RKW)
