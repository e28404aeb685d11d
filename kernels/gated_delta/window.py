"""The whole mixer of a delta layer over a pass, and the fold: the specification.

From the projections' outputs to what the gated norm reads: convolution, gates, delta rule by
absolute blocks, ring append. Shape legend: see reference.py and ../sequence_table.py; M rows of a
pass, Z = X + R W columns of the projection.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.kernels.sequence_table import (
    BLOCK,
    FIRST_ROW,
    KEPT,
    NUM_ROWS,
    RING,
    START,
    SequenceTable,
    SlotMemory,
)

from .reference import causal_conv_silu, decay_and_beta, delta_blocks


class DeltaWeights(NamedTuple):
    """What one delta layer needs beside its projections.

    Attributes:
        taps_XT: convolution weights [X, taps]; the kernel wants those of a tap in one piece.
        A_log_R: float32 [R]; likewise `dt_bias_R`.
        num_key_heads: H; query and key have H heads of width K each.
        key_dim: K.
        value_dim: W.
    """

    taps_XT: Tensor
    A_log_R: Tensor
    dt_bias_R: Tensor
    num_key_heads: int
    key_dim: int
    value_dim: int

    @property
    def num_value_heads(self) -> int:
        return self.A_log_R.shape[0]

    @property
    def channels(self) -> int:
        return self.taps_XT.shape[0]


def delta_pass(
    table: SequenceTable,
    layer: int,
    qkvz_MZ: Tensor,
    ba_MR: Tensor,
    weights: DeltaWeights,
    *,
    prefill: bool,
) -> Tensor:
    """Outputs of the delta rule, [M, R * W] in the dtype of `qkvz_MZ`, not yet normalised.

    Args:
        table: the sequences. A window has at most 32 rows; a prefill begins at a block.
        layer: counts the delta layers.
        qkvz_MZ: the projection's q | k | v before the convolution, then what is not read here.
        ba_MR: [M, 2 R], inputs of beta, then of the decay.
        weights: of the layer.
        prefill: the rows are sure to be committed, so whole blocks go into the checkpoint at once.
    """
    columns = weights.num_value_heads * weights.value_dim
    out_MV = qkvz_MZ.new_zeros(qkvz_MZ.shape[0], columns)
    for line, memory in zip(table.rows_BF.tolist(), table.memory, strict=True):
        rows = slice(line[FIRST_ROW], line[FIRST_ROW] + line[NUM_ROWS])
        if line[NUM_ROWS]:
            out_MV[rows] = _one(
                memory, layer, line[START], qkvz_MZ[rows], ba_MR[rows], weights, prefill
            )
    return out_MV


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """Moves the checkpoints of all layers over the block that the kept rows have filled, if any."""
    for line, memory in zip(table.rows_BF.tolist(), table.memory, strict=True):
        block = line[START] // BLOCK
        if (line[START] + line[KEPT]) // BLOCK == block:
            continue
        for layer in range(memory.checkpoint_LRKW.shape[0]):
            kept = _ring_rows(memory, layer, block * BLOCK, (block + 1) * BLOCK)
            state_RKW = memory.checkpoint_LRKW[layer]
            state_RKW.copy_(_run(state_RKW, kept, weights, 1)[1][0])


def _one(
    memory: SlotMemory,
    layer: int,
    start: int,
    qkvz_TZ: Tensor,
    ba_TR: Tensor,
    weights: DeltaWeights,
    prefill: bool,
) -> Tensor:
    end, before = start + qkvz_TZ.shape[0], weights.taps_XT.shape[1] - 1
    raw_TX = qkvz_TZ[:, : weights.channels]
    ring_EX = memory.conv_in_LEX[layer]
    earlier = [
        ring_EX[p % RING] if p >= 0 else 0 * ring_EX[0] for p in range(start - before, start)
    ]
    conv_TX = causal_conv_silu(torch.cat([torch.stack(earlier), raw_TX]), weights.taps_XT)
    b_TR, a_TR = ba_TR.chunk(2, -1)
    g_TR, beta_TR = decay_and_beta(a_TR, b_TR, weights.A_log_R, weights.dt_bias_R)
    places = torch.arange(max(start, end - RING), end, device=raw_TX.device)
    for ring, new in zip(memory[2:6], (raw_TX, conv_TX, g_TR, beta_TR), strict=True):
        ring[layer, places % RING] = new[places - start].to(ring.dtype)
    state_RKW = memory.checkpoint_LRKW[layer]
    if prefill:
        out_TRW, states = _run(state_RKW, (conv_TX, g_TR, beta_TR), weights, len(raw_TX) // BLOCK)
        if states:
            state_RKW.copy_(states[-1])
    else:
        first = start // BLOCK * BLOCK
        kept = _ring_rows(memory, layer, first, end)
        out_TRW = _run(state_RKW, kept, weights, (end - first - 1) // BLOCK)[0][start - first :]
    return out_TRW.flatten(1).to(qkvz_TZ.dtype)


def _ring_rows(memory: SlotMemory, layer: int, first: int, end: int) -> tuple[Tensor, ...]:
    """Convolution outputs, decays and betas of positions `first` to `end`."""
    places = torch.arange(first, end, device=memory.decay_LER.device) % RING
    rings = (memory.conv_out_LEX, memory.decay_LER, memory.beta_LER)
    return tuple(ring[layer, places] for ring in rings)


def _run(
    state_RKW: Tensor, kept: tuple[Tensor, ...], weights: DeltaWeights, num_states: int
) -> tuple[Tensor, list[Tensor]]:
    num_rows = kept[0].shape[0]
    filled = [F.pad(rows, (0, 0, 0, -num_rows % BLOCK)).unflatten(0, (-1, BLOCK)) for rows in kept]
    keys = weights.num_key_heads * weights.key_dim
    q, k, v = filled[0].split([keys, keys, weights.channels - 2 * keys], -1)
    out_GCRW, states = delta_blocks(
        state_RKW,
        q.unflatten(-1, (-1, weights.key_dim)),
        k.unflatten(-1, (-1, weights.key_dim)),
        v.unflatten(-1, (-1, weights.value_dim)),
        filled[1],
        filled[2],
        num_states=num_states,
    )
    return out_GCRW.flatten(0, 1)[:num_rows], states
