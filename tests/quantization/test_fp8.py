"""FP8 weights with a scale for each row."""

import pytest
import torch

from ocria.quantization import fp8

pytest.importorskip("compressed_tensors")
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.lifecycle.forward import dequantize, quantize

ARGUMENTS = QuantizationArgs(num_bits=8, type="float", strategy="channel")


def rows() -> torch.Tensor:
    weight = torch.randn(40, 24, generator=torch.Generator().manual_seed(8))
    weight[3] = 0
    weight[4] *= 1e-20
    weight[5, 2] = 1e20
    return weight


@pytest.mark.parametrize("scale_dtype", [torch.float32, torch.bfloat16])
def test_codes_and_values_equal_compressed_tensors(scale_dtype: torch.dtype) -> None:
    weight = rows()
    ours = fp8.quantize(weight, scale_dtype=scale_dtype)
    scale = ours.scale_N1.float()
    zero = torch.zeros_like(scale)
    theirs = quantize(weight, scale, zero, ARGUMENTS, dtype=torch.float8_e4m3fn)
    assert torch.equal(ours.codes_NK.view(torch.uint8), theirs.view(torch.uint8))
    values = dequantize(theirs, scale, args=ARGUMENTS, dtype=torch.float32)
    assert torch.equal(fp8.dequantize(ours, torch.float32), values)


@pytest.mark.parametrize("scale_dtype", [torch.float32, torch.bfloat16])
def test_no_code_is_nan_and_the_error_is_small(scale_dtype: torch.dtype) -> None:
    weight = rows()
    found = fp8.dequantize(fp8.quantize(weight, scale_dtype=scale_dtype), torch.float32)
    assert torch.isfinite(found).all()
    scale = weight.abs().amax(1, keepdim=True) / 448
    # Half a step is 1/16 of a value, and 2^-10 of the scale below the smallest normal number.
    assert bool(((found - weight).abs() <= weight.abs() / 16 + scale / 500).all())


def test_other_shapes_and_non_numbers_are_refused() -> None:
    with pytest.raises(ValueError, match="matrix"):
        fp8.quantize(torch.ones(3))
    with pytest.raises(ValueError, match="finite"):
        fp8.quantize(torch.tensor([[1.0, float("nan")]]))
