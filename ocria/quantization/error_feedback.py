"""Rounding a matrix column by column, each error passed on to the columns not yet rounded.

Minimises the error of the outputs, trace(dW H dW^T) with H = X^T X, instead of the weights'. The
block scales are fixed beforehand, so that columns may be taken in any order.
Source: Frantar et al., "GPTQ" (2023), section 3; the order by falling diagonal is theirs too.

Shape legend: N output rows, K inputs, C columns of a panel.
"""

from collections.abc import Callable

import torch
from torch import Tensor

from ocria.quantization import nvfp4
from ocria.quantization.fp8 import E4M3_MAX, FP8Tensor

# Columns whose error is passed on at once to the rest of the matrix.
_PANEL = 64
_DAMPING = 0.01

# Rounds columns [N, C'] that stand at places `columns`; returns values in the matrix's own unit.
Rounding = Callable[[Tensor, Tensor], Tensor]


def round_nvfp4(
    weight_NK: Tensor, scale_NB: Tensor, global_scale: Tensor, hessian_KK: Tensor
) -> nvfp4.NVFP4Tensor:
    """NVFP4 codes with error feedback, for block scales already chosen.

    Args:
        weight_NK: any float dtype.
        scale_NB: float8_e4m3fn.
        global_scale: float32 [1]; divides.
        hessian_KK: second moments of the inputs, float32 or float64; need not be of full rank.
    """
    step_NK = (scale_NB.float() / global_scale).repeat_interleave(nvfp4.BLOCK, 1)

    def rounding(values_NC: Tensor, columns: Tensor) -> Tensor:
        step_NC = step_NK[:, columns]
        return nvfp4.round_scaled(values_NC / step_NC) * step_NC

    rounded_NK = feed_back(weight_NK, hessian_KK, rounding)
    codes_NK = nvfp4.encode(rounded_NK / step_NK)
    return nvfp4.NVFP4Tensor(nvfp4.pack(codes_NK), scale_NB, global_scale.float())


def round_fp8(weight_NK: Tensor, scale_N1: Tensor, hessian_KK: Tensor) -> FP8Tensor:
    """FP8 codes with error feedback, for row scales already chosen."""
    scale = scale_N1.float()

    def codes(values_NC: Tensor) -> Tensor:
        return (values_NC / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)

    rounded_NK = feed_back(weight_NK, hessian_KK, lambda values, _: codes(values).float() * scale)
    return FP8Tensor(codes(rounded_NK), scale_N1)


def feed_back(weight_NK: Tensor, hessian_KK: Tensor, rounding: Rounding) -> Tensor:
    """The rounded matrix [N, K], float32."""
    order = hessian_KK.diagonal().argsort(descending=True, stable=True)
    work_NK = weight_NK.float()[:, order]
    upper_KK = _inverse_factor(hessian_KK[order][:, order])
    result_NK = torch.empty_like(work_NK)
    num_columns = work_NK.shape[1]
    for start in range(0, num_columns, _PANEL):
        end = min(start + _PANEL, num_columns)
        error_NC = torch.empty(work_NK.shape[0], end - start)
        for column in range(start, end):
            place = slice(column, column + 1)
            result_NK[:, place] = rounding(work_NK[:, place], order[place])
            error_N1 = (work_NK[:, place] - result_NK[:, place]) / upper_KK[column, column]
            error_NC[:, column - start] = error_N1[:, 0]
            work_NK[:, column + 1 : end] -= error_N1 * upper_KK[column, column + 1 : end]
        work_NK[:, end:] -= error_NC @ upper_KK[start:end, end:]
    return result_NK[:, order.argsort()]


def _inverse_factor(hessian_KK: Tensor) -> Tensor:
    """Upper Cholesky factor, float32, of the damped inverse; inputs that never occur count nothing.

    Worked out in float64 and in place where that can be: at 9,216 inputs a matrix takes 680 MB.
    """
    damped_KK = hessian_KK.double()
    diagonal = damped_KK.diagonal()
    diagonal += torch.where(diagonal > 0, _DAMPING * diagonal.mean(), torch.ones_like(diagonal))
    inverse_KK = torch.cholesky_inverse(torch.linalg.cholesky(damped_KK))
    del damped_KK
    return torch.linalg.cholesky(inverse_KK, upper=True).float()
