"""A quantised folder read as plain tensors."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.errors import WeightsError
from ocria.quantization import fp8, nvfp4, source
from ocria.quantization.compressed_tensors import QuantizationConfig, TargetGroup
from ocria.quantization.schemes import FP8, NVFP4
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader
from ocria.weights.shards import SINGLE_FILE

CONFIG = QuantizationConfig(
    groups=(
        TargetGroup(targets=("up",), scheme=NVFP4),
        TargetGroup(targets=("embed",), scheme=FP8),
    ),
)
WEIGHT = torch.randn(10, 32, generator=torch.Generator().manual_seed(1))


def stored() -> dict[str, Tensor]:
    up, embed = nvfp4.quantize(WEIGHT), fp8.quantize(WEIGHT)
    return {
        "up.weight_packed": up.packed_NH,
        "up.weight_scale": up.scale_NB,
        "up.weight_global_scale": up.global_scale,
        "embed.weight": embed.codes_NK,
        "embed.weight_scale": embed.scale_N1,
        "norm.weight": torch.ones(4, dtype=torch.bfloat16),
    }


def open_source(folder: Path, tensors: dict[str, Tensor]) -> QuantizedSource:
    save_file(tensors, folder / SINGLE_FILE)
    return QuantizedSource(CheckpointReader(folder), CONFIG)


@pytest.mark.parametrize("tile", [1, 3 * 32, 1 << 20])
def test_weights_are_dequantised_whatever_the_tile(
    tmp_path: Path, tile: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "TILE_WEIGHTS", tile)
    opened = open_source(tmp_path, stored())
    assert sorted(opened.names()) == ["embed.weight", "norm.weight", "up.weight"]
    assert opened.formats() == ("nvfp4", "fp8")
    for name, whole in (
        ("up.weight", nvfp4.dequantize(nvfp4.quantize(WEIGHT), torch.bfloat16)),
        ("embed.weight", fp8.dequantize(fp8.quantize(WEIGHT), torch.bfloat16)),
    ):
        assert opened.shape(name) == (10, 32)
        assert torch.equal(opened.read(name, torch.bfloat16), whole)
    assert opened.read("norm.weight", torch.float32).dtype == torch.float32


def test_packed_tensors_can_be_had(tmp_path: Path) -> None:
    opened = open_source(tmp_path, stored())
    packed = opened.read_packed("up.weight")
    assert isinstance(packed, nvfp4.NVFP4Tensor)
    assert torch.equal(packed.packed_NH, nvfp4.quantize(WEIGHT).packed_NH)
    assert opened.scheme("up.weight") is NVFP4 and opened.scheme("norm.weight") is None


def test_one_fp8_scale_for_a_whole_tensor(tmp_path: Path) -> None:
    tensors = {**stored(), "embed.weight_scale": torch.tensor(0.5)}
    found = open_source(tmp_path, tensors).read("embed.weight", torch.float32)
    assert torch.equal(found, fp8.quantize(WEIGHT).codes_NK.float() / 2)


def test_names_are_translated_and_the_change_is_kept(tmp_path: Path) -> None:
    save_file(stored(), tmp_path / SINGLE_FILE)
    reader = CheckpointReader(tmp_path)
    opened = QuantizedSource(reader, CONFIG, lambda name: name.replace("up.", "model.up."))
    assert opened.renamed == [("up.weight", "model.up.weight")]
    assert opened.shape("model.up.weight") == (10, 32)
    with pytest.raises(WeightsError, match="two stored tensors are `same`"):
        QuantizedSource(reader, CONFIG, lambda name: "same")


@pytest.mark.parametrize(
    ("name", "bad"),
    [
        ("up.weight_global_scale", float("nan")),
        ("up.weight_global_scale", 0.0),
        ("up.weight_global_scale", -1.0),
        ("up.weight_scale", float("nan")),
        ("embed.weight_scale", float("inf")),
        ("embed.weight_scale", float("nan")),
    ],
)
def test_scales_that_are_no_scales_are_refused(tmp_path: Path, name: str, bad: float) -> None:
    tensors = stored()
    scale = tensors[name].float()
    scale.view(-1)[0] = bad
    opened = open_source(tmp_path, {**tensors, name: scale.to(tensors[name].dtype)})
    logical = f"{name.partition('.')[0]}.weight"
    with pytest.raises(WeightsError, match="NaN, infinite or negative"):
        opened.read(logical, torch.float32)


@pytest.mark.parametrize(
    ("dropped", "message"),
    [
        ("up.weight_global_scale", "`up` lacks weight_global_scale"),
        ("up.weight_packed", "`up` lacks weight_packed"),
        ("up.weight_scale", "`up.weight_packed` is stored as torch.uint8 without its scales"),
        ("embed.weight_scale", "`embed.weight` is stored as torch.float8_e4m3fn without"),
    ],
)
def test_incomplete_weights_are_refused(tmp_path: Path, dropped: str, message: str) -> None:
    tensors = stored()
    del tensors[dropped]
    with pytest.raises(WeightsError) as caught:
        open_source(tmp_path, tensors)
    assert message in str(caught.value)


def test_scales_of_another_shape_are_refused(tmp_path: Path) -> None:
    tensors = {**stored(), "up.weight_scale": stored()["up.weight_scale"][:, :1].contiguous()}
    with pytest.raises(WeightsError, match=r"scales \[10, 1\] do not fit codes \[10, 16\]"):
        open_source(tmp_path, tensors)


def test_scales_that_the_config_does_not_explain_are_refused(tmp_path: Path) -> None:
    tensors = {**stored(), "down.weight": torch.ones(2, 2), "down.weight_scale": torch.ones(2, 1)}
    with pytest.raises(WeightsError, match="names no format for it"):
        open_source(tmp_path, tensors)
