# mypy: disallow-untyped-defs=false
"""Rows through the convolution and the gates, one launch: a window's into the ring, those of a
prefill chunk into memory of the pass, the last of them into the ring as well.

Shape legend: see window.py.
"""

from typing import NamedTuple

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.sequence_table import NUM_COLUMNS, RING, SequenceTable
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_columns import BETA, CONV_IN, CONV_OUT, DECAY, FIRST_ROW, NUM_ROWS, START
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .triton_parts import memory_at
from .window import DeltaWeights

_ROWS = 8
_CHANNELS = 128
_WARPS = 4
_EXACT = {"enable_fp_fusion": False}
_RING = tl.constexpr(RING)


@triton.jit
def _append_channels(
    fresh, taps, ring_in, ring_out, all_rows, channel, row, start, num_rows, stride,
    PREFILL: tl.constexpr, NUM_CHANNELS: tl.constexpr, NUM_TAPS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Rows [rows, 1] of some channels [1, channels] through the convolution and SiLU."""
    exists = channel < NUM_CHANNELS
    inside = (row < num_rows) & exists
    raw = tl.load(fresh + row * stride + channel, mask=inside, other=0.0)
    total = tl.zeros((row.shape[0], channel.shape[1]), tl.float32)
    for tap in tl.static_range(NUM_TAPS):
        before = row - (NUM_TAPS - 1 - tap)
        in_pass = tl.load(fresh + before * stride + channel, mask=inside & (before >= 0), other=0.0)
        in_ring = tl.load(
            ring_in + ((start + before + _RING) % _RING) * NUM_CHANNELS + channel,
            mask=inside & (before < 0) & (start + before >= 0), other=0.0,
        )  # fmt: skip
        weight = tl.load(taps + tap * NUM_CHANNELS + channel, mask=exists, other=0.0)
        # One of the two is an exact zero.
        total += (in_pass.to(tl.float32) + in_ring.to(tl.float32)) * weight.to(tl.float32)
    conv = rounded(total / (1.0 + tl.exp(-total)), WIDE).to(ring_out.dtype.element_ty)
    slot = ((start + row) % _RING) * NUM_CHANNELS + channel
    if PREFILL:
        # Inputs come later: they take the places of rows that this launch reads.
        tl.store(all_rows + row * NUM_CHANNELS + channel, conv, mask=inside)
        inside &= row >= num_rows - _RING
    else:
        tl.store(ring_in + slot, raw, mask=inside)
    tl.store(ring_out + slot, conv, mask=inside)


@triton.jit
def _append_gates(
    gates, A_log, dt_bias, ring_g, ring_beta, all_g, all_beta, head, row, start, num_rows,
    PREFILL: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr,
):  # fmt: skip
    """Log decay and beta of rows [rows, 1] and heads [1, heads]."""
    exists = head < NUM_VALUE_HEADS
    inside = (row < num_rows) & exists
    rate = tl.exp(tl.load(A_log + head, mask=exists, other=0.0))
    bias = tl.load(dt_bias + head, mask=exists, other=0.0)
    given = gates + row * (2 * NUM_VALUE_HEADS) + head
    b = tl.load(given, mask=inside, other=0.0).to(tl.float32)
    a = tl.load(given + NUM_VALUE_HEADS, mask=inside, other=0.0).to(tl.float32) + bias
    # softplus without overflow
    soft = tl.maximum(a, 0.0) + tl.log(1.0 + tl.exp(-tl.abs(a)))
    g, beta = -rate * soft, 1.0 / (1.0 + tl.exp(-b))
    slot = ((start + row) % _RING) * NUM_VALUE_HEADS + head
    if PREFILL:
        tl.store(all_g + row * NUM_VALUE_HEADS + head, g, mask=inside)
        tl.store(all_beta + row * NUM_VALUE_HEADS + head, beta, mask=inside)
        inside &= row >= num_rows - _RING
    tl.store(ring_g + slot, g, mask=inside)
    tl.store(ring_beta + slot, beta, mask=inside)


@triton.jit(do_not_specialize=["layer"])
def append_rows_kernel(
    table, qkvz, ba, taps, A_log, dt_bias, conv_rows, g_rows, beta_rows, layer,
    stride_qkvz, stride_ring, stride_gate, PREFILL: tl.constexpr,
    NUM_CHANNELS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr, BLOCK_R: tl.constexpr,
    NUM_TAPS: tl.constexpr, ROWS: tl.constexpr, BLOCK_X: tl.constexpr, COLUMNS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: sequences, tiles of rows, tiles of channels and one more program for the gates."""
    line = table + tl.program_id(0) * COLUMNS
    start = tl.load(line + START).to(tl.int32)
    num_rows = tl.load(line + NUM_ROWS).to(tl.int32)
    first_row = tl.load(line + FIRST_ROW)
    row = tl.program_id(1) * ROWS + tl.arange(0, ROWS)[:, None]
    part = tl.program_id(2)
    if part < (NUM_CHANNELS + BLOCK_X - 1) // BLOCK_X:
        _append_channels(
            qkvz + first_row * stride_qkvz,
            taps,
            memory_at(line + CONV_IN, tl.bfloat16) + layer * stride_ring,
            memory_at(line + CONV_OUT, tl.bfloat16) + layer * stride_ring,
            conv_rows + first_row * NUM_CHANNELS,
            part * BLOCK_X + tl.arange(0, BLOCK_X)[None, :],
            row, start, num_rows, stride_qkvz, PREFILL, NUM_CHANNELS, NUM_TAPS, WIDE,
        )  # fmt: skip
    else:
        _append_gates(
            ba + first_row * (2 * NUM_VALUE_HEADS),
            A_log,
            dt_bias,
            memory_at(line + DECAY, tl.float32) + layer * stride_gate,
            memory_at(line + BETA, tl.float32) + layer * stride_gate,
            g_rows + first_row * NUM_VALUE_HEADS,
            beta_rows + first_row * NUM_VALUE_HEADS,
            tl.arange(0, BLOCK_R)[None, :],
            row, start, num_rows, PREFILL, NUM_VALUE_HEADS,
        )  # fmt: skip


@triton.jit(do_not_specialize=["layer"])
def append_inputs_kernel(
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


class Appended(NamedTuple):
    """A chunk's rows behind convolution and gates: bf16 [M, X], float32 [M, R] each."""

    conv_MX: Tensor
    decay_MR: Tensor
    beta_MR: Tensor


def append_rows(
    table: SequenceTable,
    layer: int,
    qkvz_MZ: Tensor,
    ba_MR: Tensor,
    weights: DeltaWeights,
    *,
    prefill: bool,
) -> Appended | None:
    """Puts convolution inputs and outputs, decays and betas into the ring, all of a window, the
    last 64 rows of a chunk; a chunk's rows are given back.

    A window has at most 32 rows: a ring of 64 keeps the three before it.
    """
    memory, heads, num_rows = table.memory[0], weights.num_value_heads, len(qkvz_MZ)
    tiles = triton.cdiv(weights.channels, _CHANNELS) + 1
    made, places = None, (qkvz_MZ, ba_MR, ba_MR)
    if prefill:
        gates = (ba_MR.new_empty(num_rows, heads, dtype=torch.float32) for _ in range(2))
        places = made = Appended(qkvz_MZ.new_empty(num_rows, weights.channels), *gates)
    append_rows_kernel[(table.num_sequences, triton.cdiv(table.max_rows, _ROWS), tiles)](
        table.rows_BF, qkvz_MZ, ba_MR, weights.taps_XT, weights.A_log_R, weights.dt_bias_R, *places,
        layer, qkvz_MZ.stride(0), memory.conv_in_LEX.stride(0), memory.decay_LER.stride(0),
        PREFILL=prefill, NUM_CHANNELS=weights.channels, NUM_VALUE_HEADS=heads,
        BLOCK_R=triton.next_power_of_2(heads), NUM_TAPS=weights.taps_XT.shape[1],
        ROWS=_ROWS, BLOCK_X=_CHANNELS, COLUMNS=NUM_COLUMNS, WIDE=is_interpreted(),
        num_warps=_WARPS, num_stages=1, **_EXACT,
    )  # fmt: skip
    if prefill:
        append_inputs_kernel[(table.num_sequences, triton.cdiv(weights.channels, _CHANNELS))](
            table.rows_BF, qkvz_MZ, layer, qkvz_MZ.stride(0), memory.conv_in_LEX.stride(0),
            NUM_CHANNELS=weights.channels, BLOCK_X=_CHANNELS, COLUMNS=NUM_COLUMNS,
        )  # fmt: skip
    return made


def specimens() -> list[Specimen]:
    """The shipped model's rows, of a window and of a prefill chunk."""
    types = {
        "table": "*i64", "qkvz": "*bf16", "ba": "*fp32", "taps": "*bf16", "A_log": "*fp32",
        "dt_bias": "*fp32", "conv_rows": "*bf16", "g_rows": "*fp32", "beta_rows": "*fp32",
        "layer": "i32", "stride_qkvz": "i32", "stride_ring": "i32", "stride_gate": "i32",
    }  # fmt: skip
    constants = {
        "NUM_CHANNELS": 12 * 128, "NUM_VALUE_HEADS": 4, "BLOCK_R": 4, "NUM_TAPS": 4,
        "ROWS": _ROWS, "BLOCK_X": _CHANNELS, "COLUMNS": NUM_COLUMNS, "WIDE": False,
    }  # fmt: skip
    return [
        Specimen(
            name=f"delta_append{'_prefill' if prefill else ''}_4x128",
            kernel=append_rows_kernel,
            types=types,
            constants=constants | {"PREFILL": prefill},
            num_warps=_WARPS,
            num_stages=1,
            options=_EXACT,
        )
        for prefill in (False, True)
    ]
