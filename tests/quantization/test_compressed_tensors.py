"""The quantization_config of a config.json: targets, ignore lists, and what is refused."""

from typing import Any

import pytest

from ocria.errors import WeightsError
from ocria.quantization.compressed_tensors import (
    QuantizationConfig,
    TargetGroup,
    quantization_config,
)
from ocria.quantization.schemes import FP8, NVFP4

NVFP4_GROUP: dict[str, Any] = {
    "format": "nvfp4-pack-quantized",
    "targets": ["Linear"],
    "weights": {
        "num_bits": 4,
        "type": "float",
        "strategy": "tensor_group",
        "group_size": 16,
        "symmetric": True,
    },
}
FP8_GROUP: dict[str, Any] = {
    "format": "float-quantized",
    "targets": ["model.embed"],
    "weights": {"num_bits": 8, "type": "float", "strategy": "channel", "symmetric": True},
}


def parse(*groups: dict[str, Any], **changes: Any) -> QuantizationConfig:
    section = {
        "quant_method": "compressed-tensors",
        "format": "mixed-precision",
        "config_groups": {f"group_{i}": group for i, group in enumerate(groups)},
        **changes,
    }
    return quantization_config({"quantization_config": section})


def test_an_unquantised_config_names_no_format() -> None:
    assert quantization_config({}).scheme_of("model.layers.0.mlp.up_proj") is None


def test_names_win_over_classes_and_ignore_wins_over_all() -> None:
    config = parse(NVFP4_GROUP, FP8_GROUP, ignore=["lm_head", r"re:.*visual\..*"])
    assert config.scheme_of("model.layers.0.mlp.up_proj") is NVFP4
    assert config.scheme_of("model.embed") is FP8
    assert config.scheme_of("lm_head") is None
    assert config.scheme_of("model.visual.blocks.0.attn.qkv") is None


def test_patterns_are_anchored_at_the_start_only() -> None:
    config = parse({**NVFP4_GROUP, "targets": [r"re:model\.layers\.\d+\.mlp"]})
    assert config.scheme_of("model.layers.12.mlp.down_proj") is NVFP4
    assert config.scheme_of("other.model.layers.12.mlp.down_proj") is None
    assert config.scheme_of("model.layers.x.mlp") is None


def test_a_group_without_a_format_takes_the_config_s() -> None:
    group = {key: value for key, value in NVFP4_GROUP.items() if key != "format"}
    config = parse(group, format="nvfp4-pack-quantized")
    assert config.scheme_of("any") is NVFP4


def test_what_is_written_is_read_back() -> None:
    config = QuantizationConfig(
        groups=(
            TargetGroup(targets=("re:a.*",), scheme=NVFP4),
            TargetGroup(targets=("b",), scheme=FP8),
        ),
        ignore=("lm_head",),
    )
    written = config.to_json()
    assert written["format"] == "mixed-precision"
    assert quantization_config({"quantization_config": written}) == config


def test_what_is_written_is_what_compressed_tensors_understands() -> None:
    library = pytest.importorskip("compressed_tensors.quantization")
    config = QuantizationConfig(groups=(TargetGroup(targets=("re:a.*",), scheme=NVFP4),))
    theirs = library.QuantizationConfig.model_validate(config.to_json())
    group = theirs.config_groups["group_0"]
    assert group.targets == ["re:a.*"]
    assert group.weights.num_bits == 4 and group.weights.group_size == 16
    assert group.input_activations is None


@pytest.mark.parametrize("method", ["gptq", "modelopt", "fp8", None])
def test_another_method_is_refused(method: str | None) -> None:
    with pytest.raises(WeightsError, match=f"unknown quantization method: `{method}`"):
        parse(NVFP4_GROUP, quant_method=method)


@pytest.mark.parametrize("found", ["pack-quantized", "marlin-24", "mxfp4-pack-quantized"])
def test_another_format_is_refused(found: str) -> None:
    with pytest.raises(WeightsError, match=f"unknown quantization format in `group_0`: `{found}`"):
        parse({**NVFP4_GROUP, "format": found})


@pytest.mark.parametrize(
    ("key", "value"),
    [("num_bits", 8), ("group_size", 32), ("strategy", "group"), ("symmetric", False)],
)
def test_another_layout_of_a_known_format_is_refused(key: str, value: object) -> None:
    weights = {**NVFP4_GROUP["weights"], key: value}
    with pytest.raises(WeightsError, match=f"with {key} {value!r}"):
        parse({**NVFP4_GROUP, "weights": weights})


def test_fp8_by_squares_of_another_size_is_refused() -> None:
    weights = {**FP8_GROUP["weights"], "strategy": "block", "block_structure": [128, 128]}
    assert parse({**FP8_GROUP, "weights": weights}).groups[0].scheme is FP8
    weights["block_structure"] = [64, 64]
    with pytest.raises(WeightsError, match="block_structure"):
        parse({**FP8_GROUP, "weights": weights})
