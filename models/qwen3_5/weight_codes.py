"""Stored weights in the form that the kernels pack.

Shape legend: N output rows, K inputs.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ocria.kernels.small_gemm import WeightCodes
from ocria.quantization import fp8, nvfp4

Stored = Tensor | nvfp4.NVFP4Tensor | fp8.FP8Tensor


def weight_codes(stored: Stored, device: torch.device) -> WeightCodes:
    """A stored matrix as codes and multiplying scales, on `device`."""
    if isinstance(stored, nvfp4.NVFP4Tensor):
        num_rows = stored.packed_NH.shape[0]
        scale_N = (1 / stored.global_scale.float()).expand(num_rows).contiguous().to(device)
        return WeightCodes(
            "nvfp4", stored.packed_NH.to(device), scale_N, stored.scale_NB.to(device)
        )
    if isinstance(stored, fp8.FP8Tensor):
        num_rows = stored.codes_NK.shape[0]
        scale = fp8.row_scales(stored, slice(None)).float()
        if scale.shape[1] == 1:
            scale_N = scale.flatten().expand(num_rows).contiguous().to(device)
            return WeightCodes("fp8", stored.codes_NK.to(device), scale_N)
        # Scales that change along K have no place in a row's sum.
        stored = (stored.codes_NK.float() * scale).bfloat16()
    ones_N = torch.ones(stored.shape[0], device=device)
    return WeightCodes("bf16", stored.to(device=device, dtype=torch.bfloat16), ones_N)


def joined(parts: Sequence[WeightCodes]) -> list[WeightCodes]:
    """The same matrices in one format: unlike ones become bfloat16."""
    if len({part.format for part in parts}) == 1:
        return list(parts)
    return [_as_bfloat16(part) for part in parts]


def _as_bfloat16(part: WeightCodes) -> WeightCodes:
    if part.format == "bf16":
        return part
    scale_N1 = part.row_scale_N[:, None]
    if part.block_scale_NB is not None:
        ones = torch.ones(1, device=part.codes.device)
        tensor = nvfp4.NVFP4Tensor(part.codes, part.block_scale_NB, ones)
        values_NK = nvfp4.dequantize(tensor, torch.float32) * scale_N1
    else:
        values_NK = part.codes.float() * scale_N1
    return WeightCodes("bf16", values_NK.bfloat16(), torch.ones_like(part.row_scale_N))
