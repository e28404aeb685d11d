"""Weights of a product, laid out once for the kernel that reads them.

Shape legend: N output rows, K inputs, B = K / 16 blocks.

A weight is cut into tiles of `block_n` rows and `block_k` columns; each tile is contiguous, tiles
of one row band follow each other along K. Inside an NVFP4 tile, byte j of a row holds column j in
its low half and column j + block_k / 2 in its high half: one load gives two operands that need no
interleaving, since a product over K does not mind its order as long as both sides share it.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

import torch
from torch import Tensor

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
    """

    block_n: int
    block_k: int
    split_k: int = 1
    num_warps: int = 4
    num_stages: int = 3


@dataclass(frozen=True, kw_only=True, slots=True)
class PackedWeight:
    """A weight [N, K] in tiles.

    Attributes:
        format: what the codes are.
        num_out: N, without filling.
        num_in: K, without filling.
        paired: gate and up rows alternate; the product gives SiLU(gate) * up, N / 2 numbers a row.
        tiling: how it is cut.
        codes: flat; uint8 (nvfp4, fp8) or bfloat16.
        block_scales: flat uint8, e4m3 bits; a single zero without block scales.
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
    block_k = 128 if format == "bf16" else 256
    while block_k > 32 and block_k // 2 >= num_in:
        block_k //= 2
    num_steps = -(-num_in // block_k)
    if num_out * num_in < 1 << 22:
        # A small model lies in the L2: latency counts, so many small programs.
        return Tiling(block_n=16, block_k=block_k, num_warps=1)
    # 128 rows a program spill registers where NVFP4 is dequantised.
    split_k = max(1, min(num_steps // 2, 264 // -(-num_out // 64)))
    return Tiling(block_n=64, block_k=block_k, split_k=split_k)


def pack(
    parts: Sequence[WeightCodes], *, paired: bool = False, tiling: Tiling | None = None
) -> PackedWeight:
    """Lays out one or several matrices that read the same input, outputs side by side.

    Args:
        parts: of one format and width; each keeps its own row scales.
        paired: two parts of one shape, gate and up.
        tiling: None chooses by the shape.

    Raises:
        ValueError: formats or widths differ, or a pair does not match.
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
    tiling = tiling or choose_tiling(num_out, num_in, format)
    scales = torch.zeros(1, dtype=torch.uint8, device=codes.device)
    if block_scale is not None:
        scales = _tiles(
            block_scale.view(torch.uint8), tiling.block_n, tiling.block_k // SCALE_BLOCK
        )
    return PackedWeight(
        format=format,
        num_out=num_out,
        num_in=num_in,
        paired=paired,
        tiling=tiling,
        codes=_code_tiles(codes, format, tiling),
        block_scales=scales,
        row_scale=_filled(row_scale[:, None].float(), tiling.block_n, 1).flatten(),
    )


def unpack(weight: PackedWeight) -> Tensor:
    """The matrix [N, K] in float32, as the kernel sees it (pairs still alternate)."""
    tiling = weight.tiling
    columns = weight.num_steps * tiling.block_k
    if weight.format == "nvfp4":
        tiles = _untile(weight.codes, weight, tiling.block_k // 2)
        halves = tiles.view(-1, weight.num_steps, tiling.block_k // 2)
        codes = torch.cat([halves & 15, halves >> 4], -1).flatten(1).to(torch.int64)
        table = torch.tensor([*_E2M1, *(-value for value in _E2M1)], device=codes.device)
        scales = _untile(weight.block_scales, weight, tiling.block_k // SCALE_BLOCK)
        wide = scales.view(torch.float8_e4m3fn).float().repeat_interleave(SCALE_BLOCK, 1)
        values = table[codes] * wide
    else:
        tiles = _untile(weight.codes, weight, tiling.block_k)
        values = tiles.view(torch.float8_e4m3fn) if weight.format == "fp8" else tiles
        values = values.float()
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


def _code_tiles(codes: Tensor, format: Format, tiling: Tiling) -> Tensor:
    if format != "nvfp4":
        return _tiles(codes, tiling.block_n, tiling.block_k)
    half = tiling.block_k // 2
    single = torch.stack((codes & 15, codes >> 4), -1).flatten(1)
    blocks = _filled(single, tiling.block_n, tiling.block_k).unflatten(1, (-1, tiling.block_k))
    packed = blocks[..., :half] | (blocks[..., half:] << 4)
    return _tiles(packed.flatten(1), tiling.block_n, half)


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
