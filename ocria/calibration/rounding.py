"""One product's matrix to a storage format, with or without statistics of its inputs.

Shape legend: N output rows, K inputs.
"""

from collections.abc import Sequence
from typing import Literal

import torch
from torch import Tensor

from ocria.calibration.moments import JointMoments
from ocria.quantization import error_feedback, fp8, nvfp4, scale_search
from ocria.quantization.layouts import PackedTensor
from ocria.quantization.schemes import SchemeName

Format = SchemeName | Literal["bf16"]

# Weight, relative to the mean of the moments' diagonal, that keeps a corrected matrix near its
# parent: calibration rows are few.
_RIDGE = 0.03


def round_plainly(weight_NK: Tensor, format: SchemeName) -> PackedTensor:
    """Block scales searched without statistics; codes to nearest.

    Raises:
        ValueError: a weight is NaN or infinite, or K does not suit the format.
    """
    if format == "fp8":
        # transformers casts scales to the dtype of the run: bf16 ones survive that.
        return fp8.quantize(weight_NK, scale_dtype=torch.bfloat16)
    shared = scale_search.roomy_global_scale(weight_NK)
    scale_NB = scale_search.search_block_scales(weight_NK, shared)
    return nvfp4.quantize_with(weight_NK, scale_NB, shared)


def round_calibrated(weight_NK: Tensor, format: SchemeName, moments: JointMoments) -> PackedTensor:
    """Scales searched by the inputs' second moments; codes with error feedback.

    The weights first move to where they best make up for the drift of their inputs.

    Raises:
        ValueError: as `round_plainly`.
    """
    wanted_NK = weight_NK.float() + _correction(moments)
    if format == "fp8":
        scale_N1 = fp8.quantize(wanted_NK, scale_dtype=torch.bfloat16).scale_N1
        return error_feedback.round_fp8(wanted_NK, scale_N1, moments.hessian_KK)
    shared = scale_search.roomy_global_scale(wanted_NK)
    scale_NB = scale_search.search_block_scales(wanted_NK, shared, moments.hessian_KK.diagonal())
    return error_feedback.round_nvfp4(wanted_NK, scale_NB, shared, moments.hessian_KK)


def dequantize(packed: PackedTensor, dtype: torch.dtype) -> Tensor:
    """The matrix [N, K] that a run computes with."""
    if isinstance(packed, nvfp4.NVFP4Tensor):
        return nvfp4.dequantize(packed, dtype)
    return fp8.dequantize(packed, dtype)


def split_rows(packed: PackedTensor, sizes: Sequence[int]) -> list[PackedTensor]:
    """The members of a fused matrix, by their numbers of rows; they share a global scale."""
    if isinstance(packed, nvfp4.NVFP4Tensor):
        codes, scales = packed.packed_NH.split(list(sizes)), packed.scale_NB.split(list(sizes))
        pairs = zip(codes, scales, strict=True)
        return [nvfp4.NVFP4Tensor(code, scale, packed.global_scale) for code, scale in pairs]
    codes, scales = packed.codes_NK.split(list(sizes)), packed.scale_N1.split(list(sizes))
    return [fp8.FP8Tensor(code, scale) for code, scale in zip(codes, scales, strict=True)]


def num_bytes(packed: PackedTensor) -> int:
    """Bytes of codes and scales."""
    return sum(part.nbytes for part in packed)


def _correction(moments: JointMoments) -> Tensor:
    damped_KK = moments.hessian_KK.double()
    diagonal = damped_KK.diagonal()
    diagonal += _RIDGE * diagonal.mean().clamp(min=1e-30)
    factor_KK = torch.linalg.cholesky(damped_KK)
    del damped_KK
    return torch.cholesky_solve(moments.drift_NK.double().T, factor_KK).T.float()
