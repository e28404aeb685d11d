"""Gated DeltaNet mixer: convolution, gates, delta rule by absolute blocks, gated norm.

Shape legend
    T  rows of a window or prefill chunk, D hidden size, E ring rows, C rows of a fold block
    S  sequences, G blocks, R value heads, H key heads, K key width, W value width
    X  convolution channels
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from ocria.kernels.gated_delta import causal_conv_silu, decay_and_beta, delta_blocks
from ocria.models.base import FOLD_BLOCK, RING_ROWS, Fold, SequenceState
from ocria.models.layers.linear import TiledLinear, fuse
from ocria.models.layers.norm import GatedRMSNorm
from ocria.models.layers.rowwise import by_rows
from ocria.models.layers.span import Pass, Span
from ocria.models.qwen3_5.config import TextConfig


class _Rows(NamedTuple):
    """What a layer keeps of the rows it has read: before and after the convolution, and gates."""

    qkv_TX: Tensor
    conv_TX: Tensor
    g_TR: Tensor
    beta_TR: Tensor


_Kept = tuple[Tensor, Tensor, Tensor]
"""Convolution outputs [G * C, X], log decays [G * C, R] and betas [G * C, R] of one sequence's
blocks; zeros where no row is."""


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
        # The taps of one place in one piece, in the type in which they are summed.
        taps_XW = self.conv1d.weight[:, 0]
        wide = torch.promote_types(taps_XW.dtype, torch.float32)
        self.taps_XW = taps_XW.to(wide).mT.contiguous().mT
        del self.in_proj_qkv, self.in_proj_z, self.in_proj_b, self.in_proj_a
        for linear in (self.in_proj_qkvz, self.in_proj_ba, self.out_proj):
            linear.pack()

    def forward(self, x_TD: Tensor, rows: Pass) -> Tensor:
        """Mixes the rows of a pass; a prefill's whole blocks go into the checkpoint at once."""
        qkv_TX, z_TV = self.in_proj_qkvz(x_TD).split([sum(self.sizes), self.sizes[2]], -1)
        g_TR, beta_TR = self._gates(self.in_proj_ba(x_TD))
        new = _Rows(qkv_TX, self._convolve(qkv_TX, rows), g_TR, beta_TR)
        for span, place in rows.placed():
            self._append(new, place, span)
        if rows.prefill:
            out_TRW = self._prefill_blocks(new, *rows.spans)
        else:
            out_TRW = self._window_blocks(rows.spans)
        z_TRW = z_TV.reshape(-1, self.num_value_heads, self.value_dim)
        return self.out_proj(self.norm(out_TRW, z_TRW, x_TD.dtype).flatten(1))

    def _gates(self, ba_TR: Tensor) -> tuple[Tensor, Tensor]:
        # Few numbers a row: filled up, so that all fall into whole vectors of the CPU's
        # elementwise loops. Their remainder takes other code, with other last bits.
        num_rows = ba_TR.shape[0]
        padded_TR = nn.functional.pad(ba_TR, (0, 0, 0, -num_rows % FOLD_BLOCK))
        b_RT, a_RT = padded_TR.mT.contiguous().chunk(2)
        g_TR, beta_TR = decay_and_beta(a_RT.mT, b_RT.mT, self.A_log, self.dt_bias)
        return g_TR[:num_rows], beta_TR[:num_rows]

    def _convolve(self, qkv_TX: Tensor, rows: Pass) -> Tensor:
        """Convolution and SiLU of all rows, each sequence behind what it has in the ring."""
        num_before = self.num_taps - 1
        pieces = []
        for span, place in rows.placed():
            ring_EX = span.state.conv_in_LEX[self.index]
            num_there = min(span.start, num_before)
            if num_there < num_before:
                pieces.append(ring_EX.new_zeros(num_before - num_there, ring_EX.shape[1]))
            pieces.append(read_ring(ring_EX, span.start - num_there, num_there))
            pieces.append(qkv_TX[place])
        conv_TX = by_rows(
            lambda x: causal_conv_silu(x, self.taps_XW), torch.cat(pieces), num_before
        )
        if len(rows.spans) == 1:
            return conv_TX
        # Where one sequence's rows meet the next one's there are `num_before` rows of neither.
        return torch.cat(
            [
                conv_TX[place.start + n * num_before : place.stop + n * num_before]
                for n, (_, place) in enumerate(rows.placed())
            ]
        )

    def _append(self, new: _Rows, place: slice, span: Span) -> None:
        kept, state = min(span.num_rows, RING_ROWS), span.state
        for ring, rows in (
            (state.conv_in_LEX, new.qkv_TX),
            (state.conv_out_LEX, new.conv_TX),
            (state.decay_LER, new.g_TR),
            (state.beta_LER, new.beta_TR),
        ):
            write_ring(ring[self.index], span.end - kept, rows[place][-kept:])

    def _run(
        self, before_SRKW: Sequence[Tensor], kept: Sequence[_Kept], num_states: int
    ) -> tuple[Tensor, list[Tensor]]:
        """Delta rule over whole blocks of sequences.

        All take the same number of blocks. Sequences stand beside each other as more heads do, so
        that a pass costs the same number of operations for one or for many.

        Args:
            before_SRKW: state of each sequence before its first block.
            kept: blocks of each sequence.
            num_states: states wanted, those after the first blocks.

        Returns:
            outputs [S, G * C, R, W] and the wanted states [S, R, K, W].
        """
        conv_SGCX, g_SGCR, beta_SGCR = (
            _stack([rows[part] for rows in kept]).unflatten(1, (-1, FOLD_BLOCK))
            for part in range(3)
        )
        q, k, v = (
            _beside(part.unflatten(-1, (-1, width)))
            for part, width in zip(
                conv_SGCX.split(self.sizes, -1),
                (self.key_dim, self.key_dim, self.value_dim),
                strict=True,
            )
        )
        before_RKW = before_SRKW[0] if len(kept) == 1 else torch.cat(list(before_SRKW))
        out_GCRW, states = delta_blocks(
            before_RKW, q, k, v, _beside(g_SGCR), _beside(beta_SGCR), num_states=num_states
        )
        if len(kept) == 1:
            return out_GCRW.flatten(0, 1)[None], [state[None] for state in states]
        by_sequence = (len(kept), self.num_value_heads)
        out_GCSRW = out_GCRW.unflatten(2, by_sequence)
        out_SGCRW = out_GCSRW.permute(2, 0, 1, 3, 4)
        return out_SGCRW.flatten(1, 2), [state.unflatten(0, by_sequence) for state in states]

    def _prefill_blocks(self, new: _Rows, span: Span) -> Tensor:
        assert span.start % FOLD_BLOCK == 0, f"{span.start} is not a fold boundary"
        before_RKW = span.state.checkpoint_LRKW[self.index]
        filling = (0, 0, 0, -span.num_rows % FOLD_BLOCK)
        conv_TX, g_TR, beta_TR = (nn.functional.pad(rows, filling) for rows in new[1:])
        kept = (conv_TX, g_TR, beta_TR)
        out_STRW, states = self._run([before_RKW], [kept], span.num_rows // FOLD_BLOCK)
        if states:
            before_RKW.copy_(states[-1][0])
        return out_STRW[0, : span.num_rows]

    def _blocks(self, state: SequenceState, first: int, end: int) -> _Kept:
        """The blocks that hold positions `first` to `end`; first is a block's first position.

        What the ring has behind `end` is no row of the sequence: it is cleared.
        """
        stop = -(-end // FOLD_BLOCK) * FOLD_BLOCK
        rings = [ring[self.index] for ring in (state.conv_out_LEX, state.decay_LER, state.beta_LER)]
        if end < stop:
            for ring in rings:
                ring[end % RING_ROWS : (stop - 1) % RING_ROWS + 1].zero_()
        conv, decay, beta = (read_ring(ring, first, stop - first) for ring in rings)
        return conv, decay, beta

    def _window_blocks(self, spans: Sequence[Span]) -> Tensor:
        """Outputs of windows, those that end in the block where they begin apart from the rest."""
        outputs: list[Tensor | None] = [None] * len(spans)
        for crossed in (0, 1):
            group = [n for n, span in enumerate(spans) if _blocks_crossed(span) == crossed]
            if not group:
                continue
            first = [spans[n].start // FOLD_BLOCK * FOLD_BLOCK for n in group]
            kept = [
                self._blocks(spans[n].state, begin, spans[n].end)
                for n, begin in zip(group, first, strict=True)
            ]
            before = [spans[n].state.checkpoint_LRKW[self.index] for n in group]
            out_STRW, _ = self._run(before, kept, crossed)
            for n, begin, out_TRW in zip(group, first, out_STRW, strict=True):
                outputs[n] = out_TRW[spans[n].start - begin : spans[n].end - begin]
        found = [out_TRW for out_TRW in outputs if out_TRW is not None]
        return found[0] if len(found) == 1 else torch.cat(found)

    def fold(self, folds: Sequence[Fold]) -> None:
        """Moves checkpoints over one whole committed block each."""
        kept = []
        for state, block in folds:
            first = block * FOLD_BLOCK
            kept.append(self._blocks(state, first, first + FOLD_BLOCK))
        before = [fold.state.checkpoint_LRKW[self.index] for fold in folds]
        _, states = self._run(before, kept, 1)
        for before_RKW, after_RKW in zip(before, states[0], strict=True):
            before_RKW.copy_(after_RKW)


def _blocks_crossed(span: Span) -> int:
    return (span.end - 1) // FOLD_BLOCK - span.start // FOLD_BLOCK


def _stack(tensors: list[Tensor]) -> Tensor:
    return torch.stack(tensors) if len(tensors) > 1 else tensors[0][None]


def _beside(rows_SGCR: Tensor) -> Tensor:
    """[S, G, C, R, ...] -> [G, C, S * R, ...]: heads of sequence after sequence."""
    return rows_SGCR.movedim(0, 2).flatten(2, 3) if len(rows_SGCR) > 1 else rows_SGCR[0]


def read_ring(ring_EX: Tensor, first: int, count: int) -> Tensor:
    """Rows of positions `first` and on."""
    start = first % RING_ROWS
    if start + count <= RING_ROWS:
        return ring_EX[start : start + count]
    return torch.cat([ring_EX[start:], ring_EX[: start + count - RING_ROWS]])


def write_ring(ring_EX: Tensor, first: int, rows_TX: Tensor) -> None:
    """Puts rows at positions `first` and on, at most a ring of them."""
    start, count = first % RING_ROWS, rows_TX.shape[0]
    fitting = min(count, RING_ROWS - start)
    ring_EX[start : start + fitting] = rows_TX[:fitting]
    if fitting < count:
        ring_EX[: count - fitting] = rows_TX[fitting:]
