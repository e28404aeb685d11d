"""NVFP4: e2m1 codes, an e4m3 scale for each 16 weights along K, one float32 scale for a tensor.

W = code * block_scale / global_scale, with global_scale = 448 * 6 / amax(W). The global scale
divides, as in compressed-tensors (ModelOpt stores its reciprocal).

Shape legend: N output rows, K inputs, B = K / 16 blocks, H = K / 2 bytes.
Source: NVIDIA's NVFP4 definition; results equal compressed-tensors 0.20 bit for bit.
"""

from typing import NamedTuple

import torch
from torch import Tensor

BLOCK = 16
E2M1_MAX = 6.0
E4M3_MAX = 448.0
# Smallest e4m3 value above zero.
E4M3_TINY = 2.0**-9
_EXPONENT_BITS = 0x7F800000
_MAGNITUDES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
_VALUES = torch.tensor([*_MAGNITUDES, *(-value for value in _MAGNITUDES)])
# Both values of every byte, so that a dequantised pair costs one look-up, seen as one number of 64
# bits: a look-up of single numbers is 13 times faster than one of rows of two.
_PAIRS = (
    torch.stack((_VALUES[torch.arange(256) & 15], _VALUES[torch.arange(256) >> 4]), dim=1)
    .contiguous()
    .view(torch.float64)
    .flatten()
)


class NVFP4Tensor(NamedTuple):
    """A quantised matrix.

    Attributes:
        packed_NH: uint8; a byte holds weight 2i in its low and 2i + 1 in its high half.
        scale_NB: float8_e4m3fn block scales.
        global_scale: float32 [1]; divides.
    """

    packed_NH: Tensor
    scale_NB: Tensor
    global_scale: Tensor


def joint_global_scale(*weights_NK: Tensor) -> Tensor:
    """Global scale [1], float32, that fits all of `weights_NK`.

    Projections that are fused at run time must share one: a scale chosen for one of them and
    changed later would round the block scales twice.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    amax = torch.stack([weight.abs().amax() for weight in weights_NK]).amax().float()
    if not torch.isfinite(amax):
        raise ValueError("NVFP4 needs finite weights, found NaN or infinity")
    scale = E4M3_MAX * E2M1_MAX / amax.clamp(min=torch.finfo(torch.float32).tiny)
    # An all-but-zero tensor would overflow; 1 leaves it zero.
    return torch.nan_to_num(scale, posinf=1.0).reshape(1)


def quantize(weight_NK: Tensor, global_scale: Tensor | None = None) -> NVFP4Tensor:
    """Rounds a matrix to nearest even with its block scales already rounded to e4m3.

    Args:
        weight_NK: any float dtype; K a multiple of 16.
        global_scale: float32 [1], shared by fused projections; None takes the tensor's own.

    Raises:
        ValueError: not a matrix, or K is not a multiple of 16.
    """
    _check_shape(weight_NK)
    if global_scale is None:
        global_scale = joint_global_scale(weight_NK)
    largest_NB = weight_NK.float().unflatten(1, (-1, BLOCK)).abs().amax(-1)
    scale_NB = round_block_scale(largest_NB / E2M1_MAX * global_scale)
    return quantize_with(weight_NK, scale_NB, global_scale)


def quantize_with(weight_NK: Tensor, scale_NB: Tensor, global_scale: Tensor) -> NVFP4Tensor:
    """Rounds a matrix to nearest even with scales already chosen.

    Args:
        weight_NK: any float dtype; K a multiple of 16.
        scale_NB: float8_e4m3fn.
        global_scale: float32 [1]; divides.
    """
    blocks_NBG = weight_NK.float().unflatten(1, (-1, BLOCK))
    codes_NBG = encode(blocks_NBG / (scale_NB.float() / global_scale)[..., None])
    return NVFP4Tensor(pack(codes_NBG.flatten(1)), scale_NB, global_scale.float())


def round_block_scale(scale_NB: Tensor) -> Tensor:
    """Block scales as float8_e4m3fn, at least 2^-9 and at most 448; a block of zeros gets 1.

    The lower bound keeps the largest weights of a block that is tiny beside the tensor's largest.
    """
    bounded = scale_NB.clamp(E4M3_TINY, E4M3_MAX)
    return torch.where(scale_NB == 0, 1.0, bounded).to(torch.float8_e4m3fn)


def encode(scaled: Tensor) -> Tensor:
    """e2m1 codes (uint8, 0..15) of values already divided by their scales; saturates at 6.

    Ties go to the even code. Bit 3 is the sign; a negative value that rounds to zero keeps it,
    and -0.0 does not have it, as in compressed-tensors.
    """
    size = scaled.abs()
    # The comparison says which neighbour a tie falls to.
    code = (
        (size > 0.25).to(torch.uint8)
        + (size >= 0.75)
        + (size > 1.25)
        + (size >= 1.75)
        + (size > 2.5)
        + (size >= 3.5)
        + (size > 5.0)
    )
    return code.to(torch.uint8) | ((scaled < 0).to(torch.uint8) << 3)


def round_scaled(scaled: Tensor) -> Tensor:
    """decode(encode(scaled)) for float32 values, in a fifth of the time and without the codes."""
    size = scaled.abs().clamp_(max=E2M1_MAX)
    # Codes lie half a power of two apart from 1 on, and 0.5 below.
    power = (size.clamp(min=1.0).view(torch.int32) & _EXPONENT_BITS).view(torch.float32)
    spacing = power.mul_(0.5)
    return size.div_(spacing).round_().mul_(spacing).copysign_(scaled)


def decode(codes: Tensor) -> Tensor:
    """Values (float32, without scales) of e2m1 codes; the inverse of `encode`."""
    return _VALUES.to(codes.device)[codes.to(torch.int32)]


def pack(codes_NK: Tensor) -> Tensor:
    """Codes uint8 [N, K] -> bytes [N, K / 2]."""
    return codes_NK[:, 0::2] | (codes_NK[:, 1::2] << 4)


def unpack(packed_NH: Tensor) -> Tensor:
    """Bytes [N, K / 2] -> codes uint8 [N, K]."""
    return torch.stack((packed_NH & 15, packed_NH >> 4), dim=-1).flatten(1)


def dequantize(tensor: NVFP4Tensor, dtype: torch.dtype) -> Tensor:
    """The matrix [N, K] in `dtype`; the product is formed in float32."""
    packed_NH, scale_NB, global_scale = tensor
    pairs = _PAIRS.to(packed_NH.device).index_select(0, packed_NH.flatten().to(torch.int32))
    values_NBG = pairs.view(torch.float32).view(packed_NH.shape[0], -1, BLOCK)
    scale_NB1 = (scale_NB.float() / global_scale)[..., None]
    return values_NBG.mul_(scale_NB1).flatten(1).to(dtype)


def _check_shape(weight_NK: Tensor) -> None:
    if weight_NK.ndim != 2 or weight_NK.shape[1] % BLOCK:
        raise ValueError(
            f"NVFP4 needs a matrix with a multiple of {BLOCK} columns, "
            f"not the shape {list(weight_NK.shape)}"
        )
