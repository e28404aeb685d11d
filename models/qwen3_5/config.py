"""Sizes of a qwen3_5 model, read from a Hugging Face `config.json`; nothing is guessed from names.

Source: specification of the architecture as `transformers` 5.24 implements it (qwen3_5).
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, get_args

from ocria.errors import WeightsError

ARCHITECTURE = "qwen3_5"
LayerType = Literal["linear_attention", "full_attention"]


@dataclass(frozen=True, kw_only=True, slots=True)
class VisionConfig:
    """Sizes of the vision tower.

    `num_position_embeddings` is the square of the learned position table's side;
    `out_hidden_size` is the decoder's width.
    """

    depth: int
    hidden_size: int
    num_heads: int
    intermediate_size: int
    patch_size: int
    temporal_patch_size: int
    spatial_merge_size: int
    in_channels: int
    num_position_embeddings: int
    out_hidden_size: int
    rope_theta: float

    @property
    def head_dim(self) -> int:
        """Channels of one attention head."""
        return self.hidden_size // self.num_heads

    @property
    def position_side(self) -> int:
        """Rows (and columns) of the learned position table."""
        return round(self.num_position_embeddings**0.5)


@dataclass(frozen=True, kw_only=True, slots=True)
class RopeConfig:
    """Rotary positions of full attention.

    `mrope_section` counts the frequencies that follow the temporal, row and column axis;
    `partial_rotary_factor` is the part of `head_dim` that turns.
    """

    theta: float
    partial_rotary_factor: float
    mrope_section: tuple[int, int, int]


@dataclass(frozen=True, kw_only=True, slots=True)
class TextConfig:
    """Sizes of the hybrid decoder; `layer_types` names the mixer of each layer."""

    vocab_size: int
    hidden_size: int
    intermediate_size: int
    layer_types: tuple[LayerType, ...]
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    linear_num_key_heads: int
    linear_num_value_heads: int
    linear_key_head_dim: int
    linear_value_head_dim: int
    linear_conv_kernel_dim: int
    rms_norm_eps: float
    max_position_embeddings: int
    rope: RopeConfig

    @property
    def num_hidden_layers(self) -> int:
        """Layers of the decoder."""
        return len(self.layer_types)


@dataclass(frozen=True, kw_only=True, slots=True)
class Qwen35Config:
    """A whole model. The ids are the config's own claim; the tokenizer has the last word."""

    text: TextConfig
    vision: VisionConfig
    tie_word_embeddings: bool
    image_token_id: int
    video_token_id: int | None
    vision_start_token_id: int
    vision_end_token_id: int
    eos_token_ids: tuple[int, ...]

    @classmethod
    def from_folder(cls, folder: Path) -> "Qwen35Config":
        """Reads `folder/config.json`.

        Raises:
            WeightsError: no such file, not JSON, another architecture, or a value missing or
                impossible (the message names the key).
        """
        return cls.from_mapping(read_config(folder))

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any]) -> "Qwen35Config":
        """The same, from parsed JSON."""
        try:
            return cls._understood(_Section(config, "config.json"))
        except (TypeError, ValueError, ArithmeticError, AttributeError) as error:
            # Lists where numbers belong, and whatever else JSON can hold.
            raise WeightsError(f"config.json cannot be understood: {error}") from error

    @classmethod
    def _understood(cls, top: "_Section") -> "Qwen35Config":
        _check_architecture(top)
        text, vision = top.section("text_config"), top.section("vision_config")
        _check_model_type(text, {"qwen3_5_text"})
        # Checkpoints of early 2026 call the vision part by the whole model's name.
        _check_model_type(vision, {"qwen3_5_vision", ARCHITECTURE})
        tied = top.get("tie_word_embeddings", text.get("tie_word_embeddings", False))
        return cls(
            text=_text_config(text),
            vision=_vision_config(vision),
            tie_word_embeddings=bool(tied),
            image_token_id=top.integer("image_token_id"),
            video_token_id=top.optional("video_token_id"),
            vision_start_token_id=top.integer("vision_start_token_id"),
            vision_end_token_id=top.integer("vision_end_token_id"),
            eos_token_ids=id_tuple(top.get("eos_token_id", text.get("eos_token_id", None))),
        )


def read_config(folder: Path) -> dict[str, Any]:
    """`folder/config.json` as parsed JSON.

    Raises:
        WeightsError: missing, unreadable, or not a JSON object.
    """
    path = folder / "config.json"
    hint = "a checkpoint folder holds config.json, tokenizer.json and *.safetensors"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise WeightsError(f"cannot read the model's config: {path}", hint=hint) from error
    except ValueError as error:
        raise WeightsError(f"not JSON: {path} ({error})", hint=hint) from error
    if not isinstance(config, dict):
        raise WeightsError(f"not a JSON object: {path}", hint=hint)
    return config


def id_tuple(value: object) -> tuple[int, ...]:
    """Token ids of an `eos_token_id` that may be one id, a list, or absent.

    Raises:
        WeightsError: it is something else.
    """
    if value is None:
        return ()
    ids = tuple(value) if isinstance(value, list) else (value,)
    if not all(isinstance(i, int) and not isinstance(i, bool) for i in ids):
        raise WeightsError(f"`eos_token_id` must be a token id or a list of such, not {value!r}")
    return ids


class _Section:
    """One JSON object and the name by which an error message calls it."""

    def __init__(self, values: Mapping[str, Any], name: str) -> None:
        self.values, self.name = values, name

    def get(self, key: str, default: Any) -> Any:
        value = self.values.get(key)
        return default if value is None else value

    def _required(self, key: str) -> Any:
        value = self.values.get(key)
        if value is None:
            raise WeightsError(f"{self.name} lacks `{key}`")
        return value

    def section(self, key: str) -> "_Section":
        value = self._required(key)
        if not isinstance(value, dict):
            raise WeightsError(f"{self.name}: `{key}` must be an object")
        return _Section(value, f"{self.name} {key}")

    def integer(self, key: str, default: int | None = None) -> int:
        value = self._required(key) if default is None else self.get(key, default)
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise WeightsError(f"{self.name}: `{key}` must be a whole number, not {value!r}")
        return value

    def optional(self, key: str) -> int | None:
        return None if self.values.get(key) is None else self.integer(key)

    def count(self, key: str, default: int | None = None) -> int:
        value = self.integer(key, default)
        if value == 0:
            raise WeightsError(f"{self.name}: `{key}` must not be 0")
        return value

    def number(self, key: str, default: float) -> float:
        value = self.get(key, default)
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise WeightsError(f"{self.name}: `{key}` must be a positive number, not {value!r}")
        return float(value)

    def insist(self, key: str, expected: object) -> None:
        """A value that this implementation does not vary; absent means the usual one."""
        value = self.get(key, expected)
        if value != expected:
            raise WeightsError(f"{self.name}: `{key}` is {value!r}, only {expected!r} is supported")


def _check_architecture(top: _Section) -> None:
    found = top.get("model_type", "none")
    if found != ARCHITECTURE:
        raise WeightsError(
            f"unknown architecture: `{found}`",
            hint=f"this program runs `{ARCHITECTURE}` checkpoints; `ocria models` lists them",
        )


def _check_model_type(section: _Section, accepted: set[str]) -> None:
    found = section.get("model_type", next(iter(accepted)))
    if found not in accepted:
        raise WeightsError(f"{section.name}: unknown model_type `{found}`")


def _vision_config(section: _Section) -> VisionConfig:
    section.insist("hidden_act", "gelu_pytorch_tanh")
    section.insist("deepstack_visual_indexes", [])
    rope = _Section(section.get("rope_parameters", {}), f"{section.name} rope_parameters")
    config = VisionConfig(
        depth=section.count("depth"),
        hidden_size=section.count("hidden_size"),
        num_heads=section.count("num_heads"),
        intermediate_size=section.count("intermediate_size"),
        patch_size=section.count("patch_size"),
        temporal_patch_size=section.count("temporal_patch_size", 2),
        spatial_merge_size=section.count("spatial_merge_size", 2),
        in_channels=section.count("in_channels", 3),
        num_position_embeddings=section.count("num_position_embeddings"),
        out_hidden_size=section.count("out_hidden_size"),
        rope_theta=rope.number("rope_theta", 10_000.0),
    )
    if config.num_heads == 0 or config.head_dim % 4 or config.hidden_size % config.num_heads:
        raise WeightsError(
            f"{section.name}: {config.hidden_size} channels do not divide into "
            f"{config.num_heads} heads of a multiple of 4"
        )
    if config.position_side**2 != config.num_position_embeddings:
        raise WeightsError(f"{section.name}: `num_position_embeddings` is not a square")
    return config


def _text_config(section: _Section) -> TextConfig:
    section.insist("hidden_act", "silu")
    section.insist("attention_bias", False)
    section.insist("attn_output_gate", True)
    section.insist("mamba_ssm_dtype", "float32")
    config = TextConfig(
        vocab_size=section.count("vocab_size"),
        hidden_size=section.count("hidden_size"),
        intermediate_size=section.count("intermediate_size"),
        layer_types=_layer_types(section),
        num_attention_heads=section.count("num_attention_heads"),
        num_key_value_heads=section.count("num_key_value_heads"),
        head_dim=section.count("head_dim"),
        linear_num_key_heads=section.count("linear_num_key_heads"),
        linear_num_value_heads=section.count("linear_num_value_heads"),
        linear_key_head_dim=section.count("linear_key_head_dim"),
        linear_value_head_dim=section.count("linear_value_head_dim"),
        linear_conv_kernel_dim=section.count("linear_conv_kernel_dim"),
        rms_norm_eps=section.number("rms_norm_eps", 1e-6),
        max_position_embeddings=section.count("max_position_embeddings"),
        rope=_rope_config(section),
    )
    for many, few in (
        ("num_attention_heads", "num_key_value_heads"),
        ("linear_num_value_heads", "linear_num_key_heads"),
    ):
        if getattr(config, few) == 0 or getattr(config, many) % getattr(config, few):
            raise WeightsError(f"{section.name}: `{many}` must be a multiple of `{few}`")
    return config


def _layer_types(section: _Section) -> tuple[LayerType, ...]:
    num_layers = section.count("num_hidden_layers")
    listed = section.get("layer_types", None)
    if listed is None:
        interval = section.count("full_attention_interval", 4)
        return tuple(
            "linear_attention" if (i + 1) % interval else "full_attention"
            for i in range(num_layers)
        )
    if len(listed) != num_layers or not set(listed) <= set(get_args(LayerType)):
        raise WeightsError(
            f"{section.name}: `layer_types` must name {num_layers} layers, each one of "
            f"{', '.join(get_args(LayerType))}"
        )
    return tuple(listed)


def _rope_config(section: _Section) -> RopeConfig:
    # Before rope_parameters, theta stood flat and the rest under rope_scaling.
    nested = section.get("rope_parameters", section.get("rope_scaling", {}))
    rope = _Section({**section.values, **nested}, f"{section.name} rope_parameters")
    rope.insist("rope_type", "default")
    rope.insist("mrope_interleaved", True)
    sections = tuple(rope.get("mrope_section", (11, 11, 10)))
    config = RopeConfig(
        theta=rope.number("rope_theta", 10_000_000.0),
        partial_rotary_factor=rope.number("partial_rotary_factor", 0.25),
        mrope_section=sections,
    )
    turned = round(section.count("head_dim") * config.partial_rotary_factor)
    if len(sections) != 3 or sum(sections) * 2 != turned:
        raise WeightsError(
            f"{rope.name}: `mrope_section` {list(sections)} must have three parts that sum to "
            f"half of the {turned} rotary channels"
        )
    return config
