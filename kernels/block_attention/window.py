"""What a full-attention layer does between its projections: the specification.

From the projection's q | gate | k | v to what the output projection reads: norm of q and k, rotary
positions, cache append, attention, gate. Shape legend: see reference.py and ../sequence_table.py;
M rows of a pass, F rotary width.
"""

from typing import NamedTuple

import torch
from torch import Tensor

from ocria.kernels.sequence_table import FIRST_ROW, NUM_ROWS, ROPE_DELTA, START, SequenceTable

from .reference import block_attention


class AttentionWeights(NamedTuple):
    """What one attention layer needs beside its projections.

    Attributes:
        q_gain_D: 1 + w of the query's zero-centred norm, float32; likewise `k_gain_D`.
        num_heads: H; each head's columns are its query, then its gate.
        num_kv_heads: J.
        head_dim: D.
        eps: of the norms.
    """

    q_gain_D: Tensor
    k_gain_D: Tensor
    num_heads: int
    num_kv_heads: int
    head_dim: int
    eps: float


class RotaryTable(NamedTuple):
    """cos and sin, float32 [rotary position, F / 2]."""

    cos: Tensor
    sin: Tensor


def attention_pass(
    table: SequenceTable,
    layer: int,
    qkv_ME: Tensor,
    rotary: RotaryTable,
    weights: AttentionWeights,
    key_block: int,
) -> Tensor:
    """Gated attention of a pass, [M, H * D] in the dtype of `qkv_ME`; appends to the caches.

    Args:
        table: the sequences; a row's rotary position is its position plus the rope delta.
        layer: counts the attention layers.
        qkv_ME: [M, 2 H D + 2 J D].
        rotary: by rotary position.
        weights: of the layer.
        key_block: keys are split at its multiples.
    """
    heads, kv, width = weights.num_heads, weights.num_kv_heads, weights.head_dim
    qg_ME, k_ME, v_ME = qkv_ME.split([2 * heads * width, kv * width, kv * width], -1)
    q_MHD, gate_MHD = qg_ME.unflatten(-1, (heads, 2 * width)).chunk(2, -1)
    out_ME = qkv_ME.new_zeros(qkv_ME.shape[0], heads * width)
    for line, memory in zip(table.rows_BF.tolist(), table.memory, strict=True):
        start, first = line[START], line[FIRST_ROW]
        if line[NUM_ROWS] == 0:
            continue
        rows = slice(first, first + line[NUM_ROWS])
        places = torch.arange(start, start + line[NUM_ROWS], device=qkv_ME.device)
        angles = places + line[ROPE_DELTA]
        q = _turned(q_MHD[rows], weights.q_gain_D, weights.eps, rotary, angles)
        k = _turned(
            k_ME[rows].unflatten(-1, (kv, width)), weights.k_gain_D, weights.eps, rotary, angles
        )
        keys_JSD, values_JSD = memory.keys_LJSD[layer], memory.values_LJSD[layer]
        keys_JSD[:, places] = k.transpose(0, 1).to(keys_JSD.dtype)
        values_JSD[:, places] = (
            v_ME[rows].unflatten(-1, (kv, width)).transpose(0, 1).to(values_JSD.dtype)
        )
        out_THD = block_attention(q, keys_JSD, values_JSD, start, key_block)
        out_ME[rows] = (out_THD * torch.sigmoid(gate_MHD[rows])).flatten(1)
    return out_ME


def _turned(
    x_THD: Tensor, gain_D: Tensor, eps: float, rotary: RotaryTable, angles: Tensor
) -> Tensor:
    wide = x_THD.to(torch.promote_types(x_THD.dtype, torch.float32))
    normal = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + eps) * gain_D
    half = rotary.cos.shape[1]
    cos, sin = rotary.cos[angles][:, None], rotary.sin[angles][:, None]
    low, high, rest = normal.split([half, half, normal.shape[-1] - 2 * half], -1)
    return torch.cat([low * cos - high * sin, high * cos + low * sin, rest], -1).to(x_THD.dtype)
