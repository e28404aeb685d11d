"""A plain checkpoint rounded while it is read, and a quantised one expanded."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.errors import WeightsError
from ocria.quantization import fp8, nvfp4
from ocria.quantization.compressed_tensors import QuantizationConfig, quantization_config
from ocria.quantization.layouts import config_sections, stored_tensors
from ocria.quantization.rounded_source import MixedSource, PlainSource
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader

GROUPS = [("a.weight", "b.weight"), ("c.weight",)]
TABLES = ["e.weight"]


def plain_source(folder: Path, **changes: torch.Tensor) -> QuantizedSource:
    generator = torch.Generator().manual_seed(1)
    shapes = {"a": (8, 32), "b": (4, 32), "c": (16, 48), "e": (40, 24), "n": (24,)}
    tensors = {
        f"{name}.weight": torch.randn(shape, generator=generator).bfloat16()
        for name, shape in shapes.items()
    }
    tensors["b.weight"] *= 7
    save_file({**tensors, **changes}, folder / "model.safetensors")
    return QuantizedSource(CheckpointReader(folder), QuantizationConfig())


def test_products_are_rounded_with_their_group_s_scale(tmp_path: Path) -> None:
    plain = plain_source(tmp_path)
    source = MixedSource(plain, GROUPS, TABLES)
    shared = nvfp4.joint_global_scale(
        plain.read("a.weight", torch.float32), plain.read("b.weight", torch.float32)
    )
    for name in GROUPS[0]:
        found = source.read_packed(name)
        expected = nvfp4.quantize(plain.read(name, torch.float32), shared)
        assert isinstance(found, nvfp4.NVFP4Tensor)
        for ours, theirs in zip(found, expected, strict=True):
            assert torch.equal(ours.view(torch.uint8), theirs.view(torch.uint8))
        values = source.read(name, torch.float32)
        assert torch.equal(values, nvfp4.dequantize(expected, torch.float32))
    alone = source.read_packed("c.weight")
    assert isinstance(alone, nvfp4.NVFP4Tensor) and not torch.equal(alone.global_scale, shared)


def test_tables_are_fp8_by_row_in_tiles(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    plain = plain_source(tmp_path)
    monkeypatch.setattr("ocria.quantization.rounded_source._TILE_WEIGHTS", 24 * 7)
    found = MixedSource(plain, GROUPS, TABLES).read_packed("e.weight")
    expected = fp8.quantize(plain.read("e.weight", torch.float32))
    assert isinstance(found, fp8.FP8Tensor)
    assert torch.equal(found.codes_NK.view(torch.uint8), expected.codes_NK.view(torch.uint8))
    assert torch.equal(found.scale_N1, expected.scale_N1)
    values = MixedSource(plain, GROUPS, TABLES).read("e.weight", torch.float32)
    assert torch.equal(values, fp8.dequantize(expected, torch.float32))


def test_the_rest_stays_and_formats_are_told(tmp_path: Path) -> None:
    plain = plain_source(tmp_path)
    source = MixedSource(plain, GROUPS, TABLES)
    assert torch.equal(
        source.read("n.weight", torch.bfloat16), plain.read("n.weight", torch.bfloat16)
    )
    assert source.formats() == ("nvfp4", "fp8") and source.is_rounded
    assert list(source.names()) == list(plain.names())
    assert source.shape("c.weight") == (16, 48) and source.scheme("n.weight") is None
    untouched = MixedSource(plain, [], [])
    assert untouched.formats() == () and not untouched.is_rounded


def test_codes_are_never_rounded_again(tmp_path: Path) -> None:
    weight = torch.randn(16, 32, generator=torch.Generator().manual_seed(2))
    packed = {"a": nvfp4.quantize(weight)}
    tensors = dict(stored_tensors("a", packed["a"], "compressed-tensors"))
    save_file(tensors, tmp_path / "model.safetensors")
    section, _ = config_sections({"a": "nvfp4"}, (), "compressed-tensors")
    stored = QuantizedSource(
        CheckpointReader(tmp_path), quantization_config({"quantization_config": section})
    )
    source = MixedSource(stored, [("a.weight",)], [])
    assert not source.is_rounded and source.formats() == ("nvfp4",)
    found = source.read_packed("a.weight")
    assert isinstance(found, nvfp4.NVFP4Tensor)
    assert torch.equal(found.packed_NH, packed["a"].packed_NH)
    expanded = PlainSource(stored, torch.float32)
    assert torch.equal(
        expanded.read_packed("a.weight"), nvfp4.dequantize(packed["a"], torch.float32)
    )
    assert expanded.formats() == () and expanded.scheme("a.weight") is None


def test_weights_that_are_no_numbers_are_named(tmp_path: Path) -> None:
    broken = torch.full((16, 48), torch.nan).bfloat16()
    source = MixedSource(plain_source(tmp_path, **{"c.weight": broken}), GROUPS, TABLES)
    with pytest.raises(WeightsError, match=r"`c\.weight` cannot be rounded") as caught:
        source.read_packed("c.weight")
    assert "--precision bf16" in (caught.value.hint or "")
