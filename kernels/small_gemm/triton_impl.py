# mypy: disallow-untyped-defs=false
"""The product in Triton: weights are the wide side of the tensor cores, rows the narrow one.

A program takes `block_n` output rows of the weight and a tile of 16 rows of x. Codes become
bfloat16 in the registers where the tensor cores want them: see fragments.py. Shape legend: see
reference.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.specimen import Specimen
from ocria.kernels.triton_mode import is_interpreted
from ocria.kernels.triton_numbers import rounded

from .epilogue import finish, finish_parts
from .fragments import e2m1_tile, e4m3_tile
from .layout import Format, PackedWeight, Tiling, choose_tiling
from .reference import Norm
from .streamed import gains_kernel, streamed_kernel, with_gains
from .tilings import MEASURED, streamed

ROW_TILE = 16
FORMAT_CODES: dict[Format, int] = {"bf16": 0, "fp8": 1, "nvfp4": 2}
_STORE, _RESIDUAL, _SILU_UP = 0, 1, 2


@triton.jit
def _rows(x, gain, row, first, k, num_rows, num_in, stride, NORM: tl.constexpr, WIDE: tl.constexpr):
    """Columns of x as [k, row], times the norm's gain, and their squares' sums [row]."""
    column = first + k
    inside = (column < num_in)[:, None] & (row < num_rows)[None, :]
    x_KM = tl.load(x + row[None, :] * stride + column[:, None], mask=inside, other=0.0)
    if NORM:
        wide = x_KM.to(tl.float32)
        squares = tl.sum(wide * wide, axis=0)
        gain_K = tl.load(gain + column, mask=column < num_in, other=0.0)
        x_KM = rounded(wide * gain_K[:, None], WIDE)
    else:
        squares = tl.zeros((row.shape[0],), tl.float32)
    if WIDE:
        return x_KM.to(tl.float32), squares
    else:
        return x_KM, squares


@triton.jit
def accumulate(
    x, codes, block_scales, gain, band, row, first, last, num_rows, num_in, stride_x,
    FORMAT: tl.constexpr, NORM: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
    NUM_STEPS: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Steps `first` to `last` of a band's sum [BLOCK_N, TILE], and the rows' sums of squares."""
    n = tl.arange(0, BLOCK_N)
    acc = tl.zeros((BLOCK_N, TILE), tl.float32)
    squares = tl.zeros((TILE,), tl.float32)
    for step in range(first, last):
        tile = (band * NUM_STEPS + step).to(tl.int64)
        start = step * BLOCK_K
        k = tl.arange(0, BLOCK_K)
        if FORMAT == 2:
            w = e2m1_tile(codes, block_scales, tile, BLOCK_N, BLOCK_K, WIDE)
        elif FORMAT == 1:
            w = e4m3_tile(codes, tile, BLOCK_N, BLOCK_K, WIDE)
        else:
            w = tl.load(codes + tile * (BLOCK_N * BLOCK_K) + n[:, None] * BLOCK_K + k[None, :])
            if WIDE:
                w = w.to(tl.float32)
        x_KM, more = _rows(x, gain, row, start, k, num_rows, num_in, stride_x, NORM, WIDE)
        acc = tl.dot(w, x_KM, acc)
        squares += more
    return acc, squares


# One compilation for every number of rows.
@triton.jit(do_not_specialize=["num_rows"])
def small_gemm_kernel(
    x, codes, block_scales, row_scale, gain, residual, y, partial, arrived,
    num_rows, num_out, num_in, stride_x, eps,
    FORMAT: tl.constexpr, NORM: tl.constexpr, EPILOGUE: tl.constexpr,
    BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STEPS: tl.constexpr,
    SPLIT_K: tl.constexpr, TILE: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: bands of the weight, tiles of rows, parts of K."""
    band, row_tile, part = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    row = row_tile * TILE + tl.arange(0, TILE)
    STEPS: tl.constexpr = (NUM_STEPS + SPLIT_K - 1) // SPLIT_K
    first = part * STEPS
    acc, squares = accumulate(
        x, codes, block_scales, gain, band, row, first, tl.minimum(first + STEPS, NUM_STEPS),
        num_rows, num_in, stride_x, FORMAT, NORM, BLOCK_N, BLOCK_K, NUM_STEPS, TILE, WIDE,
    )  # fmt: skip
    finish_parts(
        acc, squares, row_scale, residual, y, partial, arrived, band, row_tile, part, row,
        num_rows, num_out, num_in, eps, FORMAT, NORM, EPILOGUE, BLOCK_N, SPLIT_K, TILE,
    )  # fmt: skip


@triton.jit(do_not_specialize=["num_rows"])
def two_products_kernel(
    x, gain, codes, block_scales, row_scale, y, codes_2, block_scales_2, row_scale_2, y_2,
    num_rows, num_out, num_out_2, num_in, stride_x, eps,
    FORMAT: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, NUM_STEPS: tl.constexpr,
    FORMAT_2: tl.constexpr, BLOCK_N_2: tl.constexpr, BLOCK_K_2: tl.constexpr,
    NUM_STEPS_2: tl.constexpr, NUM_BANDS: tl.constexpr, NORM: tl.constexpr, TILE: tl.constexpr,
    WIDE: tl.constexpr,
):  # fmt: skip
    """Grid: bands of the first weight, then of the second; tiles of rows."""
    band, row_tile = tl.program_id(0), tl.program_id(1)
    row = row_tile * TILE + tl.arange(0, TILE)
    if band < NUM_BANDS:
        acc, squares = accumulate(
            x, codes, block_scales, gain, band, row, 0, NUM_STEPS, num_rows, num_in, stride_x,
            FORMAT, NORM, BLOCK_N, BLOCK_K, NUM_STEPS, TILE, WIDE,
        )  # fmt: skip
        finish(
            acc, squares, row_scale, y, y, band, row, num_rows, num_out, num_in, eps,
            FORMAT, NORM, 0, BLOCK_N, TILE,
        )  # fmt: skip
    else:
        band -= NUM_BANDS
        acc, squares = accumulate(
            x, codes_2, block_scales_2, gain, band, row, 0, NUM_STEPS_2, num_rows, num_in, stride_x,
            FORMAT_2, NORM, BLOCK_N_2, BLOCK_K_2, NUM_STEPS_2, TILE, WIDE,
        )  # fmt: skip
        finish(
            acc, squares, row_scale_2, y_2, y_2, band, row, num_rows, num_out_2, num_in, eps,
            FORMAT_2, NORM, 0, BLOCK_N_2, TILE,
        )  # fmt: skip


class _Scratch:
    """Partial sums and arrival counters of split products, one set for a device.

    Counters are zero between launches: the program that adds the parts resets its own. So launches
    of split products must follow each other, on one stream. Outgrown buffers are kept, since a
    captured graph may still write to them.
    """

    def __init__(self) -> None:
        self._buffers: dict[torch.device, list[tuple[Tensor, Tensor]]] = {}

    def take(self, device: torch.device, cells: int, floats: int) -> tuple[Tensor, Tensor]:
        kept = self._buffers.setdefault(device, [])
        if not kept or kept[-1][0].numel() < floats or kept[-1][1].numel() < cells:
            if device.type == "cuda":
                # Memory of a graph's own pool would go with the graph.
                assert not torch.cuda.is_current_stream_capturing(), "run once before capturing"
            partial = torch.empty(max(floats, 1 << 20), device=device)
            arrived = torch.zeros(max(cells, 1 << 12), dtype=torch.int32, device=device)
            kept.append((partial, arrived))
        return kept[-1]


_scratch = _Scratch()


def small_gemm(
    x_MK: Tensor,
    weight: PackedWeight,
    *,
    norm: Norm | None = None,
    residual_MN: Tensor | None = None,
    out_dtype: torch.dtype | None = None,
) -> Tensor:
    """See `reference.small_gemm`."""
    tiling, num_rows = weight.tiling, x_MK.shape[0]
    assert x_MK.stride(1) == 1 and x_MK.shape[1] == weight.num_in, "rows of K numbers"
    width = weight.num_out // 2 if weight.paired else weight.num_out
    y_MN = torch.empty(num_rows, width, dtype=out_dtype or x_MK.dtype, device=x_MK.device)
    grid = (weight.num_bands, -(-num_rows // ROW_TILE), tiling.split_k)
    partial = arrived = y_MN
    if tiling.split_k > 1:
        cells = grid[0] * grid[1]
        slot = (tiling.block_n + 1) * ROW_TILE
        partial, arrived = _scratch.take(x_MK.device, cells, cells * tiling.split_k * slot)
    epilogue = _SILU_UP if weight.paired else _STORE if residual_MN is None else _RESIDUAL
    assert not (weight.paired and residual_MN is not None), "a pair has no residual"
    assert residual_MN is None or residual_MN.is_contiguous(), "a residual is contiguous"
    kernel, gain = small_gemm_kernel, norm.gain_K if norm else weight.row_scale
    if tiling.streams:
        kernel = streamed_kernel
        if norm:
            x_MK, gain = with_gains(x_MK, norm)
    kernel[grid](
        x_MK, weight.codes, weight.block_scales, weight.row_scale, gain,
        y_MN if residual_MN is None else residual_MN, y_MN, partial, arrived,
        num_rows, weight.num_out, weight.num_in, x_MK.stride(0), norm.eps if norm else 0.0,
        FORMAT=FORMAT_CODES[weight.format], NORM=norm is not None, EPILOGUE=epilogue,
        BLOCK_N=tiling.block_n, BLOCK_K=tiling.block_k, NUM_STEPS=weight.num_steps,
        SPLIT_K=tiling.split_k, TILE=ROW_TILE, WIDE=is_interpreted(),
        num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    return y_MN


def can_join(first: PackedWeight, second: PackedWeight) -> bool:
    """Whether one launch can make both: programs of one size, no split sums, none that streams."""
    tilings = (first.tiling, second.tiling)
    shapes = {(tiling.split_k, tiling.num_warps, tiling.num_stages) for tiling in tilings}
    is_plain = not first.paired and not second.paired and first.tiling.split_k == 1
    is_plain = is_plain and not any(tiling.streams for tiling in tilings)
    return is_plain and len(shapes) == 1 and first.num_in == second.num_in


def two_products(
    x_MK: Tensor,
    first: PackedWeight,
    second: PackedWeight,
    *,
    norm: Norm | None,
    second_dtype: torch.dtype,
) -> tuple[Tensor, Tensor]:
    """See `two_products` of the package."""
    assert x_MK.stride(1) == 1 and x_MK.shape[1] == first.num_in, "rows of K numbers"
    num_rows, tiling, other = x_MK.shape[0], first.tiling, second.tiling
    assert not tiling.streams and not other.streams, "weights that stream are not joined"
    y_MN = torch.empty(num_rows, first.num_out, dtype=x_MK.dtype, device=x_MK.device)
    z_MN = torch.empty(num_rows, second.num_out, dtype=second_dtype, device=x_MK.device)
    grid = (first.num_bands + second.num_bands, -(-num_rows // ROW_TILE))
    two_products_kernel[grid](
        x_MK, norm.gain_K if norm else first.row_scale,
        first.codes, first.block_scales, first.row_scale, y_MN,
        second.codes, second.block_scales, second.row_scale, z_MN,
        num_rows, first.num_out, second.num_out, first.num_in, x_MK.stride(0),
        norm.eps if norm else 0.0,
        FORMAT=FORMAT_CODES[first.format], BLOCK_N=tiling.block_n, BLOCK_K=tiling.block_k,
        NUM_STEPS=first.num_steps, FORMAT_2=FORMAT_CODES[second.format], BLOCK_N_2=other.block_n,
        BLOCK_K_2=other.block_k, NUM_STEPS_2=second.num_steps, NUM_BANDS=first.num_bands,
        NORM=norm is not None, TILE=ROW_TILE, WIDE=is_interpreted(),
        num_warps=tiling.num_warps, num_stages=tiling.num_stages,
    )  # fmt: skip
    return y_MN, z_MN


def specimens() -> list[Specimen]:
    """Launches of the shipped model's shapes and of wide ones, also by tilings that stream."""
    found = []
    for name in FORMAT_CODES:
        for shape, epilogue in (((2560, 512), _SILU_UP), ((18432, 2560), _STORE)):
            found.append(_product(shape, name, epilogue, _tiling(*shape, name)))
    for shape, epilogue in (((18432, 2560), _SILU_UP), ((2560, 9216), _RESIDUAL)):
        for (_, _, name), tiling in streamed([shape]).items():
            found.append(_product(shape, name, epilogue, tiling))
    return [*found, _gains(2560), _delta_input()]


def _product(shape: tuple[int, int], format: Format, epilogue: int, tiling: Tiling) -> Specimen:
    types = {
        "x": "*bf16", "codes": "*bf16" if format == "bf16" else "*i32", "block_scales": "*i16",
        "row_scale": "*fp32", "gain": "*fp32", "residual": "*bf16", "y": "*bf16",
        "partial": "*fp32", "arrived": "*i32", "num_rows": "i32", "num_out": "i32",
        "num_in": "i32", "stride_x": "i32", "eps": "fp32",
    }  # fmt: skip
    constants = {
        "FORMAT": FORMAT_CODES[format],
        "NORM": True,
        "EPILOGUE": epilogue,
        "BLOCK_N": tiling.block_n,
        "BLOCK_K": tiling.block_k,
        "NUM_STEPS": -(-shape[1] // tiling.block_k),
        "SPLIT_K": tiling.split_k,
        "TILE": ROW_TILE,
        "WIDE": False,
    }
    if tiling.streams:
        constants["NUM_IN"] = shape[1]
        types["row_squares"] = types.pop("gain")
        del types["num_in"]
    return Specimen(
        name=f"{'streamed' if tiling.streams else 'small_gemm'}_{format}_{shape[0]}x{shape[1]}",
        kernel=streamed_kernel if tiling.streams else small_gemm_kernel,
        types=types,
        constants=constants,
        num_warps=tiling.num_warps,
        num_stages=tiling.num_stages,
    )


def _tiling(num_out: int, num_in: int, format: Format) -> Tiling:
    return MEASURED.get((num_out, num_in, format)) or choose_tiling(num_out, num_in, format)


def _gains(num_in: int) -> Specimen:
    """A norm's gains in front of a product that streams."""
    return Specimen(
        name=f"streamed_gains_{num_in}",
        kernel=gains_kernel,
        types={
            "x": "*bf16", "gain": "*fp32", "y": "*bf16", "squares": "*fp32", "num_in": "i32",
            "stride_x": "i32",
        },
        constants={"WIDTH": triton.next_power_of_2(num_in), "WIDE": False},
        num_warps=8,
    )  # fmt: skip


def _delta_input() -> Specimen:
    """The shipped model's products in front of a delta layer."""
    first, second = _tiling(2048, 512, "nvfp4"), _tiling(8, 512, "bf16")
    return Specimen(
        name="two_products_2048x512",
        kernel=two_products_kernel,
        types={
            "x": "*bf16", "gain": "*fp32", "codes": "*i32", "block_scales": "*i16",
            "row_scale": "*fp32", "y": "*bf16", "codes_2": "*bf16", "block_scales_2": "*i16",
            "row_scale_2": "*fp32", "y_2": "*fp32", "num_rows": "i32", "num_out": "i32",
            "num_out_2": "i32", "num_in": "i32", "stride_x": "i32", "eps": "fp32",
        },
        constants={
            "FORMAT": FORMAT_CODES["nvfp4"], "BLOCK_N": first.block_n, "BLOCK_K": first.block_k,
            "NUM_STEPS": 512 // first.block_k, "FORMAT_2": FORMAT_CODES["bf16"],
            "BLOCK_N_2": second.block_n, "BLOCK_K_2": second.block_k,
            "NUM_STEPS_2": 512 // second.block_k, "NUM_BANDS": 2048 // first.block_n,
            "NORM": True, "TILE": ROW_TILE, "WIDE": False,
        },
        num_warps=first.num_warps,
        num_stages=first.num_stages,
    )  # fmt: skip
