# mypy: disallow-untyped-defs=false
"""Convolutions, attention and context of a DFlash layer in Triton.

1. `mix_kernel`: a row of a convolution, with the norm before it or the residual behind it.
2. `write_kernel`: keys and values of a row that joins the context.
3. `partial_kernel`: the block's rows, with the query heads that share keys, against 256 positions
   of the context, or (the last program) against the block itself; norm and rotary position of
   queries and of the block's keys on the way.
4. `join_kernel`: the partial sums of a row.

Programs behind the context's end leave at once: a captured launch serves every length. Shape
legend: see reference.py; Q rows of a product: the block's rows times the heads of a group.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.small_gemm import Norm
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .reference import DraftHeads, DraftSight

KEY_BLOCK = 256
KEY_TILE = 64


@triton.jit
def mix_kernel(
    x, coefficients, base, gain, residual, y, first, num_groups, stride_c, width, eps,
    NUM_BACK: tl.constexpr, NORM: tl.constexpr, RESIDUAL: tl.constexpr, H: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: rows."""
    row = tl.program_id(0)
    h = tl.arange(0, H)
    inside = h < width
    group = h // (width // num_groups)
    total = tl.zeros((H,), tl.float32)
    if RESIDUAL:
        total = tl.load(residual + row * width + h, mask=inside, other=0.0).to(tl.float32)
    for back in tl.static_range(NUM_BACK):
        if row >= back:
            there = tl.load(x + (row - back) * width + h, mask=inside, other=0.0).to(tl.float32)
            if NORM:
                there = there * tl.rsqrt(tl.sum(there * there, axis=0) / width + eps)
                there = there * tl.load(gain + h, mask=inside, other=0.0)
            made = tl.load(
                coefficients + row * stride_c + first + back * num_groups + group,
                mask=inside, other=0.0,
            )  # fmt: skip
            kernel = tl.load(base + back * width + h, mask=inside, other=0.0) + made
            total += kernel * there
    result = rounded(total, WIDE)
    tl.store(y + row * width + h, result.to(y.dtype.element_ty), mask=inside)


@triton.jit
def _turned(
    source, at, partner_at, d, mask, gain, cos, sin, position, eps,
    D: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Normed and turned rows [T, D] of the elements `at`; `partner_at` are those they turn with."""
    own = tl.load(source + at, mask=mask, other=0.0).to(tl.float32)
    other = tl.load(source + partner_at, mask=mask, other=0.0).to(tl.float32)
    rstd_T = tl.rsqrt(tl.sum(own * own, axis=1) / D + eps)
    partner = tl.where(d < D // 2, d + D // 2, d - D // 2)
    own = own * rstd_T[:, None] * tl.load(gain + d)[None, :]
    other = other * rstd_T[:, None] * tl.load(gain + partner)[None, :]
    angle = position[:, None] * (D // 2) + (d % (D // 2))[None, :]
    c, s = tl.load(cos + angle, mask=mask, other=1.0), tl.load(sin + angle, mask=mask, other=0.0)
    signed = tl.where((d < D // 2)[None, :], -other, other)
    return rounded(own * c + signed * s, WIDE)


@triton.jit
def write_kernel(
    made, kept, positions, gains, cos, sin, stride_made, stride_kind, stride_layer, stride_head,
    eps, NUM_KV_HEADS: tl.constexpr, D: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: rows, layers, key-value heads."""
    row, layer, head = tl.program_id(0).to(tl.int64), tl.program_id(1), tl.program_id(2)
    position = tl.load(positions + row)
    d = tl.arange(0, D)
    partner = tl.where(d < D // 2, d + D // 2, d - D // 2)
    column = (layer * 2 * NUM_KV_HEADS + head) * D
    source = made + row * stride_made + column
    one = tl.arange(0, 1)
    key_1D = _turned(
        source, one[:, None] + d[None, :], one[:, None] + partner[None, :], d,
        one[:, None] + d[None, :] >= 0, gains + layer * D, cos, sin, position + one, eps, D, WIDE,
    )  # fmt: skip
    place = kept + layer.to(tl.int64) * stride_layer + head.to(tl.int64) * stride_head
    place = place + position * D
    tl.store(place + one[:, None] + d[None, :], key_1D.to(kept.dtype.element_ty))
    tl.store(place + stride_kind + d, tl.load(source + NUM_KV_HEADS * D + d))


@triton.jit
def _more(
    q_QD, k_SD, v_SD, seen_QS, top_Q, sum_Q, acc_QD, scale, WIDE: tl.constexpr,
):  # fmt: skip
    """One step of a softmax over keys: new maxima, sums and weighted values."""
    scores_QS = tl.dot(q_QD, tl.trans(k_SD)) * scale
    scores_QS = tl.where(seen_QS, scores_QS, float("-inf"))
    new_Q = tl.maximum(top_Q, tl.max(scores_QS, axis=1))
    # A row that has seen nothing yet keeps zeros instead of NaN.
    base_Q = tl.where(new_Q == float("-inf"), 0.0, new_Q)
    weights_QS = tl.exp(scores_QS - base_Q[:, None])
    faded_Q = tl.exp(top_Q - base_Q)
    sum_Q = sum_Q * faded_Q + tl.sum(weights_QS, axis=1)
    acc_QD = tl.dot(rounded(weights_QS, WIDE), v_SD, acc_QD * faded_Q[:, None])
    return new_Q, sum_Q, acc_QD


@triton.jit
def partial_kernel(
    qkv, kept, numbers, q_gain, k_gain, cos, sin, tops, sums, weighted, num_rows, stride_qkv,
    stride_kind, stride_head, eps, scale,
    NUM_HEADS: tl.constexpr, NUM_KV_HEADS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr,
    GROUP: tl.constexpr, FILLED: tl.constexpr, WINDOW: tl.constexpr, CAUSAL: tl.constexpr,
    KEY_BLOCK: tl.constexpr, KEY_TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: key-value heads, blocks of keys and one for the block of rows itself."""
    kv, block = tl.program_id(0), tl.program_id(1)
    length = (tl.load(numbers) + tl.load(numbers + 1)).to(tl.int32)
    is_own = block == tl.num_programs(1) - 1
    if is_own | (block * KEY_BLOCK < length):
        d = tl.arange(0, D)
        partner = tl.where(d < D // 2, d + D // 2, d - D // 2)
        row_Q = tl.arange(0, ROWS * FILLED) // FILLED
        member_Q = tl.arange(0, ROWS * FILLED) % FILLED
        live_Q = (row_Q < num_rows) & (member_Q < GROUP)
        start_Q = row_Q * stride_qkv + (kv * GROUP + member_Q) * D
        at_QD, partner_QD = start_Q[:, None] + d[None, :], start_Q[:, None] + partner[None, :]
        q_QD = _turned(
            qkv, at_QD, partner_QD, d, live_Q[:, None] & (d >= 0)[None, :], q_gain, cos, sin,
            length + row_Q, eps, D, WIDE,
        )  # fmt: skip
        top_Q = tl.full((ROWS * FILLED,), float("-inf"), tl.float32)
        sum_Q = tl.zeros((ROWS * FILLED,), tl.float32)
        acc_QD = tl.zeros((ROWS * FILLED, D), tl.float32)
        if is_own:
            s = tl.arange(0, ROWS)
            known_S1 = (s < num_rows)[:, None]
            start_S = s * stride_qkv + (NUM_HEADS + kv) * D
            k_SD = _turned(
                qkv, start_S[:, None] + d[None, :], start_S[:, None] + partner[None, :], d,
                known_S1 & (d >= 0)[None, :], k_gain, cos, sin, length + s, eps, D, WIDE,
            )  # fmt: skip
            at_SD = start_S[:, None] + NUM_KV_HEADS * D + d[None, :]
            v_SD = tl.load(qkv + at_SD, mask=known_S1, other=0.0)
            if WIDE:
                v_SD = v_SD.to(tl.float32)
            distance_QS = row_Q[:, None] - s[None, :]
            seen_QS = (s < num_rows)[None, :] & (row_Q >= 0)[:, None]
            if WINDOW > 0:
                seen_QS = seen_QS & (distance_QS < WINDOW) & (distance_QS > -WINDOW)
            if CAUSAL:
                seen_QS = seen_QS & (distance_QS >= 0)
            top_Q, sum_Q, acc_QD = _more(
                q_QD, k_SD, v_SD, seen_QS, top_Q, sum_Q, acc_QD, scale, WIDE
            )
        else:
            keys = kept + kv.to(tl.int64) * stride_head
            for step in range(0, KEY_BLOCK, KEY_TILE):
                place_S = block * KEY_BLOCK + step + tl.arange(0, KEY_TILE)
                known_S1 = (place_S < length)[:, None]
                at_SD = place_S[:, None] * D + d[None, :]
                k_SD = tl.load(keys + at_SD, mask=known_S1, other=0.0)
                v_SD = tl.load(keys + stride_kind + at_SD, mask=known_S1, other=0.0)
                if WIDE:
                    k_SD = k_SD.to(tl.float32)
                    v_SD = v_SD.to(tl.float32)
                seen_QS = (place_S < length)[None, :] & (row_Q >= 0)[:, None]
                if WINDOW > 0:
                    seen_QS = seen_QS & (length + row_Q[:, None] - place_S[None, :] < WINDOW)
                top_Q, sum_Q, acc_QD = _more(
                    q_QD, k_SD, v_SD, seen_QS, top_Q, sum_Q, acc_QD, scale, WIDE
                )
        slot = kv * tl.num_programs(1) + block
        out_Q = slot * (ROWS * FILLED) + tl.arange(0, ROWS * FILLED)
        tl.store(tops + out_Q, top_Q)
        tl.store(sums + out_Q, sum_Q)
        tl.store(weighted + out_Q[:, None] * D + d[None, :], acc_QD)


@triton.jit
def join_kernel(
    numbers, tops, sums, weighted, out, num_parts,
    NUM_HEADS: tl.constexpr, D: tl.constexpr, ROWS: tl.constexpr, GROUP: tl.constexpr,
    FILLED: tl.constexpr, KEY_BLOCK: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: rows, query heads."""
    row, head = tl.program_id(0), tl.program_id(1)
    length = (tl.load(numbers) + tl.load(numbers + 1)).to(tl.int32)
    used = (length + KEY_BLOCK - 1) // KEY_BLOCK
    d = tl.arange(0, D)
    lane = row * FILLED + head % GROUP
    first = (head // GROUP) * num_parts
    # The block itself is seen by each of its rows: its part begins the sums.
    own = (first + num_parts - 1) * (ROWS * FILLED) + lane
    top = tl.load(tops + own)
    for part in range(0, used):
        top = tl.maximum(top, tl.load(tops + (first + part) * (ROWS * FILLED) + lane))
    share = tl.exp(tl.load(tops + own) - top)
    total = tl.load(weighted + own * D + d) * share
    norm = tl.load(sums + own) * share
    for part in range(0, used):
        at = (first + part) * (ROWS * FILLED) + lane
        share = tl.exp(tl.load(tops + at) - top)
        total += tl.load(weighted + at * D + d) * share
        norm += tl.load(sums + at) * share
    result = rounded(total / norm, WIDE)
    tl.store(out + (row * NUM_HEADS + head) * D + d, result.to(out.dtype.element_ty))


def mixed_rows(
    x_BH: Tensor,
    coefficients_BC: Tensor,
    base_OH: Tensor,
    first: int,
    *,
    norm: Norm | None = None,
    residual_BH: Tensor | None = None,
) -> Tensor:
    """See `reference.mixed_rows`."""
    num_back, width = base_OH.shape
    assert x_BH.is_contiguous() and base_OH.is_contiguous(), "rows lie in one piece"
    y_BH = torch.empty_like(x_BH)
    mix_kernel[(len(x_BH),)](
        x_BH, coefficients_BC, base_OH, base_OH if norm is None else norm.gain_K,
        x_BH if residual_BH is None else residual_BH, y_BH,
        first, coefficients_BC.shape[1] // (2 * num_back), coefficients_BC.stride(0), width,
        0.0 if norm is None else norm.eps,
        NUM_BACK=num_back, NORM=norm is not None, RESIDUAL=residual_BH is not None,
        H=triton.next_power_of_2(width), WIDE=is_interpreted(), num_warps=4,
    )  # fmt: skip
    return y_BH


def write_context(
    made_RE: Tensor, kept_2EJSD: Tensor, positions_R: Tensor, gains_ED: Tensor, heads: DraftHeads
) -> None:
    """See `reference.write_context`."""
    num_layers, width = gains_ED.shape
    write_kernel[(len(made_RE), num_layers, heads.num_kv_heads)](
        made_RE, kept_2EJSD, positions_R, gains_ED, heads.cos_SF, heads.sin_SF,
        made_RE.stride(0), *kept_2EJSD.stride()[:3], heads.eps,
        NUM_KV_HEADS=heads.num_kv_heads, D=width, WIDE=is_interpreted(), num_warps=1,
    )  # fmt: skip


def draft_attention(
    qkv_BE: Tensor, kept_2JSD: Tensor, numbers: Tensor, heads: DraftHeads, sight: DraftSight
) -> Tensor:
    """See `reference.draft_attention`."""
    num_rows, (_, num_kv_heads, capacity, width) = len(qkv_BE), kept_2JSD.shape
    group = heads.num_heads // num_kv_heads
    filled, rows = triton.next_power_of_2(group), max(16, triton.next_power_of_2(num_rows))
    num_parts = -(-capacity // KEY_BLOCK) + 1
    shape = (num_kv_heads, num_parts, rows * filled)
    tops, sums = (qkv_BE.new_empty(shape, dtype=torch.float32) for _ in range(2))
    weighted = qkv_BE.new_empty((*shape, width), dtype=torch.float32)
    out_BE = qkv_BE.new_empty(num_rows, heads.num_heads * width)
    shared = {
        "NUM_HEADS": heads.num_heads, "D": width, "ROWS": rows, "GROUP": group, "FILLED": filled,
        "KEY_BLOCK": KEY_BLOCK, "WIDE": is_interpreted(),
    }  # fmt: skip
    partial_kernel[(num_kv_heads, num_parts)](
        qkv_BE, kept_2JSD, numbers, heads.q_gain_D, heads.k_gain_D, heads.cos_SF, heads.sin_SF,
        tops, sums, weighted, num_rows, qkv_BE.stride(0), *kept_2JSD.stride()[:2], heads.eps,
        width**-0.5,
        NUM_KV_HEADS=num_kv_heads, WINDOW=sight.window, CAUSAL=sight.is_causal,
        KEY_TILE=KEY_TILE, **shared, num_warps=4, num_stages=2,
    )  # fmt: skip
    join_kernel[(num_rows, heads.num_heads)](
        numbers, tops, sums, weighted, out_BE, num_parts, **shared, num_warps=1
    )
    return out_BE


def specimens() -> list[Specimen]:
    """A block of 16 rows of the shipped drafter's sizes."""
    floats = ("cos", "sin", "q_gain", "k_gain", "tops", "sums", "weighted")
    shared = {"NUM_HEADS": 4, "D": 64, "ROWS": 16, "GROUP": 2, "FILLED": 2, "KEY_BLOCK": KEY_BLOCK}
    mix = {
        "x": "*bf16", "coefficients": "*fp32", "base": "*fp32", "gain": "*fp32",
        "residual": "*bf16", "y": "*bf16", "first": "i32", "num_groups": "i32", "stride_c": "i32",
        "width": "i32", "eps": "fp32",
    }  # fmt: skip
    write = {
        "made": "*bf16", "kept": "*bf16", "positions": "*i64", "gains": "*fp32", "cos": "*fp32",
        "sin": "*fp32", "stride_made": "i32", "stride_kind": "i32", "stride_layer": "i32",
        "stride_head": "i32", "eps": "fp32",
    }  # fmt: skip
    partial = {"qkv": "*bf16", "kept": "*bf16", "numbers": "*i64"} | dict.fromkeys(floats, "*fp32")
    partial |= {
        "num_rows": "i32", "stride_qkv": "i32", "stride_kind": "i32", "stride_head": "i32",
        "eps": "fp32", "scale": "fp32",
    }  # fmt: skip
    join = {"numbers": "*i64", "out": "*bf16", "num_parts": "i32"}
    join |= dict.fromkeys(("tops", "sums", "weighted"), "*fp32")
    sees = {"NUM_KV_HEADS": 2, "WINDOW": 0, "CAUSAL": False, "KEY_TILE": KEY_TILE}
    return [
        Specimen(
            name="draft_mix", kernel=mix_kernel, types=mix, has_dot=False,
            constants={"NUM_BACK": 2, "NORM": True, "RESIDUAL": False, "H": 512, "WIDE": False},
        ),
        Specimen(
            name="draft_write", kernel=write_kernel, types=write, has_dot=False, num_warps=1,
            constants={"NUM_KV_HEADS": 2, "D": 64, "WIDE": False},
        ),
        Specimen(
            name="draft_partial", kernel=partial_kernel, types=partial, num_stages=2,
            constants=shared | sees | {"WIDE": False},
        ),
        Specimen(
            name="draft_join", kernel=join_kernel, types=join, has_dot=False, num_warps=1,
            constants=shared | {"WIDE": False},
        ),
    ]  # fmt: skip
