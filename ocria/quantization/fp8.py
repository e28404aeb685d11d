"""FP8 weights: e4m3 codes with one scale for each row. W = code * scale.

Shape legend: N rows (output channels, or entries of an embedding), K columns.
Source: the OCP e4m3 format (largest value 448); layout `float-quantized`, strategy `channel`, of
compressed-tensors.
"""

from typing import NamedTuple

import torch
from torch import Tensor

E4M3_MAX = 448.0
# Looked up: a fifth of the time that a CPU's conversion takes.
_VALUES = torch.arange(256).to(torch.uint8).view(torch.float8_e4m3fn).float()
# Side of a square of weights that share a scale, where rows do not have their own.
SQUARE = 128


class FP8Tensor(NamedTuple):
    """A quantised matrix: float8_e4m3fn codes [N, K] and scales [N, 1].

    Foreign checkpoints also have one scale [1] for a tensor, or one for each square of 128 x 128
    weights, [N / 128, K / 128] rounded up; `row_scales` spreads them.
    """

    codes_NK: Tensor
    scale_N1: Tensor


def quantize(weight_NK: Tensor, *, scale_dtype: torch.dtype = torch.float32) -> FP8Tensor:
    """Rounds each row to nearest even with its own scale, amax / 448 in `scale_dtype`.

    The division uses the rounded scale. A row of zeros gets scale 1.

    Raises:
        ValueError: not a matrix, or a weight is NaN or infinite.
    """
    if weight_NK.ndim != 2:
        raise ValueError(f"FP8 needs a matrix, not the shape {list(weight_NK.shape)}")
    values_NK = weight_NK.float()
    scale_N1 = (values_NK.abs().amax(1, keepdim=True) / E4M3_MAX).to(scale_dtype)
    if not torch.isfinite(scale_N1).all():
        raise ValueError("FP8 needs finite weights, found NaN or infinity")
    scale_N1 = torch.where(scale_N1 == 0, 1.0, scale_N1).to(scale_dtype)
    # A rounded-down scale could push the largest value past 448, which e4m3 turns into NaN.
    scaled_NK = (values_NK / scale_N1.float()).clamp(-E4M3_MAX, E4M3_MAX)
    return FP8Tensor(scaled_NK.to(torch.float8_e4m3fn), scale_N1)


def squares(num_rows: int, num_columns: int) -> tuple[int, int]:
    """Shape of the scales of a matrix that has one for each square."""
    return -(-num_rows // SQUARE), -(-num_columns // SQUARE)


def row_scales(tensor: FP8Tensor, rows: slice | Tensor) -> Tensor:
    """Scales of some rows, [rows, 1] or [rows, K], however they are stored."""
    num_rows, num_columns = tensor.codes_NK.shape
    scale = tensor.scale_N1
    if scale.ndim == 2 and scale.shape == squares(num_rows, num_columns) and scale.numel() > 1:
        of_row = torch.arange(num_rows)[rows] // SQUARE
        return scale[of_row].repeat_interleave(SQUARE, 1)[:, :num_columns]
    scale = scale.reshape(-1, 1)
    return scale if scale.shape[0] == 1 else scale[rows]


def dequantize(tensor: FP8Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix [N, K] in `dtype`; the product is formed in float32."""
    codes = tensor.codes_NK.view(torch.uint8).flatten().to(torch.int32)
    values_NK = _VALUES.to(codes.device).index_select(0, codes).view(tensor.codes_NK.shape)
    return values_NK.mul_(tensor.scale_N1.float()).to(dtype)
