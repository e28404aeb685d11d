"""NVFP4 block scales chosen for the error that they leave, not for the block's largest weight.

Every block tries the neighbours of its usual e4m3 scale: smaller ones cut the largest weight off
and serve the others better, larger ones put it on the code 4 ("4 over 6"), whose neighbours are
nearer. The error is weighted by the inputs' second moments.

Shape legend: N output rows, K inputs, B = K / 16 blocks, G = 16 weights of a block.
"""

import torch
from torch import Tensor

from ocria.quantization import nvfp4

# Steps in e4m3 codes around the usual scale; eight are an octave: 0.66 to 1.54 times the scale.
_STEPS = range(-4, 6)
_LARGEST_CODE = 0x7E
# Weights searched at a time: what one candidate needs stays in the cache.
_TILE_WEIGHTS = 1 << 16
# Block scales 1.54 times as large as usual still fit below 448.
_HEADROOM = 1.6


def roomy_global_scale(*weights_NK: Tensor) -> Tensor:
    """Global scale [1] for weights that share one, with room for block scales to grow.

    A power of two: its reciprocal, which ModelOpt stores, is exact, and so is a weight's product
    of code and scales in bfloat16. The search makes up for the step's lost freedom.

    Raises:
        ValueError: a weight is NaN or infinite.
    """
    largest = nvfp4.joint_global_scale(*weights_NK) / _HEADROOM
    return torch.exp2(largest.log2().floor())


def search_block_scales(
    weight_NK: Tensor, global_scale: Tensor, importance_K: Tensor | None = None
) -> Tensor:
    """Block scales float8_e4m3fn [N, B] with the least weighted squared rounding error.

    Args:
        weight_NK: any float dtype; K a multiple of 16.
        global_scale: float32 [1], or [N, 1] where rows have their own; divides.
        importance_K: float32 [K], E[x^2] of each input; None weighs all alike.
    """
    if importance_K is None:
        importance_K = torch.ones(weight_NK.shape[1], device=weight_NK.device)
    importance_BG = importance_K.float().unflatten(0, (-1, nvfp4.BLOCK))
    step = max(1, _TILE_WEIGHTS // weight_NK.shape[1])
    if weight_NK.device.type != "cpu":
        step = len(weight_NK)
    shared_N1 = global_scale.expand(len(weight_NK), 1)
    return torch.cat(
        [
            _search(rows.float(), shared, importance_BG)
            for rows, shared in zip(weight_NK.split(step), shared_N1.split(step), strict=True)
        ]
    )


def _search(rows_NK: Tensor, shared_N1: Tensor, importance_BG: Tensor) -> Tensor:
    blocks_NBG = rows_NK.unflatten(1, (-1, nvfp4.BLOCK))
    usual_NB = nvfp4.round_block_scale(blocks_NBG.abs().amax(-1) / nvfp4.E2M1_MAX * shared_N1)
    usual_code_NB = usual_NB.view(torch.uint8).to(torch.int16)
    best_NB, least_NB = usual_NB, torch.full_like(usual_NB, torch.inf, dtype=torch.float32)
    # The usual scale first: it stays where another is only as good.
    for step in sorted(_STEPS, key=abs):
        code_NB = (usual_code_NB + step).clamp(1, _LARGEST_CODE).to(torch.uint8)
        scale_NB = code_NB.view(torch.float8_e4m3fn)
        error_NB = _error(blocks_NBG, scale_NB, shared_N1, importance_BG)
        better_NB = error_NB < least_NB
        least_NB = torch.where(better_NB, error_NB, least_NB)
        best_NB = torch.where(better_NB, code_NB, best_NB.view(torch.uint8)).view(
            torch.float8_e4m3fn
        )
    return best_NB


def _error(
    blocks_NBG: Tensor, scale_NB: Tensor, shared_N1: Tensor, importance_BG: Tensor
) -> Tensor:
    step_NB1 = (scale_NB.float() / shared_N1)[..., None]
    scaled_NBG = blocks_NBG / step_NB1
    error_NBG = nvfp4.round_scaled(scaled_NBG).sub_(scaled_NBG).square_()
    return error_NBG.mul_(importance_BG).sum(-1).mul_(step_NB1[..., 0].square())
