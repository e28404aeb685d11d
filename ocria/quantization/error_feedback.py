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
    step_BN = (scale_NB.float() / global_scale).T.contiguous()

    def rounding(values_NC: Tensor, columns: Tensor) -> Tensor:
        step_NC = step_BN[columns // nvfp4.BLOCK].T
        return nvfp4.round_scaled(values_NC / step_NC) * step_NC

    rounded_NK = feed_back(weight_NK, hessian_KK, rounding)
    step_NK = step_BN.T.repeat_interleave(nvfp4.BLOCK, 1)
    codes_NK = nvfp4.encode(rounded_NK / step_NK)
    return nvfp4.NVFP4Tensor(nvfp4.pack(codes_NK), scale_NB, global_scale.float())


def round_fp8(weight_NK: Tensor, scale_N1: Tensor, hessian: "Tensor | Feedback") -> FP8Tensor:
    """FP8 codes with error feedback, for row scales already chosen."""
    scale = scale_N1.float()

    def codes(values_NC: Tensor) -> Tensor:
        return (values_NC / scale).clamp(-E4M3_MAX, E4M3_MAX).to(torch.float8_e4m3fn)

    rounded_NK = feed_back(weight_NK, hessian, lambda values, _: codes(values).float() * scale)
    return FP8Tensor(codes(rounded_NK), scale_N1)


class Feedback:
    """How errors of one input are made up for by others, worked out once for rows taken in parts.

    Args:
        hessian_KK: second moments of the inputs, float32 or float64; need not be of full rank.
    """

    def __init__(self, hessian_KK: Tensor) -> None:
        self.order = hessian_KK.diagonal().argsort(descending=True, stable=True)
        self.upper_KK = _inverse_factor(hessian_KK[self.order][:, self.order])


def feed_back(weight_NK: Tensor, hessian: Tensor | Feedback, rounding: Rounding) -> Tensor:
    """The rounded matrix [N, K], float32."""
    feedback = Feedback(hessian) if isinstance(hessian, Tensor) else hessian
    order, upper_KK = feedback.order, feedback.upper_KK
    # A column is touched at a time: laid out as rows, each lies together in memory.
    work_KN = weight_NK.float().T[order].contiguous()
    result_KN = torch.empty_like(work_KN)
    num_columns, num_rows = work_KN.shape
    for start in range(0, num_columns, _PANEL):
        end = min(start + _PANEL, num_columns)
        error_CN = torch.empty(end - start, num_rows)
        for column in range(start, end):
            value_N = work_KN[column]
            result_KN[column] = rounding(value_N[:, None], order[column : column + 1])[:, 0]
            error_N = (value_N - result_KN[column]).div_(upper_KK[column, column])
            error_CN[column - start] = error_N
            work_KN[column + 1 : end].addr_(upper_KK[column, column + 1 : end], error_N, alpha=-1)
        work_KN[end:].addmm_(upper_KK[start:end, end:].T, error_CN, alpha=-1)
    return result_KN[order.argsort()].T.contiguous()


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
