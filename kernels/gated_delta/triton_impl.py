# mypy: disallow-untyped-defs=false
"""The mixer of a delta layer in Triton: one launch a layer and pass, one to fold all layers.

A program owns one value head of one sequence and `BLOCK_W` of its value columns. It goes through
the absolute blocks of 32 rows that the pass touches, always whole, empty rows being zeros, so that
a row has the same bits in every window. Fold and window share one source, and no product is
contracted with a sum (`enable_fp_fusion=False`): a fold repeats a window's operations bit for bit.

Shape legend: see window.py; C rows of a block.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels import sequence_table as table_columns
from ocria.kernels.sequence_table import BLOCK, NUM_COLUMNS, RING, SequenceTable
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from . import triton_append, triton_blocks
from .triton_parts import halves, inverse, memory_at
from .window import DeltaWeights

SPLIT = True
"""Windows and folds by the launches of triton_append.py and triton_blocks.py, else by one each."""
BLOCK_W = 32
_WARPS = 8
_WINDOW, _PREFILL, _FOLD = 0, 1, 2
_FIRST_ROW = tl.constexpr(table_columns.FIRST_ROW)
_NUM_ROWS = tl.constexpr(table_columns.NUM_ROWS)
_START = tl.constexpr(table_columns.START)
_KEPT = tl.constexpr(table_columns.KEPT)
_CONV_IN = tl.constexpr(table_columns.CONV_IN)
_CONV_OUT = tl.constexpr(table_columns.CONV_OUT)
_DECAY = tl.constexpr(table_columns.DECAY)
_BETA = tl.constexpr(table_columns.BETA)
_CHECKPOINT = tl.constexpr(table_columns.CHECKPOINT)
_RING = tl.constexpr(RING)


@triton.jit
def _kept(ring, channel, pos, NUM_CHANNELS: tl.constexpr, WIDE: tl.constexpr):
    """The ring's rows at positions `pos`; `channel` and the result are [rows, channels]."""
    kept = tl.load(ring + (pos % _RING)[:, None] * NUM_CHANNELS + channel)
    if WIDE:
        kept = kept.to(tl.float32)
    return kept


@triton.jit
def _convolved(
    fresh, taps, ring_in, ring_out, channel, pos, start, end, stride, append_from,
    NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr, MODE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Channels of a block's rows behind the convolution, [rows, channels]; zeros at `end` and on.

    `fresh` points at the pass's row for position 0 of the sequence. Rows before `start` come from
    the ring; rows of the pass are computed, and go to the ring from `append_from` on.
    """
    slot = (pos % _RING)[:, None] * NUM_CHANNELS + channel
    is_new = ((pos >= start) & (pos < end))[:, None]
    total = tl.zeros((channel.shape[0], channel.shape[1]), tl.float32)
    for tap in tl.static_range(NUM_TAPS):
        place = pos - (NUM_TAPS - 1 - tap)
        in_pass = (place >= start)[:, None] & is_new
        in_ring = ((place < start) & (place >= 0))[:, None] & is_new
        raw = tl.load(fresh + place[:, None] * stride + channel, mask=in_pass, other=0.0)
        old = tl.load(
            ring_in + ((place + _RING) % _RING)[:, None] * NUM_CHANNELS + channel,
            mask=in_ring, other=0.0,
        )  # fmt: skip
        weight = tl.load(taps + tap * NUM_CHANNELS + channel).to(tl.float32)
        # One of the two is an exact zero.
        total += (raw.to(tl.float32) + old.to(tl.float32)) * weight
    # SiLU of an exact zero is one: rows at `end` and on stay zeros.
    conv = rounded(total / (1.0 + tl.exp(-total)), WIDE)
    appended = is_new & (pos >= append_from)[:, None]
    tl.store(ring_out + slot, conv.to(ring_out.dtype.element_ty), mask=appended)
    if MODE == 0:
        raw = tl.load(fresh + pos[:, None] * stride + channel, mask=appended, other=0.0)
        tl.store(ring_in + slot, raw, mask=appended)
        is_old = (pos < start)[:, None]
        kept = tl.load(ring_out + slot, mask=is_old, other=0.0)
        if WIDE:
            kept = kept.to(tl.float32)
        conv = tl.where(is_old, kept, conv)
    return conv


@triton.jit
def _times(a, b, WIDE: tl.constexpr):
    """a @ b of bfloat16 a and float32 b: b in three bfloat16 parts, so that every product is exact.

    Half the work of three tf32 passes, and a third of their registers. b is the left side, turned:
    with a there, Triton 3.6 takes wgmma on sm_90, and 32 columns come out wrong (4 warps) or leave
    shared memory (8 warps).
    """
    high = rounded(b, WIDE)
    rest = b - high.to(tl.float32)
    middle = rounded(rest, WIDE)
    low = rounded(rest - middle.to(tl.float32), WIDE)
    turned = tl.trans(a)
    total = tl.dot(tl.trans(low), turned)
    total = tl.dot(tl.trans(middle), turned, total)
    return tl.trans(tl.dot(tl.trans(high), turned, total))


# One compilation for every layer and number of sequences.
@triton.jit(do_not_specialize=["layer", "num_sequences"])
def delta_kernel(
    table, qkvz, ba, taps, A_log, dt_bias, out, layer, num_sequences, stride_qkvz,
    stride_ring, stride_gate, stride_state,
    MODE: tl.constexpr, NUM_KEY_HEADS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr,
    K: tl.constexpr, W: tl.constexpr, BLOCK_W: tl.constexpr, NUM_TAPS: tl.constexpr,
    NUM_CHANNELS: tl.constexpr, COLUMNS: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: sequences (times layers for a fold), value heads, parts of a head's value columns."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    if MODE == 2:
        layer = sequence // num_sequences
        sequence = sequence % num_sequences
    line = table + sequence * COLUMNS
    start = tl.load(line + _START).to(tl.int32)
    if MODE == 2:
        # Whole block or nothing: the loop below runs once or not at all.
        first = start // C
        last = (start + tl.load(line + _KEPT).to(tl.int32)) // C
        last = tl.minimum(last, first + 1)
        end = (first + 1) * C
    else:
        end = start + tl.load(line + _NUM_ROWS).to(tl.int32)
        first, last = start // C, (end + C - 1) // C
    ring_in = memory_at(line + _CONV_IN, tl.bfloat16) + layer * stride_ring
    ring_out = memory_at(line + _CONV_OUT, tl.bfloat16) + layer * stride_ring
    ring_g = memory_at(line + _DECAY, tl.float32) + layer * stride_gate
    ring_beta = memory_at(line + _BETA, tl.float32) + layer * stride_gate
    states = memory_at(line + _CHECKPOINT, tl.float32) + layer * stride_state

    GROUP: tl.constexpr = NUM_VALUE_HEADS // NUM_KEY_HEADS
    key_head = head // GROUP
    k_column = tl.arange(0, K)
    w_column = part * BLOCK_W + tl.arange(0, BLOCK_W)
    # Rows of keys, then rows of queries: 64 rows fill a wide product, and its other side stays in
    # shared memory.
    both = tl.arange(0, 2 * C)
    head_of_row = tl.where(both < C, NUM_KEY_HEADS + key_head, key_head)
    kq_channel = head_of_row[:, None] * K + k_column[None, :]
    v_channel = 2 * NUM_KEY_HEADS * K + head * W + w_column[None, :]
    v_channel = tl.broadcast_to(v_channel, (C, BLOCK_W))
    # Each channel and gate is appended by one program; the ring holds the last rows.
    append_from = tl.maximum(end - _RING, start)
    gates_from = tl.where(part == 0, append_from, end)
    keys_from = tl.where(head % GROUP == 0, gates_from, end)

    row = tl.arange(0, C)
    lower = row[:, None] >= row[None, :]
    state_at = states + head * (K * W) + k_column[:, None] * W + w_column[None, :]
    S_KW = tl.load(state_at)
    if MODE != 2:
        first_row = tl.load(line + _FIRST_ROW).to(tl.int32)
        fresh = qkvz + (first_row - start).to(tl.int64) * stride_qkvz
        rate = tl.exp(tl.load(A_log + head))
        bias = tl.load(dt_bias + head)
    for block in range(first, last):
        pos = block * C + row
        kq_pos = block * C + both % C
        if MODE == 2:
            kq = _kept(ring_out, kq_channel, kq_pos, NUM_CHANNELS, WIDE)
            v_CW = _kept(ring_out, v_channel, pos, NUM_CHANNELS, WIDE)
            gate_at = (pos % _RING) * NUM_VALUE_HEADS + head
            g_C = tl.load(ring_g + gate_at)
            beta_C = tl.load(ring_beta + gate_at)
        else:
            kq = _convolved(
                fresh, taps, ring_in, ring_out, kq_channel, kq_pos, start, end, stride_qkvz,
                keys_from, NUM_CHANNELS, NUM_TAPS, MODE, WIDE,
            )  # fmt: skip
            v_CW = _convolved(
                fresh, taps, ring_in, ring_out, v_channel, pos, start, end, stride_qkvz,
                append_from, NUM_CHANNELS, NUM_TAPS, MODE, WIDE,
            )  # fmt: skip
            is_new = (pos >= start) & (pos < end)
            gates = ba + (first_row + pos - start) * (2 * NUM_VALUE_HEADS) + head
            b_C = tl.load(gates, mask=is_new, other=0.0).to(tl.float32)
            a_C = tl.load(gates + NUM_VALUE_HEADS, mask=is_new, other=0.0).to(tl.float32) + bias
            # softplus without overflow
            soft_C = tl.maximum(a_C, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(a_C)))
            g_C = tl.where(is_new, -rate * soft_C, 0.0)
            beta_C = tl.where(is_new, 1.0 / (1.0 + tl.exp(-b_C)), 0.0)
            gate_at = (pos % _RING) * NUM_VALUE_HEADS + head
            appended = is_new & (pos >= gates_from)
            tl.store(ring_g + gate_at, g_C, mask=appended)
            tl.store(ring_beta + gate_at, beta_C, mask=appended)
            if MODE == 0:
                is_old = pos < start
                g_C = tl.where(is_old, tl.load(ring_g + gate_at, mask=is_old, other=0.0), g_C)
                beta_C = tl.where(
                    is_old, tl.load(ring_beta + gate_at, mask=is_old, other=0.0), beta_C
                )

        k_CK, _ = halves(kq)
        wide = kq.to(tl.float32)
        norms = tl.rsqrt(tl.sum(wide * wide, axis=1) + 1e-6)
        k_norm, _ = tl.split(tl.trans(tl.reshape(norms, (2, C))))
        G_C = tl.cumsum(g_C, axis=0)
        decay_CC = tl.where(lower, tl.exp(tl.where(lower, G_C[:, None] - G_C[None, :], 0.0)), 0.0)
        # bfloat16 inputs: every product is exact, and lengths are divided out afterwards.
        kk_CC, qk_CC = halves(tl.dot(kq, tl.trans(k_CK)) * norms[:, None])
        kS_CW, qS_CW = halves(_times(kq, S_KW, WIDE) * norms[:, None])
        strict = row[:, None] > row[None, :]
        A_CC = tl.where(strict, kk_CC * k_norm[None, :] * decay_CC * beta_C[:, None], 0.0)
        from_start = tl.exp(G_C)
        R_CW = beta_C[:, None] * (v_CW.to(tl.float32) - from_start[:, None] * kS_CW)
        D_CW = tl.dot(inverse(A_CC, C), R_CW, input_precision="tf32x3")
        if MODE != 2:
            inside_CC = qk_CC * k_norm[None, :] * decay_CC
            inside_CW = tl.dot(inside_CC, D_CW, input_precision="tf32x3")
            o_CW = (from_start[:, None] * qS_CW + inside_CW) * (K**-0.5)
            out_at = (first_row + pos - start).to(tl.int64) * (NUM_VALUE_HEADS * W) + head * W
            tl.store(
                out + out_at[:, None] + w_column[None, :],
                rounded(o_CW, WIDE).to(out.dtype.element_ty),
                mask=is_new[:, None],
            )
        if (block + 1) * C <= end:
            G_end = tl.sum(tl.where(row == C - 1, G_C, 0.0), axis=0)
            share_C = k_norm * tl.exp(G_end - G_C)
            added_KW = _times(tl.trans(k_CK), D_CW * share_C[:, None], WIDE)
            S_KW = tl.exp(G_end) * S_KW + added_KW
    if MODE != 0:
        width = tl.where(last > first, W, 0)
        tl.store(state_at, S_KW, mask=(w_column < width)[None, :])


@triton.jit(do_not_specialize=["layer"])
def append_kernel(
    table, qkvz, layer, stride_qkvz, stride_ring,
    NUM_CHANNELS: tl.constexpr, BLOCK_X: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A prefill chunk's last 64 inputs of the convolution to the ring. Grid: sequences, channels.

    A launch of its own: they take the places of rows that the chunk's own convolution reads.
    """
    line = table + tl.program_id(0) * COLUMNS
    start = tl.load(line + _START).to(tl.int32)
    end = start + tl.load(line + _NUM_ROWS).to(tl.int32)
    ring_in = memory_at(line + _CONV_IN, tl.bfloat16) + layer * stride_ring
    fresh = qkvz + (tl.load(line + _FIRST_ROW) - start) * stride_qkvz
    pos = end - _RING + tl.arange(0, _RING)
    channel = tl.program_id(1) * BLOCK_X + tl.arange(0, BLOCK_X)
    inside = (pos >= start)[:, None] & (channel < NUM_CHANNELS)[None, :]
    raw = tl.load(fresh + pos[:, None] * stride_qkvz + channel[None, :], mask=inside, other=0.0)
    slot = ((pos + _RING) % _RING)[:, None] * NUM_CHANNELS + channel[None, :]
    tl.store(ring_in + slot, raw, mask=inside)


def delta_pass(
    table: SequenceTable,
    layer: int,
    qkvz_MZ: Tensor,
    ba_MR: Tensor,
    weights: DeltaWeights,
    *,
    prefill: bool,
) -> Tensor:
    """See `window.delta_pass`."""
    num_rows, columns = qkvz_MZ.shape[0], weights.num_value_heads * weights.value_dim
    out_MV = torch.empty(num_rows, columns, dtype=qkvz_MZ.dtype, device=qkvz_MZ.device)
    assert weights.taps_XT.stride(0) == 1, "a tap's weights lie in one piece"
    assert qkvz_MZ.stride(1) == 1 and ba_MR.is_contiguous(), "rows lie in one piece"
    if not prefill and SPLIT:
        triton_append.append_rows(table, layer, qkvz_MZ, ba_MR, weights)
        triton_blocks.delta_window(table, layer, weights, out_MV)
        return out_MV
    _launch(table, layer, qkvz_MZ, ba_MR, weights, out_MV, _PREFILL if prefill else _WINDOW)
    if prefill:
        memory = table.memory[0]
        append_kernel[(table.num_sequences, triton.cdiv(weights.channels, 128))](
            table.rows_BF, qkvz_MZ, layer, qkvz_MZ.stride(0), memory.conv_in_LEX.stride(0),
            NUM_CHANNELS=weights.channels, BLOCK_X=128, COLUMNS=NUM_COLUMNS,
        )  # fmt: skip
    return out_MV


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    if SPLIT:
        return triton_blocks.delta_fold(table, weights)
    nothing = table.rows_BF
    _launch(table, 0, nothing, nothing, weights, nothing, _FOLD)


def _launch(
    table: SequenceTable,
    layer: int,
    qkvz: Tensor,
    ba: Tensor,
    weights: DeltaWeights,
    out: Tensor,
    mode: int,
) -> None:
    memory = table.memory[0]
    block_w = min(BLOCK_W, weights.value_dim)
    layers = memory.checkpoint_LRKW.shape[0] if mode == _FOLD else 1
    grid = (table.num_sequences * layers, weights.num_value_heads, weights.value_dim // block_w)
    delta_kernel[grid](
        table.rows_BF, qkvz, ba, weights.taps_XT, weights.A_log_R, weights.dt_bias_R, out,
        layer, table.num_sequences, qkvz.stride(0), memory.conv_in_LEX.stride(0),
        memory.decay_LER.stride(0), memory.checkpoint_LRKW.stride(0),
        MODE=mode, NUM_KEY_HEADS=weights.num_key_heads, NUM_VALUE_HEADS=weights.num_value_heads,
        K=weights.key_dim, W=weights.value_dim, BLOCK_W=block_w,
        NUM_TAPS=weights.taps_XT.shape[1], NUM_CHANNELS=weights.channels,
        COLUMNS=NUM_COLUMNS, C=BLOCK, WIDE=is_interpreted(),
        num_warps=_WARPS, num_stages=1, **_EXACT,
    )  # fmt: skip


_EXACT = {"enable_fp_fusion": False}


def specimens() -> list[Specimen]:
    """Window, prefill and fold of the shipped model; the window of a 4B model."""
    types = {
        "table": "*i64", "qkvz": "*bf16", "ba": "*fp32", "taps": "*bf16", "A_log": "*fp32",
        "dt_bias": "*fp32", "out": "*bf16", "layer": "i32", "num_sequences": "i32",
        "stride_qkvz": "i32", "stride_ring": "i32", "stride_gate": "i32", "stride_state": "i32",
    }  # fmt: skip
    launches = [("window", 0, 4, 4), ("prefill", 1, 4, 4), ("fold", 2, 4, 4), ("window", 0, 16, 32)]
    found = []
    for name, mode, key_heads, value_heads in launches:
        constants = {
            "MODE": mode, "NUM_KEY_HEADS": key_heads, "NUM_VALUE_HEADS": value_heads, "K": 128,
            "W": 128, "BLOCK_W": BLOCK_W, "NUM_TAPS": 4,
            "NUM_CHANNELS": (2 * key_heads + value_heads) * 128, "COLUMNS": NUM_COLUMNS,
            "C": BLOCK, "WIDE": False,
        }  # fmt: skip
        found.append(
            Specimen(
                name=f"delta_{name}_{value_heads}x128",
                kernel=delta_kernel,
                types=types,
                constants=constants,
                num_warps=_WARPS,
                num_stages=1,
                options=_EXACT,
            )
        )
    return found + triton_append.specimens() + triton_blocks.specimens()
