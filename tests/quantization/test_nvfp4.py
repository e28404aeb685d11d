"""NVFP4 against compressed-tensors bit for bit, and against its own definition."""

import pytest
import torch
from torch import Tensor

from ocria.quantization import nvfp4

pytest.importorskip("compressed_tensors")
from compressed_tensors.compressors.nvfp4.helpers import (
    pack_fp4_to_uint8,
    quantize_and_pack_fp4,
    unpack_fp4_from_uint8,
)
from compressed_tensors.quantization import QuantizationArgs
from compressed_tensors.quantization.utils import (
    calculate_qparams,
    generate_gparam,
)


def adversarial() -> dict[str, Tensor]:
    generator = torch.Generator().manual_seed(4)
    normal = torch.randn(48, 64, generator=generator)
    outlier = normal * 1e-3
    outlier[7, 33] = 3e4
    half_zero = normal.clone()
    half_zero[:, :32] = 0
    ties = torch.tensor([0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0]).repeat(8)
    return {
        "normal": normal,
        "bfloat16": normal.bfloat16(),
        "outlier": outlier,
        "zeros": torch.zeros(16, 32),
        "half zero": half_zero,
        "negative zeros": -torch.zeros(4, 16),
        "subnormals": normal * 1e-39,
        "tiny": normal * 1e-30,
        "huge": normal * 1e30,
        "ties": torch.stack([ties, -ties, ties.flip(0), ties * 2]),
    }


@pytest.mark.parametrize("name", adversarial())
def test_codes_equal_compressed_tensors(name: str) -> None:
    weight = adversarial()[name]
    ours = nvfp4.quantize(weight)
    theirs = quantize_and_pack_fp4(
        weight.float(), ours.scale_NB.float(), global_scale=ours.global_scale
    )
    assert torch.equal(ours.packed_NH, theirs)


@pytest.mark.parametrize("name", ["normal", "outlier", "ties", "huge", "bfloat16"])
def test_scales_equal_compressed_tensors(name: str) -> None:
    weight = adversarial()[name].float()
    ours = nvfp4.quantize(weight)
    arguments = QuantizationArgs(
        num_bits=4,
        type="float",
        strategy="tensor_group",
        group_size=16,
        scale_dtype=torch.float8_e4m3fn,
    )
    shared = generate_gparam(weight.min().reshape(1), weight.max().reshape(1))
    blocks = weight.unflatten(1, (-1, 16))
    scale, _ = calculate_qparams(blocks.amin(-1), blocks.amax(-1), arguments, global_scale=shared)
    assert torch.equal(ours.global_scale, shared)
    # Where the other's scale rounds to zero it takes 0.125, which loses the block.
    same = blocks.abs().amax(-1) / 6 * shared >= nvfp4.E4M3_TINY
    assert torch.equal(ours.scale_NB.float()[same], scale.float()[same])
    assert bool(same.any())


def test_packing_equals_compressed_tensors_on_every_byte() -> None:
    packed = torch.arange(256, dtype=torch.uint8).view(4, 64)
    values = unpack_fp4_from_uint8(packed, 4, 128, dtype=torch.float32)
    unit = nvfp4.NVFP4Tensor(packed, torch.ones(4, 8).to(torch.float8_e4m3fn), torch.ones(1))
    assert torch.equal(nvfp4.dequantize(unit, torch.float32), values)
    assert torch.equal(nvfp4.pack(nvfp4.unpack(packed)), packed)
    assert torch.equal(pack_fp4_to_uint8(values), packed)


def test_rounding_is_to_the_nearest_code_and_ties_go_to_even() -> None:
    points = torch.tensor([0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])
    fine = torch.linspace(0, 6, 4801)
    codes = nvfp4.encode(fine)
    distance = (points[codes.long()] - fine).abs()
    assert torch.equal(distance, (points[None] - fine[:, None]).abs().amin(1))
    middles = (points[:-1] + points[1:]) / 2
    assert nvfp4.encode(middles).tolist() == [0, 2, 2, 4, 4, 6, 6]
    assert nvfp4.encode(-middles).tolist() == [8, 10, 10, 12, 12, 14, 14]
    assert nvfp4.encode(torch.tensor([1e9, -1e9])).tolist() == [7, 15]


@pytest.mark.parametrize("name", ["normal", "outlier", "half zero", "tiny", "huge"])
def test_the_error_stays_within_half_a_step(name: str) -> None:
    weight = adversarial()[name].float()
    packed = nvfp4.quantize(weight)
    scale = (packed.scale_NB.float() / packed.global_scale).repeat_interleave(16, 1)
    error = (nvfp4.dequantize(packed, torch.float32) - weight).abs()
    # The widest step is 2, and a scale rounded down by 1/16 clips up to 0.4 beyond 6.
    assert bool((error <= scale * 1.001).all())


def test_a_block_beside_an_outlier_is_not_lost() -> None:
    weight = torch.full((1, 32), 0.02)
    weight[0, 0] = 6.0 * 448
    assert float(nvfp4.dequantize(nvfp4.quantize(weight), torch.float32)[0, 16]) > 0


def test_fused_projections_share_the_larger_scale() -> None:
    small, large = torch.full((2, 16), 0.5), torch.full((2, 16), 8.0)
    joint = nvfp4.joint_global_scale(small, large)
    assert torch.equal(joint, nvfp4.joint_global_scale(large))
    assert torch.equal(nvfp4.quantize(small, joint).global_scale, joint)


@pytest.mark.parametrize("shape", [(4, 24), (4, 8), (16,), (2, 3, 16)])
def test_other_shapes_are_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match="multiple of 16"):
        nvfp4.quantize(torch.ones(shape))


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), float("-inf")])
def test_weights_that_are_not_numbers_are_refused(bad: float) -> None:
    weight = torch.ones(2, 16)
    weight[1, 3] = bad
    with pytest.raises(ValueError, match="finite"):
        nvfp4.quantize(weight)


def test_rounding_without_codes_is_the_same() -> None:
    ties = torch.tensor([0.0, 0.25, 0.5, 0.75, 1.0, 1.25, 1.75, 2.5, 3.5, 5.0, 6.0, 7.0, 1e30])
    near = torch.cat([ties, ties.nextafter(torch.tensor(0.0)), ties.nextafter(torch.tensor(9e30))])
    random = torch.randn(10_000, generator=torch.Generator().manual_seed(2)) * 3
    values = torch.cat([near, -near, random])
    assert torch.equal(nvfp4.round_scaled(values), nvfp4.decode(nvfp4.encode(values)))
