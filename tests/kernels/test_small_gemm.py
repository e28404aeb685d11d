"""The product of few rows: layout, reference against float64, Triton against the reference."""

import importlib
from dataclasses import replace

import pytest
import torch
from torch import Tensor

from ocria.kernels.small_gemm import (
    BY_RULE,
    Norm,
    PackedWeight,
    Tiling,
    TilingTable,
    WeightCodes,
    pack,
    reference,
)
from ocria.kernels.small_gemm.layout import Format, choose_tiling, unpack
from ocria.kernels.small_gemm.tilings import MEASURED, streamed
from ocria.quantization import fp8, nvfp4

triton_impl = pytest.importorskip("ocria.kernels.small_gemm.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
FORMATS: tuple[Format, ...] = ("nvfp4", "fp8", "bf16")
CODES: tuple[Format, ...] = ("nvfp4", "fp8")
SMALL = Tiling(block_n=16, block_k=64, num_warps=1)
STREAMS = Tiling(block_n=16, block_k=64, num_warps=1, streams=True)


def normal(*shape: int, seed: int = 0) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def stored(format: Format, num_out: int, num_in: int, seed: int = 0) -> tuple[WeightCodes, Tensor]:
    """Codes of a random matrix, and the matrix that they stand for in float32."""
    weight = normal(num_out, num_in, seed=seed) * num_in**-0.5
    if format == "nvfp4":
        packed = nvfp4.quantize(weight)
        scale = (1 / packed.global_scale).expand(num_out)
        values = nvfp4.dequantize(packed, torch.float32)
        codes = WeightCodes("nvfp4", packed.packed_NH, scale, packed.scale_NB)
    elif format == "fp8":
        rows = fp8.quantize(weight)
        values = fp8.dequantize(rows, torch.float32)
        codes = WeightCodes("fp8", rows.codes_NK, rows.scale_N1.flatten())
    else:
        values = weight.bfloat16().float()
        codes = WeightCodes("bf16", weight.bfloat16(), torch.ones(num_out))
    on_device = (x if x is None else x.to(DEVICE) for x in codes[1:])
    return WeightCodes(codes.format, *on_device), values.to(DEVICE)


def error(found: Tensor, expected: Tensor) -> float:
    assert torch.isfinite(found).all()
    return float((found.double() - expected.double()).norm() / expected.double().norm())


BOTH_WAYS = [*((format, SMALL) for format in FORMATS), *((format, STREAMS) for format in CODES)]
"""Formats and tilings, codes in the order of fragments or streamed."""


@pytest.mark.parametrize("paired", [False, True])
@pytest.mark.parametrize(("format", "tiling"), BOTH_WAYS)
@pytest.mark.parametrize("shape", [(16, 64), (24, 96), (50, 208)], ids=str)
def test_tiles_hold_the_matrix(
    format: Format, tiling: Tiling, shape: tuple[int, int], paired: bool
) -> None:
    parts = [stored(format, *shape, seed=seed) for seed in range(2)]
    weight = pack([codes for codes, _ in parts], paired=paired, tiling=tiling)
    first, second = (values for _, values in parts)
    expected = (
        torch.stack((first, second), 1).flatten(0, 1) if paired else torch.cat((first, second))
    )
    # Code times scale is exact; a row scale that is no power of two rounds once more.
    torch.testing.assert_close(unpack(weight), expected, rtol=1e-6, atol=0)


@pytest.mark.parametrize("format", FORMATS)
def test_reference_is_the_formula(format: Format) -> None:
    codes, values = stored(format, 40, 96)
    x, gain = normal(5, 96, seed=1).double().to(DEVICE), 1 + 0.2 * normal(96, seed=2).to(DEVICE)
    weight = pack([codes], tiling=SMALL)
    normed = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * gain
    found = reference.small_gemm(x, weight, norm=Norm(gain, 1e-6), residual_MN=x[:, :40])
    assert error(found, normed @ values.double().mT + x[:, :40]) < 1e-6


def check(weight: PackedWeight, num_rows: int, normed: bool, with_residual: bool) -> None:
    x = (normal(num_rows, weight.num_in, seed=3) * 3).bfloat16().to(DEVICE)
    norm = Norm((1 + 0.3 * normal(weight.num_in, seed=4)).to(DEVICE), 1e-6) if normed else None
    residual = None
    if with_residual:
        residual = normal(num_rows, weight.num_out, seed=5).bfloat16().to(DEVICE)
    found = triton_impl.small_gemm(
        x, weight, norm=norm, residual_MN=residual, out_dtype=torch.float32
    )
    expected = reference.small_gemm(
        x, weight, norm=norm, residual_MN=residual, out_dtype=torch.float32
    )
    assert found.shape == expected.shape
    assert error(found, expected) < 2e-6


@pytest.mark.parametrize(
    ("num_rows", "normed", "split_k"), [(1, True, 1), (16, False, 3), (21, True, 3)]
)
@pytest.mark.parametrize("format", FORMATS)
def test_triton_equals_reference(format: Format, num_rows: int, normed: bool, split_k: int) -> None:
    codes, _ = stored(format, 40, 272)
    tiling = Tiling(block_n=16, block_k=64, split_k=split_k, num_warps=1)
    weight = pack([codes], tiling=tiling)
    check(weight, num_rows, normed, with_residual=split_k == 3)


@pytest.mark.parametrize(
    ("num_rows", "num_in", "split_k"), [(1, 256, 1), (21, 272, 3), (16, 400, 1)]
)
@pytest.mark.parametrize("normed", [False, True])
@pytest.mark.parametrize("format", CODES)
def test_streamed_codes(
    format: Format, normed: bool, num_rows: int, num_in: int, split_k: int
) -> None:
    # Steps of 1, 2 and 4 groups of columns.
    block_k = {256: 128, 272: 64, 400: 256 if format == "nvfp4" else 128}[num_in]
    tiling = replace(STREAMS, split_k=split_k, block_k=block_k)
    weight = pack([stored(format, 40, num_in)[0]], tiling=tiling)
    check(weight, num_rows, normed, with_residual=split_k == 3)


@pytest.mark.skipif(DEVICE == "cuda", reason="a compiled kernel keeps its constants")
@pytest.mark.parametrize("format", CODES)
def test_both_names_of_places_give_the_product(
    format: Format, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("streamed", "streamed_fragments"):
        module = importlib.import_module(f"ocria.kernels.small_gemm.{name}")
        monkeypatch.setattr(module, "FOUR_PLACES", not module.FOUR_PLACES)
    check(pack([stored(format, 40, 272)[0]], tiling=STREAMS), 5, normed=True, with_residual=False)


@pytest.mark.parametrize(
    ("format", "changes"),
    [
        ("bf16", {}),
        ("nvfp4", {"block_k": 512}),
        ("fp8", {"block_k": 256}),
        ("nvfp4", {"block_n": 32}),
        ("nvfp4", {"num_warps": 2}),
    ],
)
def test_what_cannot_stream_is_refused(format: Format, changes: dict[str, int]) -> None:
    with pytest.raises(ValueError, match="cannot stream"):
        pack([stored(format, 32, 512)[0]], tiling=replace(STREAMS, **changes))


@pytest.mark.parametrize(("format", "tiling"), BOTH_WAYS)
def test_triton_pairs(format: Format, tiling: Tiling) -> None:
    parts = [stored(format, 24, 96, seed=seed) for seed in range(2)]
    weight = pack([codes for codes, _ in parts], paired=True, tiling=tiling)
    check(weight, 7, normed=True, with_residual=False)


@pytest.mark.parametrize(("format", "tiling"), BOTH_WAYS)
@pytest.mark.parametrize("split_k", [1, 2])
def test_a_row_has_the_same_bits_in_every_company(
    format: Format, tiling: Tiling, split_k: int
) -> None:
    codes, _ = stored(format, 48, 128)
    weight = pack([codes], tiling=replace(tiling, split_k=split_k))
    x = normal(37, 128, seed=6).bfloat16().to(DEVICE)
    norm = Norm(torch.ones(128, device=DEVICE), 1e-6)
    whole = triton_impl.small_gemm(x, weight, norm=norm)
    for first, last in ((0, 1), (5, 22), (36, 37)):
        part = triton_impl.small_gemm(x[first:last].contiguous(), weight, norm=norm)
        assert torch.equal(part, whole[first:last])


def test_outputs_are_written_and_no_more(monkeypatch: pytest.MonkeyPatch) -> None:
    codes, _ = stored("nvfp4", 40, 96)
    weight = pack([codes], tiling=SMALL)
    guarded = torch.full((9, 40), torch.nan, device=DEVICE)
    made = torch.empty
    monkeypatch.setattr(
        torch, "empty", lambda *a, **k: guarded[:7] if a == (7, 40) else made(*a, **k)
    )
    found = triton_impl.small_gemm(
        normal(7, 96).bfloat16().to(DEVICE), weight, out_dtype=torch.float32
    )
    assert found.data_ptr() == guarded.data_ptr()
    assert torch.isfinite(guarded[:7]).all() and guarded[7:].isnan().all()


@pytest.mark.parametrize("shape", [(8, 512), (6720, 512), (512, 1280), (18432, 2560), (2560, 9216)])
@pytest.mark.parametrize("format", FORMATS)
def test_every_step_of_k_belongs_to_a_part(format: Format, shape: tuple[int, int]) -> None:
    chosen = choose_tiling(*shape, format)
    assert not chosen.streams
    for tiling in (chosen, streamed([shape]).get((*shape, format), chosen)):
        steps = -(-shape[1] // tiling.block_k)
        assert 1 <= tiling.split_k <= max(1, steps)
        # A part without steps would add zeros for nothing.
        assert (tiling.split_k - 1) * -(-steps // tiling.split_k) < steps


@pytest.mark.parametrize("num_rows", [1, 16, 20])
@pytest.mark.parametrize("formats", [("nvfp4", "bf16"), ("fp8", "bf16"), ("bf16", "nvfp4")])
def test_two_products_have_the_bits_of_single_ones(
    formats: tuple[Format, Format], num_rows: int
) -> None:
    first = pack([stored(formats[0], 50, 208)[0]], tiling=SMALL)
    wide = Tiling(block_n=16, block_k=128, num_warps=1)
    second = pack([stored(formats[1], 8, 208, seed=1)[0]], tiling=wide)
    x = normal(num_rows, 208, seed=3).bfloat16().to(DEVICE)
    norm = Norm((1 + 0.3 * normal(208, seed=4)).to(DEVICE), 1e-6)
    assert triton_impl.can_join(first, second)
    found = triton_impl.two_products(x, first, second, norm=norm, second_dtype=torch.float32)
    assert torch.equal(found[0], triton_impl.small_gemm(x, first, norm=norm))
    alone = triton_impl.small_gemm(x, second, norm=norm, out_dtype=torch.float32)
    assert torch.equal(found[1], alone)


def test_products_of_unlike_programs_are_not_joined() -> None:
    first = pack([stored("nvfp4", 48, 256)[0]], tiling=SMALL)
    for other in (
        Tiling(block_n=16, block_k=64, num_warps=4),
        Tiling(block_n=16, block_k=64, num_warps=1, split_k=2),
        STREAMS,
    ):
        second = pack([stored("nvfp4", 48, 256, seed=1)[0]], tiling=other)
        assert not triton_impl.can_join(first, second)
        assert not triton_impl.can_join(second, first)


def test_a_table_of_tilings_goes_before_the_rule() -> None:
    shape = (2560, 512, "nvfp4")
    pair = [stored("nvfp4", 1280, 512, seed=seed)[0] for seed in range(2)]
    assert pack(pair, paired=True).tiling == choose_tiling(*shape)
    assert pack(pair, paired=True, tilings=MEASURED).tiling == MEASURED[shape]
    other = stored("nvfp4", 48, 512)[0]
    assert pack([other], tilings=MEASURED).tiling == choose_tiling(48, 512, "nvfp4")


@pytest.mark.parametrize(("shape", "tiling"), MEASURED.items(), ids=str)
def test_a_named_table_gives_each_part_steps(
    shape: tuple[int, int, Format], tiling: Tiling
) -> None:
    assert not tiling.streams
    steps = -(-shape[1] // tiling.block_k)
    assert (tiling.split_k - 1) * -(-steps // tiling.split_k) < steps
    # Lanes of a program that hold no codes of their own would read for nothing.
    assert tiling.num_warps * 32 <= tiling.block_k


@pytest.mark.parametrize("tilings", [BY_RULE, MEASURED], ids=["by rule", "measured"])
def test_products_in_front_of_a_delta_layer_are_joined(tilings: TilingTable) -> None:
    first = pack([stored("nvfp4", 2048, 512)[0]], tilings=tilings)
    second = pack([stored("bf16", 8, 512, seed=1)[0]], tilings=tilings)
    assert triton_impl.can_join(first, second)
