"""Rounding with error feedback: plain where inputs are independent, better where they are not."""

import torch
from torch import Tensor

from ocria.quantization import error_feedback, fp8, nvfp4, scale_search

GENERATOR = torch.Generator().manual_seed(6)
WEIGHT = torch.randn(40, 160, generator=GENERATOR) * 0.1
# Inputs that share a few directions, as activations do.
INPUTS = torch.randn(600, 12, generator=GENERATOR) @ torch.randn(12, 160, generator=GENERATOR)
INPUTS = INPUTS + 0.3 * torch.randn(600, 160, generator=GENERATOR)
HESSIAN = INPUTS.T @ INPUTS / 600


def output_error(rounded: Tensor) -> float:
    return float((INPUTS @ (rounded - WEIGHT).T).square().mean())


def nvfp4_scales() -> tuple[Tensor, Tensor]:
    shared = scale_search.roomy_global_scale(WEIGHT)
    return scale_search.search_block_scales(WEIGHT, shared, HESSIAN.diagonal()), shared


def test_independent_inputs_leave_plain_rounding() -> None:
    scale, shared = nvfp4_scales()
    fed = error_feedback.round_nvfp4(WEIGHT, scale, shared, torch.eye(160))
    plain = nvfp4.quantize_with(WEIGHT, scale, shared)
    assert torch.equal(nvfp4.dequantize(fed, torch.float32), nvfp4.dequantize(plain, torch.float32))


def test_correlated_inputs_lose_less() -> None:
    scale, shared = nvfp4_scales()
    plain = nvfp4.quantize_with(WEIGHT, scale, shared)
    fed = error_feedback.round_nvfp4(WEIGHT, scale, shared, HESSIAN)
    assert torch.equal(fed.scale_NB.float(), scale.float())
    losses = [output_error(nvfp4.dequantize(packed, torch.float32)) for packed in (plain, fed)]
    assert losses[1] < 0.5 * losses[0]


def test_fp8_rows_lose_less() -> None:
    plain = fp8.quantize(WEIGHT)
    fed = error_feedback.round_fp8(WEIGHT, plain.scale_N1, HESSIAN)
    losses = [output_error(fp8.dequantize(packed, torch.float32)) for packed in (plain, fed)]
    assert losses[1] < 0.5 * losses[0]


def test_inputs_that_never_occur_are_rounded_plainly() -> None:
    scale, shared = nvfp4_scales()
    fed = error_feedback.round_nvfp4(WEIGHT, scale, shared, torch.zeros(160, 160))
    plain = nvfp4.quantize_with(WEIGHT, scale, shared)
    assert torch.equal(nvfp4.dequantize(fed, torch.float32), nvfp4.dequantize(plain, torch.float32))


def test_rows_do_not_depend_on_each_other() -> None:
    scale, shared = nvfp4_scales()
    whole = error_feedback.round_nvfp4(WEIGHT, scale, shared, HESSIAN)
    part = error_feedback.round_nvfp4(WEIGHT[:7], scale[:7], shared, HESSIAN)
    assert torch.equal(whole.packed_NH[:7], part.packed_NH)
