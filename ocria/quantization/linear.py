"""Products with weights as they are stored: dequantised a tile at a time, never as a whole.

For a CPU that lacks the memory for the plain weights. A row has the bits that it has with plain
ones: the matrix library sums over K in the same order however the weight's rows are split.

Shape legend: T rows, N output rows of the weight, K inputs.
"""

from collections.abc import Iterator, Sequence

import torch
from torch import Tensor

from ocria.quantization import fp8, nvfp4
from ocria.quantization.layouts import PackedTensor

# Weights dequantised at a time: 4 MiB in float32.
TILE_WEIGHTS = 1 << 20
# With one row of a weight, float32 products take a vector's kernel, with other last bits.
LEAST_ROWS = 16


class PackedLinear:
    """y = x W^T, and single rows of W, for a W of one or more packed parts below each other.

    Parts keep their formats: projections that are fused may be stored differently.

    Args:
        parts: matrices with the same number of columns, at least one; a plain one stays plain.
    """

    def __init__(self, parts: Sequence[PackedTensor | Tensor]) -> None:
        self.parts = tuple(parts)
        self.out_features = sum(_shape(part)[0] for part in self.parts)

    @property
    def num_bytes(self) -> int:
        """Bytes of codes and scales."""
        plain = sum(part.nbytes for part in self.parts if isinstance(part, Tensor))
        packed = (part for part in self.parts if not isinstance(part, Tensor))
        return plain + sum(tensor.nbytes for part in packed for tensor in part)

    def product(self, x_TK: Tensor) -> Tensor:
        """[T, K] -> [T, N] in the dtype of x."""
        return torch.cat([_product(x_TK, tile_NK) for tile_NK in self.tiles(x_TK.dtype)], 1)

    def tiles(self, dtype: torch.dtype) -> Iterator[Tensor]:
        """The matrix in `dtype`, some rows at a time, in order."""
        for part in self.parts:
            num_rows, num_columns = _shape(part)
            step = max(LEAST_ROWS, TILE_WEIGHTS // num_columns)
            # What is left over is joined to the last tile.
            num_tiles = max(1, (num_rows + step - LEAST_ROWS) // step)
            for tile in range(num_tiles):
                end = num_rows if tile == num_tiles - 1 else (tile + 1) * step
                yield dequantize_rows(part, slice(tile * step, end), dtype)

    def rows(self, ids_T: Tensor, dtype: torch.dtype) -> Tensor:
        """Rows [T, K] of a matrix of one part, an embedding's."""
        (part,) = self.parts
        return dequantize_rows(part, ids_T, dtype)


def dequantize_rows(
    packed: PackedTensor | Tensor, rows: slice | Tensor, dtype: torch.dtype
) -> Tensor:
    """Some rows of a packed or plain matrix, in `dtype`."""
    if isinstance(packed, Tensor):
        return packed[rows].to(dtype)
    if isinstance(packed, nvfp4.NVFP4Tensor):
        tile = nvfp4.NVFP4Tensor(packed.packed_NH[rows], packed.scale_NB[rows], packed.global_scale)
        return nvfp4.dequantize(tile, dtype)
    scale = fp8.row_scales(packed, rows)
    return fp8.dequantize(fp8.FP8Tensor(packed.codes_NK[rows], scale), dtype)


def _shape(packed: PackedTensor | Tensor) -> tuple[int, int]:
    if isinstance(packed, Tensor):
        return packed.shape[0], packed.shape[1]
    num_rows, num_columns = packed[0].shape
    return num_rows, num_columns * 2 if isinstance(packed, nvfp4.NVFP4Tensor) else num_columns


def _product(x_TK: Tensor, weight_NK: Tensor) -> Tensor:
    # In float32 the blocked layout, which whole weights have, gives other last bits than the plain
    # one; in bfloat16 the same, and laying out costs more than it saves for one product.
    blocked = x_TK.device.type == "cpu" and x_TK.dtype == torch.float32
    if not (blocked and torch.backends.mkldnn.is_available()):
        return torch.nn.functional.linear(x_TK, weight_NK)
    packed = torch.ops.mkldnn._reorder_linear_weight(weight_NK, x_TK.shape[0])
    return torch.ops.mkldnn._linear_pointwise(x_TK, packed, None, "none", [], "")
