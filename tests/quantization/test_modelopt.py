"""ModelOpt's layout: vectors worked out by hand, configs, round trips, and what is refused."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.errors import WeightsError
from ocria.quantization import fp8, layouts, modelopt, nvfp4, scale_search
from ocria.quantization.layouts import LayoutName, PackedTensor, read_quantization
from ocria.quantization.schemes import MODELOPT_FP8, MODELOPT_NVFP4
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader
from ocria.weights.shards import SINGLE_FILE

NVFP4_SECTION = {"quant_algo": "W4A16_NVFP4", "group_size": 16, "exclude_modules": ["lm_head"]}


def open_folder(
    folder: Path, tensors: dict[str, Tensor], section: dict[str, Any], config: dict[str, Any]
) -> QuantizedSource:
    save_file(tensors, folder / SINGLE_FILE)
    content = {"producer": {"name": "modelopt"}, "quantization": section}
    (folder / modelopt.CONFIG_FILE).write_text(json.dumps(content))
    return QuantizedSource(CheckpointReader(folder), read_quantization(folder, config))


def test_nvfp4_by_hand(tmp_path: Path) -> None:
    # Codes 0..15, the first of a pair in the low half of its byte; one block of scale 2, one of
    # 0.5; the second scale 0.25 multiplies.
    codes = [0x10, 0x32, 0x54, 0x76, 0x98, 0xBA, 0xDC, 0xFE]
    values = [0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6]
    tensors = {
        "up.weight": torch.tensor([codes * 2], dtype=torch.uint8),
        "up.weight_scale": torch.tensor([[2.0, 0.5]]).to(torch.float8_e4m3fn),
        "up.weight_scale_2": torch.tensor(0.25),
        "up.input_scale": torch.tensor(1.0),
    }
    opened = open_folder(tmp_path, tensors, NVFP4_SECTION, {})
    wanted = [value * 0.5 for value in values] + [value * 0.125 for value in values]
    assert opened.shape("up.weight") == (1, 32)
    assert opened.read("up.weight", torch.float32).tolist() == [wanted]


@pytest.mark.parametrize(
    ("algorithm", "scale", "wanted"),
    [
        ("FP8", torch.tensor(0.5), [[0.5, -224.0], [1.0, 0.125]]),
        ("FP8_PER_CHANNEL_PER_TOKEN", torch.tensor([0.5, 2.0]), [[0.5, -224.0], [4.0, 0.5]]),
    ],
)
def test_fp8_by_hand(
    tmp_path: Path, algorithm: str, scale: Tensor, wanted: list[list[float]]
) -> None:
    codes = torch.tensor([[1.0, -448.0], [2.0, 0.25]]).to(torch.float8_e4m3fn)
    tensors = {"up.weight": codes, "up.weight_scale": scale}
    opened = open_folder(tmp_path, tensors, {"quant_algo": algorithm}, {})
    assert opened.read("up.weight", torch.float32).tolist() == wanted


@pytest.mark.parametrize("shape", [(2, 3), (2, 1, 3, 1)])
def test_fp8_by_squares(tmp_path: Path, shape: tuple[int, ...]) -> None:
    codes = torch.ones(130, 300).to(torch.float8_e4m3fn)
    scale = torch.arange(1.0, 7.0)
    tensors = {"up.weight": codes, "up.weight_scale": scale.reshape(shape)}
    opened = open_folder(tmp_path, tensors, {"quant_algo": "FP8_PB_WO"}, {})
    found = opened.read("up.weight", torch.float32)
    assert found.shape == (130, 300)
    assert found[0, [0, 127, 128, 256, 299]].tolist() == [1, 1, 2, 3, 3]
    assert found[[127, 128, 129], 0].tolist() == [1, 4, 4]
    assert found[129, 299] == 6


def test_mixed_precision_names_each_layer() -> None:
    section = {
        "quant_algo": "MIXED_PRECISION",
        "quantized_layers": {
            "a.up": {"quant_algo": "NVFP4", "group_size": 16},
            "a.down": {"quant_algo": "FP8"},
        },
        "exclude_modules": ["lm_head", "visual*"],
    }
    config = modelopt.parse_section(section)
    assert config.scheme_of("a.up") is MODELOPT_NVFP4
    assert config.scheme_of("a.down") is MODELOPT_FP8
    assert config.scheme_of("a.gate") is None and config.scheme_of("visual.0.up") is None


def test_wildcards_match_whole_names() -> None:
    config = modelopt.parse_section({"quant_algo": "NVFP4", "exclude_modules": ["*.in_proj_a"]})
    assert config.scheme_of("layers.0.in_proj_a") is None
    assert config.scheme_of("layers.0.in_proj_a_more") is MODELOPT_NVFP4


@pytest.mark.parametrize(
    ("section", "message"),
    [
        ({"quant_algo": "INT4_AWQ"}, "unknown quant_algo of the checkpoint: `INT4_AWQ`"),
        ({}, "unknown quant_algo of the checkpoint: `None`"),
        ({"quant_algo": "NVFP4", "group_size": 32}, "group_size 32; supported: 16"),
        (
            {"quant_algo": "MIXED_PRECISION", "quantized_layers": {"up": {"quant_algo": "W3"}}},
            "unknown quant_algo of `up`: `W3`",
        ),
    ],
)
def test_unknown_formats_are_refused(section: dict[str, Any], message: str) -> None:
    with pytest.raises(WeightsError, match=message):
        modelopt.parse_section(section)


def test_damaged_config_file(tmp_path: Path) -> None:
    (tmp_path / modelopt.CONFIG_FILE).write_text('{"producer": {}}')
    with pytest.raises(WeightsError, match="cannot understand"):
        read_quantization(tmp_path, {})


def packed_layers() -> dict[str, PackedTensor]:
    weight = torch.randn(10, 32, generator=torch.Generator().manual_seed(1)) * 0.1
    shared = scale_search.roomy_global_scale(weight)
    scale = scale_search.search_block_scales(weight, shared)
    return {
        "up": nvfp4.quantize_with(weight, scale, shared),
        "down": fp8.quantize(weight, scale_dtype=torch.bfloat16),
    }


@pytest.mark.parametrize("names", [("up", "down"), ("up",), ("down",)])
@pytest.mark.parametrize("layout", ["compressed-tensors", "modelopt"])
def test_round_trip(tmp_path: Path, layout: LayoutName, names: tuple[str, ...]) -> None:
    packed = {name: packed_layers()[name] for name in names}
    tensors = {
        name: tensor.clone()
        for module, layer in packed.items()
        for name, tensor in layouts.stored_tensors(module, layer, layout)
    }
    formats = {name: layouts.format_of(layer) for name, layer in packed.items()}
    section, separate = layouts.config_sections(formats, ("lm_head", "*.in_proj_a"), layout)
    save_file(tensors, tmp_path / SINGLE_FILE)
    config = {"quantization_config": section}
    opened = QuantizedSource(CheckpointReader(tmp_path), read_quantization(tmp_path, config))
    for name, layer in packed.items():
        found = opened.read_packed(f"{name}.weight")
        assert isinstance(found, tuple)
        for part, wanted in zip(found, layer, strict=True):
            assert torch.equal(part.float(), wanted.float().reshape(part.shape)), name
    if separate is not None:
        (tmp_path / modelopt.CONFIG_FILE).write_text(json.dumps(separate))
        assert read_quantization(tmp_path, {}) == read_quantization(tmp_path, config)


@pytest.mark.parametrize("layout", ["compressed-tensors", "modelopt"])
def test_a_reciprocal_global_scale_is_caught(tmp_path: Path, layout: LayoutName) -> None:
    up = packed_layers()["up"]
    assert isinstance(up, nvfp4.NVFP4Tensor)
    mixed_up = nvfp4.NVFP4Tensor(up.packed_NH, up.scale_NB, 1 / up.global_scale)
    tensors = dict(layouts.stored_tensors("up", mixed_up, layout))
    section, _ = layouts.config_sections({"up": "nvfp4"}, (), layout)
    save_file(tensors, tmp_path / SINGLE_FILE)
    config = read_quantization(tmp_path, {"quantization_config": section})
    opened = QuantizedSource(CheckpointReader(tmp_path), config)
    with pytest.raises(WeightsError, match="reciprocal"):
        opened.read("up.weight", torch.float32)


def test_scales_that_lack(tmp_path: Path) -> None:
    tensors = dict(layouts.stored_tensors("up", packed_layers()["up"], "modelopt"))
    del tensors["up.weight_scale_2"]
    with pytest.raises(WeightsError, match=r"`up` lacks weight_scale_2"):
        open_folder(tmp_path, tensors, NVFP4_SECTION, {})
