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
        g_TR, beta_TR = self._gates(self.in_proj_ba(x_TD))
        rows = _Rows(qkv_TX, self._convolve(qkv_TX, state, span), g_TR, beta_TR)
        self._append(rows, state, span)
        if span.prefill:
            out_TRW = self._prefill_blocks(rows, state, span)
        else:
            out_TRW = self._window_blocks(state, span)
        z_TRW = z_TV.reshape(-1, self.num_value_heads, self.value_dim)
        return self.out_proj(self.norm(out_TRW, z_TRW, x_TD.dtype).flatten(1))

    def _gates(self, ba_TR: Tensor) -> tuple[Tensor, Tensor]:
        # Few numbers a row: filled up, so that all fall into whole vectors of the CPU's
        # elementwise loops. Their remainder takes other code, with other last bits.
        num_rows = ba_TR.shape[0]
        padded = nn.functional.pad(ba_TR, (0, 0, 0, -num_rows % FOLD_BLOCK))
        b_TR, a_TR = padded.chunk(2, -1)
        g_TR, beta_TR = decay_and_beta(
            a_TR.contiguous(), b_TR.contiguous(), self.A_log, self.dt_bias
        )
        return g_TR[:num_rows], beta_TR[:num_rows]

    def _convolve(self, qkv_TX: Tensor, state: SequenceState, span: Span) -> Tensor:
        num_before = self.num_taps - 1
        ring_EX = state.conv_in_LEX[self.index]
        if span.start >= num_before:
            earlier_TX = _read_ring(ring_EX, span.start - num_before, num_before)
        else:
            assert span.start == 0, "a sequence begins with its whole first chunk"
            earlier_TX = ring_EX.new_zeros(num_before, ring_EX.shape[1])
        return causal_conv_silu(torch.cat([earlier_TX, qkv_TX]), self.conv1d.weight[:, 0])

    def _append(self, rows: _Rows, state: SequenceState, span: Span) -> None:
        kept = min(span.num_rows, RING_ROWS)
        for ring, new in (
            (state.conv_in_LEX, rows.qkv_TX),
            (state.conv_out_LEX, rows.conv_TX),
            (state.decay_LER, rows.g_TR),
            (state.beta_LER, rows.beta_TR),
        ):
            _write_ring(ring[self.index], span.end - kept, new[-kept:])

    def _run(
        self, before_RKW: Tensor, kept: tuple[Tensor, Tensor, Tensor], num_states: int
    ) -> tuple[Tensor, list[Tensor]]:
        """Delta rule over rows that begin at a block: outputs [rows, R, W], states as wanted."""
        num_rows = kept[0].shape[0]
        filling = (0, 0, 0, -num_rows % FOLD_BLOCK)
        conv_GCX, g_GCR, beta_GCR = (
            nn.functional.pad(rows, filling).unflatten(0, (-1, FOLD_BLOCK)) for rows in kept
        )
        q, k, v = conv_GCX.split(self.sizes, -1)
        keys, values = (self.num_key_heads, self.key_dim), (self.num_value_heads, self.value_dim)
        out_GCRW, states = delta_blocks(
            before_RKW,
            q.unflatten(-1, keys),
            k.unflatten(-1, keys),
            v.unflatten(-1, values),
            g_GCR,
            beta_GCR,
            num_states=num_states,
        )
        return out_GCRW.flatten(0, 1)[:num_rows], states

    def _prefill_blocks(self, rows: _Rows, state: SequenceState, span: Span) -> Tensor:
        assert span.start % FOLD_BLOCK == 0, f"{span.start} is not a fold boundary"
        before_RKW, whole = state.checkpoint_LRKW[self.index], span.num_rows // FOLD_BLOCK
        out_TRW, states = self._run(before_RKW, (rows.conv_TX, rows.g_TR, rows.beta_TR), whole)
        if states:
            before_RKW.copy_(states[-1])
        return out_TRW

    def _ring(self, state: SequenceState, first: int, end: int) -> tuple[Tensor, Tensor, Tensor]:
        """Convolution outputs, decays and betas of positions `first` to `end`."""
        conv, decay, beta = (
            _read_ring(ring[self.index], first, end - first)
            for ring in (state.conv_out_LEX, state.decay_LER, state.beta_LER)
        )
        return conv, decay, beta

    def _window_blocks(self, state: SequenceState, span: Span) -> Tensor:
        first = span.start // FOLD_BLOCK * FOLD_BLOCK
        crossed = (span.end - 1) // FOLD_BLOCK - span.start // FOLD_BLOCK
        before_RKW = state.checkpoint_LRKW[self.index]
        out_TRW, _ = self._run(before_RKW, self._ring(state, first, span.end), crossed)
        return out_TRW[span.start - first :]

    def fold(self, state: SequenceState, block: int) -> None:
        """Moves the checkpoint over one whole committed block."""
        first, before_RKW = block * FOLD_BLOCK, state.checkpoint_LRKW[self.index]
        rows = self._ring(state, first, first + FOLD_BLOCK)
        _, states = self._run(before_RKW, rows, 1)
        before_RKW.copy_(states[0])


def _read_ring(ring_EX: Tensor, first: int, count: int) -> Tensor:
    """Rows of positions `first` and on."""
    start = first % RING_ROWS
    if start + count <= RING_ROWS:
        return ring_EX[start : start + count]
    return torch.cat([ring_EX[start:], ring_EX[: start + count - RING_ROWS]])


def _write_ring(ring_EX: Tensor, first: int, rows_TX: Tensor) -> None:
    """Puts rows at positions `first` and on, at most a ring of them."""
    start, count = first % RING_ROWS, rows_TX.shape[0]
    fitting = min(count, RING_ROWS - start)
    ring_EX[start : start + fitting] = rows_TX[:fitting]
    ring_EX[: count - fitting] = rows_TX[fitting:]
