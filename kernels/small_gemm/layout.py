"""Weights of a product, laid out once for the kernel that reads them.

Shape legend: N output rows, K inputs, B = K / 16 blocks.

A weight is cut into tiles of `block_n` rows and `block_k` columns; each tile is contiguous, tiles
of one row band follow each other along K. Codes lie in the order of the tensor cores' fragments
(PTX ISA, `mma.m16n8k16`, matrix A): of 16 rows and 16 columns, lane 4 g + t holds rows g and g + 8
of columns 2 t, 2 t + 1, 2 t + 8 and 2 t + 9. A lane reads 16 bytes that are its own operands, and
none changes its place on the way. Inside a tile:

    nvfp4  [K / 64, N / 16, 32 lanes, 4 words], a word for each 16 columns; bits 16 e + 8 h + 4 r
           hold column 2 t + 8 h + e of row g + 8 r
    fp8    [K / 32, N / 16, 32 lanes, 4 words], word 2 s + h for columns 16 s + 8 h and on; bits
           16 e + 8 r hold column 2 t + e of row g + 8 r
    scales [K / 64, N / 16, 8 g, 4 blocks, 2 r]
    bf16   [N, K]

A weight that streams has words of its own: see streamed_layout.py.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Literal, NamedTuple

import torch
from torch import Tensor

from .streamed_layout import STREAMED_WORDS
from .words import Order, WordLayout

Format = Literal["nvfp4", "fp8", "bf16"]
SCALE_BLOCK = 16
_E2M1 = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


class WeightCodes(NamedTuple):
    """A matrix as a checkpoint stores it; W = code * block scale * row scale.

    Attributes:
        format: what the codes are.
        codes: uint8 [N, K / 2] with column 2i in the low half (nvfp4); float8_e4m3fn [N, K] (fp8);
            bfloat16 [N, K] (bf16).
        row_scale_N: float32 [N], multiplies. Ones for bf16.
        block_scale_NB: float8_e4m3fn [N, K / 16] (nvfp4), else None.
    """

    format: Format
    codes: Tensor
    row_scale_N: Tensor
    block_scale_NB: Tensor | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Tiling:
    """How a product is cut. It follows from the weight's shape, never from the number of rows.

    Attributes:
        block_n: output rows of a tile.
        block_k: inputs of a step.
        split_k: parts of the sum that different programs take; added in their order.
        num_warps: warps of a program.
        num_stages: depth of the software pipeline.
        streams: by the kernel of streamed.py, for codes from memory; no rule or table that is taken
            says so.
    """

    block_n: int
    block_k: int
    split_k: int = 1
    num_warps: int = 4
    num_stages: int = 3
    streams: bool = False


TilingTable = Mapping[tuple[int, int, Format], Tiling]
"""Tilings by outputs, inputs and format. One table serves every number of rows."""
BY_RULE: TilingTable = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedWeight:
    """A weight [N, K] in tiles.

    Attributes:
        format: what the codes are.
        num_out: N, without filling.
        num_in: K, without filling.
        paired: gate and up rows alternate; the product gives SiLU(gate) * up, N / 2 numbers a row.
        tiling: how it is cut.
        codes: flat; int32 words (nvfp4, fp8) or bfloat16.
        block_scales: flat int16, e4m3 bits of two rows each; one zero without block scales.
        row_scale: float32 [N filled up to whole tiles].
    """

    format: Format
    num_out: int
    num_in: int
    paired: bool
    tiling: Tiling
    codes: Tensor
    block_scales: Tensor
    row_scale: Tensor

    @property
    def num_bands(self) -> int:
        """Tiles along N."""
        return -(-self.num_out // self.tiling.block_n)

    @property
    def num_steps(self) -> int:
        """Tiles along K."""
        return -(-self.num_in // self.tiling.block_k)

    @property
    def num_bytes(self) -> int:
        """What a product reads of the weight."""
        tensors = (self.codes, self.block_scales, self.row_scale)
        return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def choose_tiling(num_out: int, num_in: int, format: Format) -> Tiling:
    """Enough programs for the 132 multiprocessors of an H200, each with whole cache lines."""
    is_small = num_out * num_in < 1 << 22
    block_k = 256 if is_small and format != "bf16" else 128
    while block_k > 64 and block_k // 2 >= num_in:
        block_k //= 2
    num_steps = -(-num_in // block_k)
    if is_small:
        # A small model lies in the L2: latency counts, so many small programs.
        return Tiling(block_n=16, block_k=block_k, num_warps=1)
    # On an H200 128 columns a step took 24 us where 256 took 27, 128 rows a program 32 (gate and up
    # of 18,432 x 2,560 in NVFP4, beside another job).
    split_k = max(1, min(num_steps // 2, 264 // -(-num_out // 64)))
    return Tiling(block_n=64, block_k=block_k, split_k=split_k, num_stages=4)


def pack(
    parts: Sequence[WeightCodes],
    *,
    paired: bool = False,
    tiling: Tiling | None = None,
    tilings: TilingTable = BY_RULE,
) -> PackedWeight:
    """Lays out one or several matrices that read the same input, outputs side by side.

    Args:
        parts: of one format and width; each keeps its own row scales.
        paired: two parts of one shape, gate and up.
        tiling: None looks the shape up, and else chooses by it.
        tilings: where it is looked up.

    Raises:
        ValueError: formats or widths differ, a pair does not match, a tile is no multiple of 16
            rows and 64 columns, or is none that can stream.
    """
    codes, row_scale, block_scale = _joined(parts)
    if paired:
        if len(parts) != 2 or parts[0].codes.shape != parts[1].codes.shape:
            raise ValueError("a pair needs two matrices of one shape")
        codes, row_scale = _alternate(codes), _alternate(row_scale)
        block_scale = None if block_scale is None else _alternate(block_scale)
    format = parts[0].format
    num_out, width = codes.shape
    num_in = 2 * width if format == "nvfp4" else width
    tiling = tiling or tilings.get((num_out, num_in, format))
    tiling = tiling or choose_tiling(num_out, num_in, format)
    if tiling.block_n % 16 or tiling.block_k % 64:
        raise ValueError(f"a tile has 16 n rows and 64 n columns, not {tiling}")
    if tiling.streams and not _can_stream(tiling, format):
        raise ValueError(f"{format} cannot stream by {tiling}")
    scales = torch.zeros(1, dtype=torch.int16, device=codes.device)
    if block_scale is not None:
        scales = _scale_words(block_scale, tiling)
    return PackedWeight(
        format=format,
        num_out=num_out,
        num_in=num_in,
        paired=paired,
        tiling=tiling,
        codes=_CODE_WORDS[format](codes, tiling),
        block_scales=scales,
        row_scale=_filled(row_scale[:, None].float(), tiling.block_n, 1).flatten(),
    )


def unpack(weight: PackedWeight) -> Tensor:
    """The matrix [N, K] in float32, as the kernel sees it (pairs still alternate)."""
    tiling, words = weight.tiling, _word_layout(weight.tiling)
    columns = weight.num_steps * tiling.block_k
    if weight.format == "nvfp4":
        codes = _unscattered(words.e2m1_codes(weight.codes), words.e2m1, weight, tiling.block_k)
        table = torch.tensor([*_E2M1, *(-value for value in _E2M1)], device=codes.device)
        scales, step = weight.block_scales.view(torch.uint8), tiling.block_k // SCALE_BLOCK
        bits = _unscattered(scales, words.scales, weight, step)
        wide = bits.view(torch.float8_e4m3fn).float().repeat_interleave(SCALE_BLOCK, 1)
        values = table[codes.to(torch.int64)] * wide
    elif weight.format == "fp8":
        bits = _unscattered(words.e4m3_codes(weight.codes), words.e4m3, weight, tiling.block_k)
        values = bits.view(torch.float8_e4m3fn).float()
    else:
        values = _untile(weight.codes, weight, tiling.block_k).float()
    assert values.shape[1] == columns
    scaled = values * weight.row_scale[:, None]
    return scaled[: weight.num_out, : weight.num_in]


def _joined(parts: Sequence[WeightCodes]) -> tuple[Tensor, Tensor, Tensor | None]:
    formats, widths = {part.format for part in parts}, {part.codes.shape[1] for part in parts}
    if len(formats) != 1 or len(widths) != 1:
        raise ValueError(f"one product cannot join formats {formats} of widths {widths}")
    # torch cannot join float8 tensors on every device: their bits can be.
    as_bits = parts[0].format == "fp8"
    codes = [part.codes.view(torch.uint8) if as_bits else part.codes for part in parts]
    scales = [part.block_scale_NB for part in parts]
    bits = [scale.view(torch.uint8) for scale in scales if scale is not None]
    joined = torch.cat(bits).view(torch.float8_e4m3fn) if bits else None
    return torch.cat(codes), torch.cat([part.row_scale_N for part in parts]), joined


def _alternate(rows: Tensor) -> Tensor:
    """First half and second half of the rows, one from each in turn."""
    bits = rows.view(torch.uint8) if rows.dtype == torch.float8_e4m3fn else rows
    turned = torch.stack(bits.chunk(2), 1).flatten(0, 1)
    return turned.view(rows.dtype)


def _e2m1_words(codes: Tensor) -> Tensor:
    return (codes[0::2] | (codes[1::2] << 4)).view(torch.int32)


def _e2m1_codes(words: Tensor) -> Tensor:
    bits = words.view(torch.uint8)
    return torch.stack((bits & 15, bits >> 4), -1).flatten()


def _e4m3_words(codes: Tensor) -> Tensor:
    return codes.view(torch.int32)


def _e4m3_codes(words: Tensor) -> Tensor:
    return words.view(torch.uint8)


# Parts: band, row group, r, g, step, column group, then what is named; the two last of nvfp4 and
# fp8 orders are bits of a word.
_WORDS = WordLayout(
    e2m1=Order((2, 8, 4, 2, 4, 2), (0, 4, 5, 1, 3, 8, 6, 9, 7, 2), 64),  # s h t e
    e4m3=Order((2, 8, 2, 2, 4, 2), (0, 4, 5, 1, 3, 8, 6, 7, 9, 2), 32),  # s h t e
    scales=Order((2, 8, 4), (0, 4, 5, 1, 3, 6, 2), 4),  # s
    e2m1_words=_e2m1_words,
    e2m1_codes=_e2m1_codes,
    e4m3_words=_e4m3_words,
    e4m3_codes=_e4m3_codes,
)


def _word_layout(tiling: Tiling) -> WordLayout:
    return STREAMED_WORDS if tiling.streams else _WORDS


def _can_stream(tiling: Tiling, format: Format) -> bool:
    """One warp and its 16 rows; a lane reads at most four times 16 bytes of codes a step."""
    widest = {"nvfp4": 256, "fp8": 128, "bf16": 0}[format]
    is_power_of_two = tiling.block_k & (tiling.block_k - 1) == 0
    is_one_warp = tiling.block_n == 16 and tiling.num_warps == 1
    return is_one_warp and is_power_of_two and tiling.block_k <= widest


def _split_shape(order: Order, rows: int, width: int, tiling: Tiling, step: int) -> list[int]:
    r, g, *inner = order.parts
    return [rows // tiling.block_n, tiling.block_n // 16, r, g, width // step,
            step // order.columns, *inner]  # fmt: skip


def _scattered(rows: Tensor, order: Order, tiling: Tiling, step: int) -> Tensor:
    """Numbers of whole tiles, `step` columns each, in their places in memory; flat."""
    shape = _split_shape(order, rows.shape[0], rows.shape[1], tiling, step)
    return rows.reshape(shape).permute(order.order).flatten()


def _unscattered(flat: Tensor, order: Order, weight: PackedWeight, step: int) -> Tensor:
    """The inverse: numbers [N, K or K / 16] with the filling."""
    tiling = weight.tiling
    rows, width = weight.num_bands * tiling.block_n, weight.num_steps * step
    shape = _split_shape(order, rows, width, tiling, step)
    turned = flat.view([shape[axis] for axis in order.order])
    back = [order.order.index(axis) for axis in range(len(shape))]
    return turned.permute(back).reshape(rows, width)


def _nvfp4_words(codes: Tensor, tiling: Tiling) -> Tensor:
    single = torch.stack((codes & 15, codes >> 4), -1).flatten(1)
    whole, words = _filled(single, tiling.block_n, tiling.block_k), _word_layout(tiling)
    return words.e2m1_words(_scattered(whole, words.e2m1, tiling, tiling.block_k))


def _fp8_words(codes: Tensor, tiling: Tiling) -> Tensor:
    words = _word_layout(tiling)
    whole = _filled(codes.view(torch.uint8), tiling.block_n, tiling.block_k)
    return words.e4m3_words(_scattered(whole, words.e4m3, tiling, tiling.block_k))


def _scale_words(scales: Tensor, tiling: Tiling) -> Tensor:
    step = tiling.block_k // SCALE_BLOCK
    whole = _filled(scales.view(torch.uint8), tiling.block_n, step)
    return _scattered(whole, _word_layout(tiling).scales, tiling, step).view(torch.int16)


def _plain_tiles(codes: Tensor, tiling: Tiling) -> Tensor:
    return _tiles(codes, tiling.block_n, tiling.block_k)


_CODE_WORDS: dict[Format, Callable[[Tensor, Tiling], Tensor]] = {
    "nvfp4": _nvfp4_words,
    "fp8": _fp8_words,
    "bf16": _plain_tiles,
}


def _filled(rows: Tensor, block_n: int, block_k: int) -> Tensor:
    """Zeros behind the last row and column up to whole tiles."""
    filling = (0, -rows.shape[1] % block_k, 0, -rows.shape[0] % block_n)
    return torch.nn.functional.pad(rows, filling)


def _tiles(rows: Tensor, block_n: int, block_k: int) -> Tensor:
    whole = _filled(rows, block_n, block_k)
    bands, steps = whole.shape[0] // block_n, whole.shape[1] // block_k
    return whole.view(bands, block_n, steps, block_k).transpose(1, 2).contiguous().flatten()


def _untile(flat: Tensor, weight: PackedWeight, width: int) -> Tensor:
    shape = (weight.num_bands, weight.num_steps, weight.tiling.block_n, width)
    return flat.view(shape).transpose(1, 2).flatten(2).flatten(0, 1)
