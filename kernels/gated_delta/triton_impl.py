# mypy: disallow-untyped-defs=false
"""The mixer of a delta layer in Triton. Windows and folds: triton_append.py, triton_blocks.py.

A prefill chunk is one launch: a program owns one value head of one sequence and `BLOCK_W` of its
value columns, and goes through the chunk's blocks of 32 rows, rows that are not there being zeros.
No product is contracted with a sum (`enable_fp_fusion=False`).

Shape legend: see window.py; C rows of a block.
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
    CONV_IN,
    CONV_OUT,
    DECAY,
    FIRST_ROW,
    NUM_ROWS,
    START,
)
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from . import triton_append, triton_blocks
from .triton_parts import memory_at
from .window import DeltaWeights

BLOCK_W = 32
_WARPS = 8
_EXACT = {"enable_fp_fusion": False}
_RING = tl.constexpr(RING)


@triton.jit
def _convolved(
    fresh, taps, ring_in, ring_out, channel, pos, start, end, stride, append_from,
    NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Channels of a block's rows behind the convolution, [rows, channels]; zeros at `end` and on.

    `fresh` points at the pass's row for position 0 of the sequence. The convolution takes what lies
    before `start` from the ring; its rows go to the ring from `append_from` on.
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


@triton.jit
def _halves(x):
    """First and second half of the rows of a matrix."""
    folded = tl.reshape(x, (2, x.shape[0] // 2, x.shape[1]))
    return tl.split(tl.permute(folded, (1, 2, 0)))


@triton.jit
def _inverse(A_CC, C: tl.constexpr):
    """(I + A)^-1 of a strictly lower triangular A: inverses of diagonal blocks, joined in pairs.

    This is substitution by blocks: it stays exact when keys are nearly alike, where a power series
    overflows. A row depends on the rows of A up to its own; all else is multiplied by exact zeros.
    """
    row, column = tl.arange(0, C)[:, None], tl.arange(0, C)[None, :]
    X_CC = tl.where(row == column, 1.0, 0.0)
    X_CC = X_CC - tl.where(row // 2 == column // 2, A_CC, 0.0)
    for level in tl.static_range(1, 5):
        joins = (row // (2 << level) == column // (2 << level)) & (
            row // (1 << level) != column // (1 << level)
        )
        below = tl.dot(tl.where(joins, A_CC, 0.0), X_CC, input_precision="tf32x3")
        X_CC = X_CC - tl.dot(X_CC, below, input_precision="tf32x3")
    return X_CC


# One compilation for every layer.
@triton.jit(do_not_specialize=["layer"])
def prefill_kernel(
    table, qkvz, ba, taps, A_log, dt_bias, out, layer, stride_qkvz,
    stride_ring, stride_gate, stride_state,
    NUM_KEY_HEADS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr,
    K: tl.constexpr, W: tl.constexpr, BLOCK_W: tl.constexpr, NUM_TAPS: tl.constexpr,
    NUM_CHANNELS: tl.constexpr, COLUMNS: tl.constexpr, C: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """A chunk's rows. Grid: sequences, value heads, parts of a head's value columns."""
    sequence, head, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    line = table + sequence * COLUMNS
    start = tl.load(line + START).to(tl.int32)
    end = start + tl.load(line + NUM_ROWS).to(tl.int32)
    first, last = start // C, (end + C - 1) // C
    ring_in = memory_at(line + CONV_IN, tl.bfloat16) + layer * stride_ring
    ring_out = memory_at(line + CONV_OUT, tl.bfloat16) + layer * stride_ring
    ring_g = memory_at(line + DECAY, tl.float32) + layer * stride_gate
    ring_beta = memory_at(line + BETA, tl.float32) + layer * stride_gate
    states = memory_at(line + CHECKPOINT, tl.float32) + layer * stride_state

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
    first_row = tl.load(line + FIRST_ROW).to(tl.int32)
    fresh = qkvz + (first_row - start).to(tl.int64) * stride_qkvz
    rate = tl.exp(tl.load(A_log + head))
    bias = tl.load(dt_bias + head)
    for block in range(first, last):
        pos = block * C + row
        kq_pos = block * C + both % C
        kq = _convolved(
            fresh, taps, ring_in, ring_out, kq_channel, kq_pos, start, end, stride_qkvz,
            keys_from, NUM_CHANNELS, NUM_TAPS, WIDE,
        )  # fmt: skip
        v_CW = _convolved(
            fresh, taps, ring_in, ring_out, v_channel, pos, start, end, stride_qkvz,
            append_from, NUM_CHANNELS, NUM_TAPS, WIDE,
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

        k_CK, _ = _halves(kq)
        wide = kq.to(tl.float32)
        norms = tl.rsqrt(tl.sum(wide * wide, axis=1) + 1e-6)
        k_norm, _ = tl.split(tl.trans(tl.reshape(norms, (2, C))))
        G_C = tl.cumsum(g_C, axis=0)
        decay_CC = tl.where(lower, tl.exp(tl.where(lower, G_C[:, None] - G_C[None, :], 0.0)), 0.0)
        # bfloat16 inputs: every product is exact, and lengths are divided out afterwards.
        kk_CC, qk_CC = _halves(tl.dot(kq, tl.trans(k_CK)) * norms[:, None])
        kS_CW, qS_CW = _halves(_times(kq, S_KW, WIDE) * norms[:, None])
        strict = row[:, None] > row[None, :]
        A_CC = tl.where(strict, kk_CC * k_norm[None, :] * decay_CC * beta_C[:, None], 0.0)
        from_start = tl.exp(G_C)
        R_CW = beta_C[:, None] * (v_CW.to(tl.float32) - from_start[:, None] * kS_CW)
        D_CW = tl.dot(_inverse(A_CC, C), R_CW, input_precision="tf32x3")
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
    # A sequence without rows may share its slot with one that has some.
    tl.store(state_at, S_KW, mask=tl.broadcast_to(end > start, (K, BLOCK_W)))


@triton.jit(do_not_specialize=["layer"])
def append_kernel(
    table, qkvz, layer, stride_qkvz, stride_ring,
    NUM_CHANNELS: tl.constexpr, BLOCK_X: tl.constexpr, COLUMNS: tl.constexpr,
):  # fmt: skip
    """A prefill chunk's last 64 inputs of the convolution to the ring. Grid: sequences, channels.

    A launch of its own: they take the places of rows that the chunk's own convolution reads.
    """
    line = table + tl.program_id(0) * COLUMNS
    start = tl.load(line + START).to(tl.int32)
    end = start + tl.load(line + NUM_ROWS).to(tl.int32)
    ring_in = memory_at(line + CONV_IN, tl.bfloat16) + layer * stride_ring
    fresh = qkvz + (tl.load(line + FIRST_ROW) - start) * stride_qkvz
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
    if not prefill:
        triton_append.append_rows(table, layer, qkvz_MZ, ba_MR, weights)
        triton_blocks.delta_window(table, layer, weights, out_MV)
        return out_MV
    memory = table.memory[0]
    block_w = min(BLOCK_W, weights.value_dim)
    prefill_kernel[
        (table.num_sequences, weights.num_value_heads, weights.value_dim // block_w)
    ](
        table.rows_BF, qkvz_MZ, ba_MR, weights.taps_XT, weights.A_log_R, weights.dt_bias_R, out_MV,
        layer, qkvz_MZ.stride(0), memory.conv_in_LEX.stride(0),
        memory.decay_LER.stride(0), memory.checkpoint_LRKW.stride(0),
        NUM_KEY_HEADS=weights.num_key_heads, NUM_VALUE_HEADS=weights.num_value_heads,
        K=weights.key_dim, W=weights.value_dim, BLOCK_W=block_w,
        NUM_TAPS=weights.taps_XT.shape[1], NUM_CHANNELS=weights.channels,
        COLUMNS=NUM_COLUMNS, C=BLOCK, WIDE=is_interpreted(),
        num_warps=_WARPS, num_stages=1, **_EXACT,
    )  # fmt: skip
    append_kernel[(table.num_sequences, triton.cdiv(weights.channels, 128))](
        table.rows_BF, qkvz_MZ, layer, qkvz_MZ.stride(0), memory.conv_in_LEX.stride(0),
        NUM_CHANNELS=weights.channels, BLOCK_X=128, COLUMNS=NUM_COLUMNS,
    )  # fmt: skip
    return out_MV


def delta_fold(table: SequenceTable, weights: DeltaWeights) -> None:
    """See `window.delta_fold`."""
    triton_blocks.delta_fold(table, weights)


def specimens() -> list[Specimen]:
    """Prefill of the shipped model, of a 4B model and of the narrowest that is taken; windows and
    folds."""
    types = {
        "table": "*i64", "qkvz": "*bf16", "ba": "*fp32", "taps": "*bf16", "A_log": "*fp32",
        "dt_bias": "*fp32", "out": "*bf16", "layer": "i32", "stride_qkvz": "i32",
        "stride_ring": "i32", "stride_gate": "i32", "stride_state": "i32",
    }  # fmt: skip
    found = []
    for key_heads, value_heads, width in ((4, 4, 128), (16, 32, 128), (2, 4, 32)):
        constants = {
            "NUM_KEY_HEADS": key_heads, "NUM_VALUE_HEADS": value_heads, "K": width,
            "W": width, "BLOCK_W": BLOCK_W, "NUM_TAPS": 4,
            "NUM_CHANNELS": (2 * key_heads + value_heads) * width, "COLUMNS": NUM_COLUMNS,
            "C": BLOCK, "WIDE": False,
        }  # fmt: skip
        found.append(
            Specimen(
                name=f"delta_prefill_{value_heads}x{width}",
                kernel=prefill_kernel,
                types=types,
                constants=constants,
                num_warps=_WARPS,
                num_stages=1,
                options=_EXACT,
            )
        )
    return found + triton_append.specimens() + triton_blocks.specimens()
