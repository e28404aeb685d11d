"""config.json: every value is read, and what cannot be run is refused by name."""

import json
from pathlib import Path
from typing import Any

import pytest

from ocria.errors import WeightsError
from ocria.models.qwen3_5.config import Qwen35Config


def settings() -> dict[str, Any]:
    return {
        "model_type": "qwen3_5",
        "tie_word_embeddings": False,
        "image_token_id": 90,
        "video_token_id": 91,
        "vision_start_token_id": 2,
        "vision_end_token_id": 3,
        "text_config": {
            "model_type": "qwen3_5_text",
            "vocab_size": 96,
            "hidden_size": 48,
            "intermediate_size": 80,
            "num_hidden_layers": 5,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "head_dim": 32,
            "linear_num_key_heads": 2,
            "linear_num_value_heads": 4,
            "linear_key_head_dim": 16,
            "linear_value_head_dim": 24,
            "linear_conv_kernel_dim": 4,
            "full_attention_interval": 2,
            "rms_norm_eps": 1e-5,
            "max_position_embeddings": 512,
            "eos_token_id": [1, 7],
            "rope_parameters": {
                "rope_type": "default",
                "rope_theta": 5e5,
                "partial_rotary_factor": 0.5,
                "mrope_section": [3, 3, 2],
                "mrope_interleaved": True,
            },
        },
        "vision_config": {
            "model_type": "qwen3_5_vision",
            "depth": 2,
            "hidden_size": 64,
            "num_heads": 4,
            "intermediate_size": 96,
            "patch_size": 14,
            "temporal_patch_size": 2,
            "spatial_merge_size": 2,
            "out_hidden_size": 48,
            "num_position_embeddings": 49,
            "in_channels": 3,
            "hidden_act": "gelu_pytorch_tanh",
        },
    }


def test_every_value_is_read() -> None:
    config = Qwen35Config.from_mapping(settings())
    assert config.text.layer_types == (
        *("linear_attention", "full_attention") * 2,
        "linear_attention",
    )
    assert config.text.num_hidden_layers == 5
    assert (config.text.rope.theta, config.text.rope.partial_rotary_factor) == (5e5, 0.5)
    assert config.text.rope.mrope_section == (3, 3, 2)
    assert config.text.rms_norm_eps == 1e-5
    assert (config.vision.position_side, config.vision.head_dim) == (7, 16)
    assert config.vision.patch_size == 14
    assert config.eos_token_ids == (1, 7)
    assert not config.tie_word_embeddings


def test_every_number_in_the_file_matters() -> None:
    plain = Qwen35Config.from_mapping(settings())
    for part in ("text_config", "vision_config"):
        for key, value in settings()[part].items():
            if not isinstance(value, int) or key in ("num_attention_heads", "num_heads"):
                continue
            changed = settings()
            step = {"num_position_embeddings": 15, "head_dim": 1, "num_key_value_heads": 2}
            changed[part][key] = value + step.get(key, value)
            if key == "head_dim":
                continue
            assert Qwen35Config.from_mapping(changed) != plain, key


def test_explicit_layers_win_over_the_interval() -> None:
    changed = settings()
    changed["text_config"]["layer_types"] = ["full_attention", *["linear_attention"] * 4]
    config = Qwen35Config.from_mapping(changed)
    assert config.text.layer_types[0] == "full_attention"
    assert config.text.layer_types.count("full_attention") == 1


def test_the_older_name_of_the_vision_part_is_accepted() -> None:
    changed = settings()
    changed["vision_config"]["model_type"] = "qwen3_5"
    assert Qwen35Config.from_mapping(changed) == Qwen35Config.from_mapping(settings())


def test_flat_rope_values_are_read_too() -> None:
    changed = settings()
    nested = changed["text_config"].pop("rope_parameters")
    changed["text_config"] |= {key: nested[key] for key in ("rope_theta", "partial_rotary_factor")}
    changed["text_config"]["rope_scaling"] = {
        "mrope_section": [3, 3, 2],
        "mrope_interleaved": True,
        "rope_type": "default",
    }
    assert Qwen35Config.from_mapping(changed) == Qwen35Config.from_mapping(settings())


def test_a_head_may_be_tied_at_either_level() -> None:
    changed = settings()
    del changed["tie_word_embeddings"]
    assert not Qwen35Config.from_mapping(changed).tie_word_embeddings
    changed["text_config"]["tie_word_embeddings"] = True
    assert Qwen35Config.from_mapping(changed).tie_word_embeddings


@pytest.mark.parametrize("found", ["qwen4_exp", "llama", "qwen3_5_moe", None])
def test_another_architecture_is_refused(found: str | None) -> None:
    changed = {**settings(), "model_type": found}
    with pytest.raises(WeightsError, match="unknown architecture"):
        Qwen35Config.from_mapping(changed)


@pytest.mark.parametrize("part", ["text_config", "vision_config"])
def test_another_part_is_refused(part: str) -> None:
    changed = settings()
    changed[part]["model_type"] = "siglip"
    with pytest.raises(WeightsError, match=f"{part}: unknown model_type `siglip`"):
        Qwen35Config.from_mapping(changed)


@pytest.mark.parametrize(
    ("part", "key"),
    [
        ("text_config", "hidden_size"),
        ("text_config", "num_hidden_layers"),
        ("text_config", "linear_conv_kernel_dim"),
        ("vision_config", "depth"),
        ("vision_config", "num_position_embeddings"),
    ],
)
def test_a_missing_value_is_named(part: str, key: str) -> None:
    changed = settings()
    del changed[part][key]
    with pytest.raises(WeightsError, match=f"{part} lacks `{key}`"):
        Qwen35Config.from_mapping(changed)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("text_config", "hidden_size", "48"),
        ("text_config", "hidden_size", -1),
        ("text_config", "attention_bias", True),
        ("text_config", "hidden_act", "gelu"),
        ("text_config", "mamba_ssm_dtype", "bfloat16"),
        ("text_config", "num_key_value_heads", 3),
        ("text_config", "layer_types", ["full_attention"]),
        ("text_config", "layer_types", ["sliding_attention"] * 5),
        ("text_config", "rms_norm_eps", "small"),
        ("vision_config", "num_heads", 5),
        ("vision_config", "num_position_embeddings", 50),
        ("vision_config", "deepstack_visual_indexes", [1]),
    ],
)
def test_what_cannot_be_run_is_refused(part: str, key: str, value: object) -> None:
    changed = settings()
    changed[part][key] = value
    with pytest.raises(WeightsError, match=part):
        Qwen35Config.from_mapping(changed)


@pytest.mark.parametrize(
    ("part", "key", "value"),
    [
        ("text_config", "rope_parameters", [1]),
        ("text_config", "rope_parameters", {"mrope_section": 3}),
        ("text_config", "rope_parameters", {"mrope_section": ["a", "b", "c"]}),
        ("text_config", "layer_types", 4),
        ("text_config", "layer_types", [{}] * 5),
        ("text_config", "full_attention_interval", 0),
        ("text_config", "hidden_size", 0),
        ("text_config", "model_type", ["qwen3_5_text"]),
        ("text_config", "eos_token_id", {"a": 1}),
        ("vision_config", "patch_size", 0),
        ("vision_config", "rope_parameters", 7),
        (None, "video_token_id", "x"),
        (None, "text_config", [1]),
    ],
)
def test_what_no_config_holds_is_refused(part: str | None, key: str, value: object) -> None:
    changed = settings()
    (changed[part] if part else changed)[key] = value
    with pytest.raises(WeightsError):
        Qwen35Config.from_mapping(changed)


def test_rotary_sections_must_fill_the_turned_channels() -> None:
    changed = settings()
    changed["text_config"]["rope_parameters"]["mrope_section"] = [11, 11, 10]
    with pytest.raises(WeightsError, match="mrope_section"):
        Qwen35Config.from_mapping(changed)


@pytest.mark.parametrize(("content", "message"), [("{", "not JSON"), ("[]", "not a JSON object")])
def test_a_file_that_is_no_config_is_refused(tmp_path: Path, content: str, message: str) -> None:
    (tmp_path / "config.json").write_text(content)
    with pytest.raises(WeightsError, match=message):
        Qwen35Config.from_folder(tmp_path)


def test_a_folder_without_config_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="cannot read the model's config"):
        Qwen35Config.from_folder(tmp_path)


def test_a_file_is_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps(settings()))
    assert Qwen35Config.from_folder(tmp_path) == Qwen35Config.from_mapping(settings())
