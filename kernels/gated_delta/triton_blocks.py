# mypy: disallow-untyped-defs=false
"""The delta rule over blocks in Triton: windows, folds, and chunks of a prompt.

`prepare_kernel` reads a block's keys, queries and gates and works out what all value columns of a
head share; the blocks of a sequence are programs side by side. `apply_kernel` takes a few value
columns of a head through the blocks: products with the state, the corrected values, the outputs,
and for a fold or a chunk the state behind its whole blocks.

Both launches are the same in the three modes: whole blocks, rows that are not there being zeros. So
a row has the same bits in every window, and a fold repeats a window's operations bit for bit. A
window's rows and a fold's lie in the ring, those of a chunk in memory of the pass. No product is
contracted with a sum.

Shape legend: see window.py; C rows of a block, V value columns of a program.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.sequence_table import BLOCK, NUM_COLUMNS, RING, SequenceTable
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_columns import (
    BETA,
    CHECKPOINT,
    CONV_OUT,
    DECAY,
    FIRST_ROW,
    KEPT,
    NUM_ROWS,
    START,
)
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .triton_append import Appended
from .triton_parts import memory_at
from .window import DeltaWeights

BLOCK_V = 16
_WARPS = 4
_EXACT = {"enable_fp_fusion": False}
_RING = tl.constexpr(RING)
# Rows of a chunk lie one behind the other: a ring that never turns.
_NO_RING = tl.constexpr(1 << 30)
_WINDOW, _FOLD, _PREFILL = tl.constexpr(0), tl.constexpr(1), tl.constexpr(2)
_MOST_BLOCKS = {0: 2, 1: 1, 2: 8}
"""Blocks of a sequence in a pass, by mode."""
# A block's share of the workspace, in rows of C: (I + A)^-1 and the weights of corrected values in
# outputs, both turned; then a row each of the numbers below.
_ROWS_SHARED = 2 * BLOCK + 5
_INVERSE = tl.constexpr(0)
_INSIDE = tl.constexpr(BLOCK)
_KEY_NORM = tl.constexpr(2 * BLOCK)
_QUERY_NORM = tl.constexpr(2 * BLOCK + 1)
_FROM_START = tl.constexpr(2 * BLOCK + 2)
_BETAS = tl.constexpr(2 * BLOCK + 3)
_TO_END = tl.constexpr(2 * BLOCK + 4)


@triton.jit
def _bounds(line, C: tl.constexpr, MODE: tl.constexpr):
    """A sequence's first position of the pass, the one behind its rows, and its blocks."""
    start = tl.load(line + START).to(tl.int32)
    first = start // C
    if MODE == _FOLD:
        # Whole block or nothing.
        filled = (start + tl.load(line + KEPT).to(tl.int32)) // C
        last = tl.minimum(filled, first + 1)
        end = (first + 1) * C
    else:
        end = start + tl.load(line + NUM_ROWS).to(tl.int32)
        last = (end + C - 1) // C
    return start, end, first, last


@triton.jit
def _ring_rows(
    ring, channel, pos, end, SIZE: tl.constexpr, NUM_CHANNELS: tl.constexpr, WIDE: tl.constexpr
):
    """Rows of a ring at positions `pos`, zeros at `end` and on; `pos` and `channel` broadcast."""
    kept = tl.load(ring + (pos % SIZE) * NUM_CHANNELS + channel, mask=pos < end, other=0.0)
    if WIDE:
        kept = kept.to(tl.float32)
    return kept


@triton.jit
def _inverse_length(x, AXIS: tl.constexpr):
    wide = x.to(tl.float32)
    return tl.rsqrt(tl.sum(wide * wide, axis=AXIS) + 1e-6)


@triton.jit
def _split_rows(x_2H):
    """First and second row of a pair."""
    return tl.split(tl.trans(x_2H))


@triton.jit
def _inverse_of_pair(A_2HH, H: tl.constexpr):
    """(I + A)^-1 of two strictly lower triangular A side by side; see README.md."""
    row, column = tl.arange(0, H)[None, :, None], tl.arange(0, H)[None, None, :]
    X_2HH = tl.where(row == column, 1.0, 0.0) - tl.where(row // 2 == column // 2, A_2HH, 0.0)
    for level in tl.static_range(1, 4):
        joins = (row // (2 << level) == column // (2 << level)) & (
            row // (1 << level) != column // (1 << level)
        )
        below = tl.dot(tl.where(joins, A_2HH, 0.0), X_2HH, input_precision="tf32x3")
        X_2HH = X_2HH - tl.dot(X_2HH, below, input_precision="tf32x3")
    return X_2HH


@triton.jit
def _share_inverse(
    out, ring, k_channel, first, end, g_C, beta_C,
    SIZE: tl.constexpr, NUM_CHANNELS: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """(I + A)^-1 of a block, turned, and the numbers of its rows.

    In halves: three of the four quarters of A are enough, and no product has more than 16 rows.
    """
    H: tl.constexpr = C // 2
    row, half = tl.arange(0, C), tl.arange(0, H)
    pos_0, pos_1 = (first + half)[:, None], (first + H + half)[:, None]
    pos_2H1 = first + (tl.arange(0, 2)[:, None] * H + half[None, :])[:, :, None]
    k_2HK = _ring_rows(ring, k_channel[None, None, :], pos_2H1, end, SIZE, NUM_CHANNELS, WIDE)
    G_C = tl.cumsum(g_C, axis=0)
    G_end = tl.sum(tl.where(row == C - 1, G_C, 0.0), axis=0)
    G_2H, beta_2H = tl.reshape(G_C, (2, H)), tl.reshape(beta_C, (2, H))
    norm_2H = _inverse_length(k_2HK, 2)
    # Exponents above the diagonal are positive and may overflow.
    strict = (half[:, None] > half[None, :])[None, :, :]
    decay_2HH = tl.exp(tl.where(strict, G_2H[:, :, None] - G_2H[:, None, :], 0.0))
    # bfloat16 inputs: every product is exact, and lengths are divided out afterwards.
    kk_2HH = tl.dot(k_2HK, tl.permute(k_2HK, (0, 2, 1)))
    kk_2HH = kk_2HH * norm_2H[:, :, None] * norm_2H[:, None, :]
    A_2HH = tl.where(strict, kk_2HH * decay_2HH * beta_2H[:, :, None], 0.0)
    X_00, X_11 = tl.split(tl.permute(_inverse_of_pair(A_2HH, H), (1, 2, 0)))

    G_0, G_1 = _split_rows(G_2H)
    _, beta_1 = _split_rows(beta_2H)
    norm_0, norm_1 = _split_rows(norm_2H)
    k_0 = _ring_rows(ring, k_channel[None, :], pos_0, end, SIZE, NUM_CHANNELS, WIDE)
    k_1 = _ring_rows(ring, k_channel[None, :], pos_1, end, SIZE, NUM_CHANNELS, WIDE)
    kk_10 = tl.dot(k_1, tl.trans(k_0)) * norm_1[:, None] * norm_0[None, :]
    A_10 = kk_10 * tl.exp(G_1[:, None] - G_0[None, :]) * beta_1[:, None]
    X_10 = tl.dot(A_10, X_00, input_precision="tf32x3")
    X_10 = -tl.dot(X_11, X_10, input_precision="tf32x3")

    turned = out + _INVERSE * C + half[None, :] * C + half[:, None]
    tl.store(turned, X_00)
    tl.store(turned + H, X_10)
    tl.store(turned + H * C, tl.zeros((H, H), tl.float32))
    tl.store(turned + H * C + H, X_11)
    norm_C = tl.reshape(norm_2H, (C,))
    tl.store(out + _KEY_NORM * C + row, norm_C)
    tl.store(out + _FROM_START * C + row, tl.exp(G_C))
    tl.store(out + _BETAS * C + row, beta_C)
    tl.store(out + _TO_END * C + row, norm_C * tl.exp(G_end - G_C))


@triton.jit
def _share_inside(
    out, ring, q_channel, k_channel, first, end, g_C,
    SIZE: tl.constexpr, NUM_CHANNELS: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Weights of corrected values in outputs, turned, and the lengths of queries."""
    row = tl.arange(0, C)
    pos = (first + row)[:, None]
    q_CK = _ring_rows(ring, q_channel[None, :], pos, end, SIZE, NUM_CHANNELS, WIDE)
    k_CK = _ring_rows(ring, k_channel[None, :], pos, end, SIZE, NUM_CHANNELS, WIDE)
    q_norm, k_norm = _inverse_length(q_CK, 1), _inverse_length(k_CK, 1)
    G_C = tl.cumsum(g_C, axis=0)
    lower = row[:, None] >= row[None, :]
    decay_CC = tl.where(lower, tl.exp(tl.where(lower, G_C[:, None] - G_C[None, :], 0.0)), 0.0)
    inside_CC = tl.dot(q_CK, tl.trans(k_CK)) * q_norm[:, None] * k_norm[None, :] * decay_CC
    tl.store(out + _INSIDE * C + row[None, :] * C + row[:, None], inside_CC)
    tl.store(out + _QUERY_NORM * C + row, q_norm)


@triton.jit
def _rows_of(
    line, cell, rows, layer, stride, width, first_row, start,
    MODE: tl.constexpr, TYPE: tl.constexpr,
):  # fmt: skip
    """Where a kind of rows lies, so that position `pos` is at `pos` % its size times `width`: a
    layer's ring, or the chunk's rows."""
    if MODE == _PREFILL:
        return rows + (first_row - start).to(tl.int64) * width
    else:
        return memory_at(line + cell, TYPE) + layer * stride


# One compilation for every layer and number of sequences.
@triton.jit(do_not_specialize=["layer", "num_sequences"])
def prepare_kernel(
    table, shared, conv_rows, g_rows, beta_rows, layer, num_sequences, stride_ring, stride_gate,
    MODE: tl.constexpr, NUM_KEY_HEADS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr,
    K: tl.constexpr, NUM_CHANNELS: tl.constexpr, NUM_BLOCKS: tl.constexpr,
    ROWS_SHARED: tl.constexpr, COLUMNS: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """What the value columns of a head share.

    Grid: sequences (times layers for a fold), heads, blocks; but for folds twice the blocks, one
    program for what outputs need beside the one for what the state needs.
    """
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (sequence * NUM_VALUE_HEADS + head) * NUM_BLOCKS + part % NUM_BLOCKS
    out = shared + place.to(tl.int64) * (ROWS_SHARED * C)
    if MODE == _FOLD:
        layer = sequence // num_sequences
        sequence = sequence % num_sequences
    line = table + sequence * COLUMNS
    start, end, first, last = _bounds(line, C, MODE)
    block = first + part % NUM_BLOCKS
    if block >= last:
        return
    SIZE: tl.constexpr = _NO_RING if MODE == _PREFILL else _RING
    first_row = tl.load(line + FIRST_ROW).to(tl.int32)
    ring = _rows_of(
        line, CONV_OUT, conv_rows, layer, stride_ring, NUM_CHANNELS, first_row, start,
        MODE, tl.bfloat16,
    )  # fmt: skip
    ring_g = _rows_of(
        line, DECAY, g_rows, layer, stride_gate, NUM_VALUE_HEADS, first_row, start,
        MODE, tl.float32,
    )  # fmt: skip
    ring_beta = _rows_of(
        line, BETA, beta_rows, layer, stride_gate, NUM_VALUE_HEADS, first_row, start,
        MODE, tl.float32,
    )  # fmt: skip
    q_channel = (head // (NUM_VALUE_HEADS // NUM_KEY_HEADS)) * K + tl.arange(0, K)
    k_channel = NUM_KEY_HEADS * K + q_channel
    pos = block * C + tl.arange(0, C)
    gate_at = (pos % SIZE) * NUM_VALUE_HEADS + head
    g_C = tl.load(ring_g + gate_at, mask=pos < end, other=0.0)
    if part < NUM_BLOCKS:
        beta_C = tl.load(ring_beta + gate_at, mask=pos < end, other=0.0)
        _share_inverse(
            out, ring, k_channel, block * C, end, g_C, beta_C, SIZE, NUM_CHANNELS, C, WIDE
        )  # fmt: skip
    elif MODE != _FOLD:
        _share_inside(
            out, ring, q_channel, k_channel, block * C, end, g_C, SIZE, NUM_CHANNELS, C, WIDE
        )  # fmt: skip


@triton.jit
def _times(a_MK, b_KN, WIDE: tl.constexpr):
    """a @ b of float32 a and bfloat16 b: a in three bfloat16 parts, so that products are exact.

    a has few rows: with 64 and more Triton 3.6 takes wgmma on sm_90, with wrong results.
    """
    high = rounded(a_MK, WIDE)
    rest = a_MK - high.to(tl.float32)
    middle = rounded(rest, WIDE)
    low = rounded(rest - middle.to(tl.float32), WIDE)
    total = tl.dot(low, b_KN)
    total = tl.dot(middle, b_KN, total)
    return tl.dot(high, b_KN, total)


@triton.jit(do_not_specialize=["layer", "num_sequences"])
def apply_kernel(
    table, shared, conv_rows, out, layer, num_sequences, stride_ring, stride_state,
    MODE: tl.constexpr, NUM_KEY_HEADS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr,
    K: tl.constexpr, W: tl.constexpr, V: tl.constexpr, NUM_CHANNELS: tl.constexpr,
    NUM_BLOCKS: tl.constexpr, ROWS_SHARED: tl.constexpr, COLUMNS: tl.constexpr,
    C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: sequences (times layers for a fold), value heads, parts of a head's value columns."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    place = (sequence * NUM_VALUE_HEADS + head) * NUM_BLOCKS
    given = shared + place.to(tl.int64) * (ROWS_SHARED * C)
    if MODE == _FOLD:
        layer = sequence // num_sequences
        sequence = sequence % num_sequences
    line = table + sequence * COLUMNS
    start, end, first, last = _bounds(line, C, MODE)
    # A sequence without rows may share its slot with one that has some.
    if last <= first:
        return
    SIZE: tl.constexpr = _NO_RING if MODE == _PREFILL else _RING
    first_row = tl.load(line + FIRST_ROW).to(tl.int32)
    ring = _rows_of(
        line, CONV_OUT, conv_rows, layer, stride_ring, NUM_CHANNELS, first_row, start,
        MODE, tl.bfloat16,
    )  # fmt: skip
    states = memory_at(line + CHECKPOINT, tl.float32) + layer * stride_state

    key_head = head // (NUM_VALUE_HEADS // NUM_KEY_HEADS)
    k_channel = (NUM_KEY_HEADS + key_head) * K + tl.arange(0, K)[None, :]
    q_channel = key_head * K + tl.arange(0, K)[None, :]
    column = part * V + tl.arange(0, V)
    v_channel = 2 * NUM_KEY_HEADS * K + head * W + column[None, :]
    state_at = states + head * (K * W) + tl.arange(0, K)[None, :] * W + column[:, None]
    S_VK = tl.load(state_at)
    row = tl.arange(0, C)
    square = row[:, None] * C + row[None, :]
    for block in range(first, last):
        pos = block * C + row
        k_CK = _ring_rows(ring, k_channel, pos[:, None], end, SIZE, NUM_CHANNELS, WIDE)
        v_CV = _ring_rows(ring, v_channel, pos[:, None], end, SIZE, NUM_CHANNELS, WIDE)
        turned_CC = tl.load(given + _INVERSE * C + square)
        k_norm = tl.load(given + _KEY_NORM * C + row)
        from_start = tl.load(given + _FROM_START * C + row)
        beta_C = tl.load(given + _BETAS * C + row)
        kS_VC = _times(S_VK, tl.trans(k_CK), WIDE) * k_norm[None, :]
        v_VC = tl.trans(v_CV).to(tl.float32)
        R_VC = beta_C[None, :] * (v_VC - from_start[None, :] * kS_VC)
        D_VC = tl.dot(R_VC, turned_CC, input_precision="tf32x3")
        if MODE != _FOLD:
            q_CK = _ring_rows(ring, q_channel, pos[:, None], end, SIZE, NUM_CHANNELS, WIDE)
            q_norm = tl.load(given + _QUERY_NORM * C + row)
            inside_CC = tl.load(given + _INSIDE * C + square)
            qS_VC = _times(S_VK, tl.trans(q_CK), WIDE) * q_norm[None, :]
            inside_VC = tl.dot(D_VC, inside_CC, input_precision="tf32x3")
            o_VC = (from_start[None, :] * qS_VC + inside_VC) * (K**-0.5)
            out_at = (first_row + pos - start).to(tl.int64) * (NUM_VALUE_HEADS * W) + head * W
            tl.store(
                out + out_at[None, :] + column[:, None],
                rounded(o_VC, WIDE).to(out.dtype.element_ty),
                mask=((pos >= start) & (pos < end))[None, :],
            )
        # Behind a chunk's last block it is wanted if that is whole, behind a window's never.
        goes_on = (block + 1) * C <= end if MODE == _PREFILL else block + 1 < last
        if MODE == _FOLD or goes_on:
            to_end = tl.load(given + _TO_END * C + row)
            decay = tl.load(given + _FROM_START * C + C - 1)
            S_VK = decay * S_VK + _times(D_VC * to_end[None, :], k_CK, WIDE)
        given += ROWS_SHARED * C
    if MODE != _WINDOW:
        tl.store(state_at, S_VK)


def delta_window(table: SequenceTable, layer: int, weights: DeltaWeights, out_MV: Tensor) -> None:
    """Outputs of windows whose rows are in the ring, into `out_MV`."""
    _run_blocks(table, layer, weights, out_MV, table.num_sequences, _WINDOW)


def delta_chunk(
    table: SequenceTable, layer: int, weights: DeltaWeights, rows: Appended, out_MV: Tensor
) -> None:
    """Outputs of prefill chunks, which begin with a block, into `out_MV`; folds whole blocks."""
    _run_blocks(table, layer, weights, out_MV, table.num_sequences, _PREFILL, rows)


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    num_layers = table.memory[0].checkpoint_LRKW.shape[0]
    _run_blocks(table, 0, weights, table.rows_BF, table.num_sequences * num_layers, _FOLD)


def _run_blocks(
    table: SequenceTable,
    layer: int,
    weights: DeltaWeights,
    out: Tensor,
    num_sequences: int,
    mode: tl.constexpr,
    rows: Appended | None = None,
) -> None:
    """Both launches; `num_sequences` counts a sequence once a layer for a fold."""
    memory, heads = table.memory[0], weights.num_value_heads
    num_blocks = _MOST_BLOCKS[mode.value]
    assert mode.value == _FOLD.value or table.max_rows <= num_blocks * BLOCK, "more rows than fit"
    size = num_sequences * heads * num_blocks * _ROWS_SHARED * BLOCK
    shared = torch.empty(size, dtype=torch.float32, device=table.rows_BF.device)
    block_v = min(BLOCK_V, weights.value_dim)
    conv, decay, beta = rows or (memory.conv_out_LEX, memory.decay_LER, memory.beta_LER)
    common = {
        "MODE": mode.value, "NUM_KEY_HEADS": weights.num_key_heads, "NUM_VALUE_HEADS": heads,
        "K": weights.key_dim, "NUM_CHANNELS": weights.channels, "NUM_BLOCKS": num_blocks,
        "ROWS_SHARED": _ROWS_SHARED, "COLUMNS": NUM_COLUMNS, "C": BLOCK,
        "WIDE": is_interpreted(), "num_warps": _WARPS, "num_stages": 1, **_EXACT,
    }  # fmt: skip
    parts = 1 if mode.value == _FOLD.value else 2 * num_blocks
    prepare_kernel[(num_sequences, heads, parts)](
        table.rows_BF, shared, conv, decay, beta, layer, table.num_sequences,
        memory.conv_out_LEX.stride(0), memory.decay_LER.stride(0), **common,
    )  # fmt: skip
    apply_kernel[(num_sequences, heads, weights.value_dim // block_v)](
        table.rows_BF, shared, conv, out, layer, table.num_sequences,
        memory.conv_out_LEX.stride(0), memory.checkpoint_LRKW.stride(0),
        W=weights.value_dim, V=block_v, **common,
    )  # fmt: skip


def specimens() -> list[Specimen]:
    """Each mode of the shipped model, of a 4B model and of the narrowest that is taken."""
    types = {
        "table": "*i64", "shared": "*fp32", "conv_rows": "*bf16", "g_rows": "*fp32",
        "beta_rows": "*fp32", "out": "*bf16", "layer": "i32", "num_sequences": "i32",
        "stride_ring": "i32", "stride_gate": "i32", "stride_state": "i32",
    }  # fmt: skip
    launches = [
        (name, kernel, mode)
        for name, kernel in (("prepare", prepare_kernel), ("apply", apply_kernel))
        for mode in _MOST_BLOCKS
    ]
    found = []
    for key_heads, value_heads, width in ((4, 4, 128), (16, 32, 128), (2, 4, 32)):
        for name, kernel, mode in launches:
            constants = {
                "MODE": mode, "NUM_KEY_HEADS": key_heads, "NUM_VALUE_HEADS": value_heads,
                "K": width, "W": width, "V": BLOCK_V, "NUM_BLOCKS": _MOST_BLOCKS[mode],
                "NUM_CHANNELS": (2 * key_heads + value_heads) * width,
                "ROWS_SHARED": _ROWS_SHARED, "COLUMNS": NUM_COLUMNS, "C": BLOCK, "WIDE": False,
            }  # fmt: skip
            names = kernel.arg_names
            found.append(
                Specimen(
                    name=f"delta_{name}{('', '_fold', '_prefill')[mode]}_{value_heads}x{width}",
                    kernel=kernel,
                    types={key: kind for key, kind in types.items() if key in names},
                    constants={key: value for key, value in constants.items() if key in names},
                    num_warps=_WARPS,
                    num_stages=1,
                    options=_EXACT,
                )
            )
    return found
