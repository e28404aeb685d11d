# mypy: disallow-untyped-defs=false
"""Best tokens in Triton: each band of the vocabulary keeps its best, a second launch joins them.

The sum of exponentials is that of the bands in their order, so it does not depend on timing. The
product is small_gemm's. Shape legend: see reference.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.small_gemm import Norm, PackedWeight
from ocria.kernels.small_gemm.layout import choose_tiling
from ocria.kernels.small_gemm.triton_impl import FORMAT_CODES, ROW_TILE, accumulate
from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_mode import is_interpreted

from .reference import BestTokens

_LANES = 1024


@triton.jit(do_not_specialize=["num_rows"])
def band_kernel(
    x, codes, block_scales, row_scale, gain, forbidden, tops, ids, sums,
    num_rows, num_out, num_in, stride_x, eps,
    FORMAT: tl.constexpr, NORM: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STEPS: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Best logit, its id and the sum of exponentials of a band. Grid: bands, tiles of rows."""
    band, row_tile = tl.program_id(0), tl.program_id(1)
    row = row_tile * TILE + tl.arange(0, TILE)
    acc, squares = accumulate(
        x, codes, block_scales, gain, band, row, 0, NUM_STEPS, num_rows, num_in, stride_x,
        FORMAT, NORM, BLOCK_N, BLOCK_K, NUM_STEPS, TILE, WIDE,
    )  # fmt: skip
    n = band * BLOCK_N + tl.arange(0, BLOCK_N)
    scale = tl.load(row_scale + n)
    if FORMAT == 2:
        scale = scale * 256.0
    logits = acc * scale[:, None]
    if NORM:
        logits = logits * tl.rsqrt(squares / num_in + eps)[None, :]
    allowed = tl.load(forbidden + n, mask=n < num_out, other=1) == 0
    logits = tl.where(allowed[:, None], logits, float("-inf"))
    top = tl.max(logits, axis=0)
    # The smallest id among equals.
    at = tl.min(tl.where(logits == top[None, :], n[:, None], 2147483647), axis=0)
    base = tl.where(top == float("-inf"), 0.0, top)
    total = tl.sum(tl.exp(logits - base[None, :]), axis=0)
    out = row * tl.num_programs(0) + band
    inside = row < num_rows
    tl.store(tops + out, top, mask=inside)
    tl.store(ids + out, at, mask=inside)
    tl.store(sums + out, total, mask=inside)


@triton.jit(do_not_specialize=["num_bands"])
def best_kernel(tops, ids, sums, token, logprob, num_bands, LANES: tl.constexpr):
    """Joins the bands of a row. Grid: rows. Lane l takes bands l, l + LANES, …, in that order."""
    row = tl.program_id(0)
    lane = tl.arange(0, LANES)
    top_L = tl.full((LANES,), float("-inf"), tl.float32)
    for first in range(0, num_bands, LANES):
        inside = first + lane < num_bands
        at = row * num_bands + first + lane
        top_L = tl.maximum(top_L, tl.load(tops + at, mask=inside, other=float("-inf")))
    top = tl.max(top_L, axis=0)
    sum_L = tl.zeros((LANES,), tl.float32)
    best_L = tl.full((LANES,), 2147483647, tl.int32)
    for first in range(0, num_bands, LANES):
        inside = first + lane < num_bands
        at = row * num_bands + first + lane
        band_top = tl.load(tops + at, mask=inside, other=float("-inf"))
        sum_L += tl.load(sums + at, mask=inside, other=0.0) * tl.exp(band_top - top)
        found = tl.load(ids + at, mask=inside, other=2147483647)
        best_L = tl.minimum(best_L, tl.where(band_top == top, found, 2147483647))
    tl.store(token + row, tl.min(best_L, axis=0).to(tl.int64))
    tl.store(logprob + row, -tl.log(tl.sum(sum_L, axis=0)))


def best_tokens(
    x_MD: Tensor, weight: PackedWeight, *, norm: Norm | None, forbidden_V: Tensor
) -> BestTokens:
    """See `reference.best_tokens`."""
    tiling, num_rows = weight.tiling, x_MD.shape[0]
    assert not tiling.streams, "a head does not stream"
    device, bands = x_MD.device, weight.num_bands
    tops, sums = (torch.empty(num_rows, bands, device=device) for _ in range(2))
    ids = torch.empty(num_rows, bands, dtype=torch.int32, device=device)
    token_M = torch.empty(num_rows, dtype=torch.int64, device=device)
    logprob_M = torch.empty(num_rows, device=device)
    band_kernel[(bands, -(-num_rows // ROW_TILE))](
        x_MD, weight.codes, weight.block_scales, weight.row_scale,
        norm.gain_K if norm else weight.row_scale, forbidden_V, tops, ids, sums,
        num_rows, weight.num_out, weight.num_in, x_MD.stride(0), norm.eps if norm else 0.0,
        FORMAT=FORMAT_CODES[weight.format], NORM=norm is not None, BLOCK_N=tiling.block_n,
        BLOCK_K=tiling.block_k, NUM_STEPS=weight.num_steps, TILE=ROW_TILE, WIDE=is_interpreted(),
        num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    best_kernel[(num_rows,)](tops, ids, sums, token_M, logprob_M, bands, LANES=_LANES, num_warps=4)
    return BestTokens(token_M, logprob_M)


def specimens() -> list[Specimen]:
    """The shipped model's head, and the join."""
    tiling = choose_tiling(6720, 512, "fp8")
    types = {
        "x": "*bf16", "codes": "*i32", "block_scales": "*i16", "row_scale": "*fp32",
        "gain": "*fp32", "forbidden": "*u8", "tops": "*fp32", "ids": "*i32", "sums": "*fp32",
        "num_rows": "i32", "num_out": "i32", "num_in": "i32", "stride_x": "i32", "eps": "fp32",
    }  # fmt: skip
    constants = {
        "FORMAT": 1, "NORM": True, "BLOCK_N": tiling.block_n, "BLOCK_K": tiling.block_k,
        "NUM_STEPS": 512 // tiling.block_k, "TILE": ROW_TILE, "WIDE": False,
    }  # fmt: skip
    joined = {"tops": "*fp32", "ids": "*i32", "sums": "*fp32", "token": "*i64", "logprob": "*fp32"}
    return [
        Specimen(
            name="head_band_6720x512",
            kernel=band_kernel,
            types=types,
            constants=constants,
            num_warps=tiling.num_warps,
        ),
        Specimen(
            name="head_join",
            kernel=best_kernel,
            types=joined | {"num_bands": "i32"},
            constants={"LANES": _LANES},
            has_dot=False,
        ),
    ]
