# mypy: disallow-untyped-defs=false
"""A full-attention layer between its projections in Triton: three launches a layer and pass.

1. `rotary_kernel`: norm and rotary position of queries and keys; keys and values to the cache.
2. `partial_kernel`: a tile of 16 rows, with the query heads that share keys, against one block of
   256 keys; running maximum, sum and weighted values in float32.
3. `join_kernel`: the blocks of a row in their order, then the gate.

Shape legend: see window.py; Q rows of a product: 16 rows times the (filled up) heads of a group.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.sequence_table import NUM_COLUMNS, SequenceTable
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_columns import FIRST_ROW, KEYS, NUM_ROWS, ROPE_DELTA, START, VALUES
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .window import AttentionWeights, RotaryTable

ROW_TILE = 16
KEY_TILE = 64


@triton.jit
def _memory(cell):
    return tl.multiple_of(tl.load(cell).to(tl.pointer_type(tl.bfloat16)), 16)


@triton.jit(do_not_specialize=["layer"])
def rotary_kernel(
    table, qkv, cos, sin, q_gain, k_gain, q_out, layer, stride_qkv, stride_layer, stride_head, eps,
    NUM_HEADS: tl.constexpr, NUM_KV_HEADS: tl.constexpr, D: tl.constexpr, HALF: tl.constexpr,
    COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: sequences, rows of the longest one, query heads then key-value heads."""
    line, index, head = table + tl.program_id(0) * COLUMNS, tl.program_id(1), tl.program_id(2)
    if index < tl.load(line + NUM_ROWS):
        row = tl.load(line + FIRST_ROW) + index
        pos = tl.load(line + START) + index
        angle = (pos + tl.load(line + ROPE_DELTA)) * HALF
        d = tl.arange(0, D)
        turned = d < 2 * HALF
        # Rotate-half: d and d + HALF turn together.
        partner = tl.where(turned, tl.where(d < HALF, d + HALF, d - HALF), d)
        kv = tl.maximum(head - NUM_HEADS, 0)
        column = tl.where(head < NUM_HEADS, head * 2 * D, NUM_HEADS * 2 * D + kv * D)
        source = qkv + row * stride_qkv + column
        gain = q_gain
        if head >= NUM_HEADS:
            gain = k_gain
        x = tl.load(source + d).to(tl.float32)
        rstd = tl.rsqrt(tl.sum(x * x, axis=0) / D + eps)
        own = x * rstd * tl.load(gain + d)
        other = tl.load(source + partner).to(tl.float32) * rstd * tl.load(gain + partner)
        c = tl.load(cos + angle + d % HALF, mask=turned, other=1.0)
        s = tl.load(sin + angle + d % HALF, mask=turned, other=0.0)
        result = rounded(own * c + tl.where(d < HALF, -other, other) * s, WIDE)
        if head < NUM_HEADS:
            tl.store(q_out + (row * NUM_HEADS + head) * D + d, result.to(q_out.dtype.element_ty))
        else:
            place = layer * stride_layer + kv.to(tl.int64) * stride_head + pos * D + d
            keys, values = _memory(line + KEYS), _memory(line + VALUES)
            tl.store(keys + place, result.to(tl.bfloat16))
            tl.store(values + place, tl.load(source + NUM_KV_HEADS * D + d))


@triton.jit(do_not_specialize=["layer", "num_tiles"])
def partial_kernel(
    table, q, tops, sums, weighted, layer, stride_layer, stride_head, num_tiles, scale,
    NUM_HEADS: tl.constexpr, GROUP: tl.constexpr, FILLED: tl.constexpr, D: tl.constexpr,
    KEY_BLOCK: tl.constexpr, KEY_TILE: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: tiles of rows of all sequences, key-value heads, blocks of keys."""
    cell, kv, block = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    line = table + (cell // num_tiles) * COLUMNS
    start = tl.load(line + START).to(tl.int32)
    num_rows = tl.load(line + NUM_ROWS).to(tl.int32)
    index = (cell % num_tiles) * TILE + tl.arange(0, TILE * FILLED) // FILLED
    member = tl.arange(0, TILE * FILLED) % FILLED
    live = (index < num_rows) & (member < GROUP)
    last = start + tl.minimum((cell % num_tiles + 1) * TILE, num_rows) - 1
    is_used = ((cell % num_tiles) * TILE < num_rows) & (block * KEY_BLOCK <= last)
    if is_used:
        d = tl.arange(0, D)
        row = tl.load(line + FIRST_ROW).to(tl.int32) + index
        q_at = (row * NUM_HEADS + kv * GROUP + member)[:, None] * D + d[None, :]
        q_QD = tl.load(q + q_at, mask=live[:, None], other=0.0)
        keys = _memory(line + KEYS) + layer * stride_layer + kv.to(tl.int64) * stride_head
        values = _memory(line + VALUES) + layer * stride_layer + kv.to(tl.int64) * stride_head
        if WIDE:
            q_QD = q_QD.to(tl.float32)
        top_Q = tl.full((TILE * FILLED,), float("-inf"), tl.float32)
        sum_Q = tl.zeros((TILE * FILLED,), tl.float32)
        acc_QD = tl.zeros((TILE * FILLED, D), tl.float32)
        for step in range(0, KEY_BLOCK, KEY_TILE):
            place = block * KEY_BLOCK + step + tl.arange(0, KEY_TILE)
            written = (place <= last)[:, None]
            at = place[:, None] * D + d[None, :]
            k_SD = tl.load(keys + at, mask=written, other=0.0)
            v_SD = tl.load(values + at, mask=written, other=0.0)
            if WIDE:
                k_SD = k_SD.to(tl.float32)
                v_SD = v_SD.to(tl.float32)
            scores_QS = tl.dot(q_QD, tl.trans(k_SD)) * scale
            seen = place[None, :] <= (start + index)[:, None]
            scores_QS = tl.where(seen, scores_QS, float("-inf"))
            new_Q = tl.maximum(top_Q, tl.max(scores_QS, axis=1))
            # A row that has seen nothing yet keeps zeros instead of NaN.
            base_Q = tl.where(new_Q == float("-inf"), 0.0, new_Q)
            weights_QS = tl.exp(scores_QS - base_Q[:, None])
            faded_Q = tl.exp(top_Q - base_Q)
            sum_Q = sum_Q * faded_Q + tl.sum(weights_QS, axis=1)
            acc_QD = acc_QD * faded_Q[:, None]
            acc_QD = tl.dot(rounded(weights_QS, WIDE), v_SD, acc_QD)
            top_Q = new_Q
        slot = (cell * tl.num_programs(1) + kv) * tl.num_programs(2) + block
        out = slot.to(tl.int64) * (TILE * FILLED) + tl.arange(0, TILE * FILLED)
        tl.store(tops + out, top_Q)
        tl.store(sums + out, sum_Q)
        tl.store(weighted + out[:, None] * D + d[None, :], acc_QD)


@triton.jit(do_not_specialize=["num_tiles", "num_blocks"])
def join_kernel(
    table, qkv, tops, sums, weighted, out, stride_qkv, num_tiles, num_blocks,
    NUM_HEADS: tl.constexpr, GROUP: tl.constexpr, FILLED: tl.constexpr, D: tl.constexpr,
    KEY_BLOCK: tl.constexpr, TILE: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: sequences, rows of the longest one, query heads."""
    sequence, index, head = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    line = table + sequence * COLUMNS
    if index < tl.load(line + NUM_ROWS):
        row = tl.load(line + FIRST_ROW) + index
        used = (tl.load(line + START).to(tl.int32) + index) // KEY_BLOCK + 1
        cell = sequence * num_tiles + index // TILE
        d = tl.arange(0, D)
        first = (cell * (NUM_HEADS // GROUP) + head // GROUP) * num_blocks
        lane = (index % TILE) * FILLED + head % GROUP
        top = float("-inf")
        for block in range(0, used):
            top = tl.maximum(top, tl.load(tops + (first + block) * (TILE * FILLED) + lane))
        total = tl.zeros((D,), tl.float32)
        norm = 0.0
        for block in range(0, used):
            at = (first + block).to(tl.int64) * (TILE * FILLED) + lane
            share = tl.exp(tl.load(tops + at) - top)
            total += tl.load(weighted + at * D + d) * share
            norm += tl.load(sums + at) * share
        gate = tl.load(qkv + row * stride_qkv + head * 2 * D + D + d).to(tl.float32)
        result = rounded(total / norm / (1.0 + tl.exp(-gate)), WIDE)
        tl.store(out + (row * NUM_HEADS + head) * D + d, result.to(out.dtype.element_ty))


def attention_pass(
    table: SequenceTable,
    layer: int,
    qkv_ME: Tensor,
    rotary: RotaryTable,
    weights: AttentionWeights,
    key_block: int,
    num_blocks: int | None = None,
) -> Tensor:
    """See `window.attention_pass`. `num_blocks` bounds the keys; None means the whole capacity."""
    heads, kv, width = weights.num_heads, weights.num_kv_heads, weights.head_dim
    keys = table.memory[0].keys_LJSD
    num_blocks = num_blocks or keys.shape[2] // key_block
    num_tiles = -(-table.max_rows // ROW_TILE)
    group = heads // kv
    filled = triton.next_power_of_2(group)
    new = qkv_ME.new_empty
    q_MHD, out_ME = (new(qkv_ME.shape[0], heads * width) for _ in range(2))
    cells = table.num_sequences * num_tiles
    shape = (cells, kv, num_blocks, ROW_TILE * filled)
    tops, sums = (new(shape, dtype=torch.float32) for _ in range(2))
    weighted = new((*shape, width), dtype=torch.float32)
    strides = (keys.stride(0), keys.stride(1))
    rotary_kernel[(table.num_sequences, table.max_rows, heads + kv)](
        table.rows_BF, qkv_ME, rotary.cos, rotary.sin, weights.q_gain_D, weights.k_gain_D, q_MHD,
        layer, qkv_ME.stride(0), *strides, weights.eps,
        NUM_HEADS=heads, NUM_KV_HEADS=kv, D=width, HALF=rotary.cos.shape[1],
        COLUMNS=NUM_COLUMNS, WIDE=is_interpreted(), num_warps=1,
    )  # fmt: skip
    partial_kernel[(cells, kv, num_blocks)](
        table.rows_BF, q_MHD, tops, sums, weighted, layer, *strides, num_tiles, width**-0.5,
        NUM_HEADS=heads, GROUP=group, FILLED=filled, D=width, KEY_BLOCK=key_block,
        KEY_TILE=min(KEY_TILE, key_block), TILE=ROW_TILE, COLUMNS=NUM_COLUMNS,
        WIDE=is_interpreted(), num_warps=4, num_stages=2,
    )  # fmt: skip
    join_kernel[(table.num_sequences, table.max_rows, heads)](
        table.rows_BF, qkv_ME, tops, sums, weighted, out_ME, qkv_ME.stride(0), num_tiles,
        num_blocks,
        NUM_HEADS=heads, GROUP=group, FILLED=filled, D=width, KEY_BLOCK=key_block, TILE=ROW_TILE,
        COLUMNS=NUM_COLUMNS, WIDE=is_interpreted(), num_warps=1,
    )  # fmt: skip
    return out_ME


def specimens() -> list[Specimen]:
    """The three launches of the shipped model and of a 4B one."""
    found = []
    for heads, kv, width, half in ((8, 2, 64, 32), (16, 4, 256, 32)):
        shared = {"NUM_HEADS": heads, "D": width, "COLUMNS": NUM_COLUMNS, "WIDE": False}
        tiled = {"GROUP": heads // kv, "FILLED": heads // kv, "KEY_BLOCK": 256, "TILE": ROW_TILE}
        partials = {"tops": "*fp32", "sums": "*fp32", "weighted": "*fp32"}
        strides = {"layer": "i32", "stride_layer": "i32", "stride_head": "i32"}
        base = {"table": "*i64", "qkv": "*bf16"}
        launches = (
            ("rotary", rotary_kernel,
             base | dict.fromkeys(("cos", "sin", "q_gain", "k_gain"), "*fp32") | strides
             | {"q_out": "*bf16", "stride_qkv": "i32", "eps": "fp32"},
             {"NUM_KV_HEADS": kv, "HALF": half}, 1),
            ("partial", partial_kernel,
             {"table": "*i64", "q": "*bf16", "num_tiles": "i32", "scale": "fp32"}
             | partials | strides,
             tiled | {"KEY_TILE": KEY_TILE}, 4),
            ("join", join_kernel,
             base | partials
             | {"out": "*bf16", "stride_qkv": "i32", "num_tiles": "i32", "num_blocks": "i32"},
             tiled, 1),
        )  # fmt: skip
        found += [
            Specimen(
                name=f"attention_{name}_{heads}x{width}",
                kernel=kernel,
                types=types,
                constants=shared | constants,
                num_warps=warps,
                num_stages=2,
                has_dot=name == "partial",
            )
            for name, kernel, types, constants, warps in launches
        ]
    return found
