"""Block scales by search: never worse than the usual ones, and led by what the inputs are."""

import pytest
import torch
from torch import Tensor

from ocria.quantization import nvfp4, scale_search

WEIGHT = torch.randn(24, 96, generator=torch.Generator().manual_seed(2)) * 0.05


def error(weight: Tensor, scale: Tensor, shared: Tensor, importance: Tensor) -> Tensor:
    rounded = nvfp4.dequantize(nvfp4.quantize_with(weight, scale, shared), torch.float32)
    weighted = (rounded - weight).square() * importance
    return weighted.unflatten(1, (-1, nvfp4.BLOCK)).sum(-1)


def test_no_block_loses_more_than_with_the_usual_scale() -> None:
    shared, ones = scale_search.roomy_global_scale(WEIGHT), torch.ones(96)
    usual = nvfp4.quantize(WEIGHT, shared).scale_NB
    found = scale_search.search_block_scales(WEIGHT, shared)
    before, after = (error(WEIGHT, scale, shared, ones) for scale in (usual, found))
    assert bool((after <= before).all())
    assert after.sum() < 0.9 * before.sum()


def test_inputs_that_are_large_are_served_first() -> None:
    shared = scale_search.roomy_global_scale(WEIGHT)
    importance = torch.ones(96)
    importance[::16] = 1e4
    plain = scale_search.search_block_scales(WEIGHT, shared)
    led = scale_search.search_block_scales(WEIGHT, shared, importance)
    loss = [error(WEIGHT, scale, shared, importance).sum() for scale in (plain, led)]
    assert loss[1] < loss[0]


def test_global_scale_is_a_power_of_two_with_room() -> None:
    shared = scale_search.roomy_global_scale(WEIGHT, WEIGHT * 3)
    mantissa, _ = torch.frexp(shared)
    assert mantissa.item() == 0.5
    assert float((WEIGHT * 3).abs().max() / 6 * shared * 1.54) <= nvfp4.E4M3_MAX
    assert torch.equal(1 / (1 / shared), shared)


def test_zeros_stay_zeros() -> None:
    zeros = torch.zeros(4, 32)
    shared = scale_search.roomy_global_scale(zeros)
    scale = scale_search.search_block_scales(zeros, shared)
    packed = nvfp4.quantize_with(zeros, scale, shared)
    assert not nvfp4.dequantize(packed, torch.float32).any()


def test_infinity_is_refused() -> None:
    with pytest.raises(ValueError, match="finite"):
        scale_search.roomy_global_scale(torch.full((2, 16), torch.inf))
