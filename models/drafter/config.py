"""Sizes of a DFlash drafter, read from the `config.json` of a public checkpoint.

Source: the `DFlashDraftModel` (first generation, Chen et al., arXiv 2602.06036) and
`DFlash2DraftModel` configs as published; both generations share every key but the second's own.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ocria.errors import WeightsError

GENERATIONS = {"DFlashDraftModel": 1, "DFlash2DraftModel": 2}


@dataclass(frozen=True, kw_only=True, slots=True)
class ConvConfig:
    """Dynamic convolutions around each sublayer: rows that one mixes, channels of a group."""

    kernel_size: int
    group_size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SelectorConfig:
    """Path selector: width of the codebooks, and candidates at each place."""

    rank: int
    top_k: int


@dataclass(frozen=True, kw_only=True, slots=True)
class LayerConfig:
    """What a draft layer's rows may see.

    Attributes:
        window: positions less than this far away; None sees all.
        is_causal: a row of the block does not see the rows behind it.
    """

    window: int | None
    is_causal: bool


@dataclass(frozen=True, kw_only=True, slots=True)
class DrafterConfig:
    """A whole drafter.

    Attributes:
        hidden_size: also the width of the target's hidden states: embedding and head are its own.
        layers: one entry a draft layer.
        target_layer_ids: the target's layers whose output is tapped, counted from 0.
        num_target_layers: depth of the target it was made for; None where the config is silent.
        mask_token_id: row of the target's embedding that stands for a token to be proposed.
        block_size: rows of a block: the last token and the proposals.
        conv: None in the first generation; likewise `selector`.
        output_multiplier: of the head's output, before `softcap`; matters to the selector alone.
        softcap: bound of the logits, c * tanh(x / c); None leaves them.
        embedding_scale: of the block's embedded rows.
    """

    hidden_size: int
    intermediate_size: int
    num_attention_heads: int
    num_key_value_heads: int
    head_dim: int
    vocab_size: int
    rms_norm_eps: float
    rope_theta: float
    layers: tuple[LayerConfig, ...]
    target_layer_ids: tuple[int, ...]
    num_target_layers: int | None
    mask_token_id: int
    block_size: int
    conv: ConvConfig | None = None
    selector: SelectorConfig | None = None
    output_multiplier: float = 1.0
    softcap: float | None = None
    embedding_scale: float = 1.0

    @property
    def generation(self) -> int:
        """1, or 2 with convolutions and selector."""
        return 1 if self.conv is None else 2

    @classmethod
    def from_mapping(cls, config: Mapping[str, Any]) -> "DrafterConfig":
        """From parsed JSON.

        Raises:
            WeightsError: another architecture, or a value missing or impossible (the message names
                the key).
        """
        generation = _generation(config)
        own = config.get("dflash_config") or {}
        keys = _Keys({**config, **own})
        _insist_plain(keys)
        drafter = cls(
            hidden_size=keys.integer("hidden_size"),
            intermediate_size=keys.integer("intermediate_size"),
            num_attention_heads=keys.integer("num_attention_heads"),
            num_key_value_heads=keys.integer("num_key_value_heads"),
            head_dim=keys.integer("head_dim"),
            vocab_size=keys.integer("vocab_size"),
            rms_norm_eps=keys.number("rms_norm_eps", 1e-6),
            rope_theta=_rope_theta(config),
            layers=_layers(config, own, keys),
            target_layer_ids=keys.integers("target_layer_ids"),
            num_target_layers=keys.optional_integer("num_target_layers"),
            mask_token_id=keys.integer("mask_token_id", least=0),
            block_size=keys.integer("block_size", least=2),
            conv=_conv(keys) if generation == 2 else None,
            selector=_selector(keys) if generation == 2 else None,
            output_multiplier=keys.number("output_multiplier", 1.0),
            softcap=keys.number("final_logit_softcapping", 0.0) or None,
            embedding_scale=keys.number("input_embedding_scale", 1.0),
        )
        _check_sizes(drafter)
        return drafter


class _Keys:
    """Values of a config by name, checked."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def get(self, key: str) -> Any:
        return self.values.get(key)

    def integer(self, key: str, *, least: int = 1) -> int:
        value = self.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or value < least:
            raise WeightsError(
                f"the drafter's config.json: `{key}` must be a whole number from {least} on, "
                f"not {value!r}"
            )
        return value

    def optional_integer(self, key: str) -> int | None:
        return None if self.get(key) is None else self.integer(key)

    def integers(self, key: str) -> tuple[int, ...]:
        value = self.get(key)
        if not isinstance(value, list) or not value or not all(type(n) is int for n in value):
            raise WeightsError(f"the drafter's config.json: `{key}` must list whole numbers")
        return tuple(value)

    def number(self, key: str, default: float) -> float:
        value = self.get(key)
        if value is None:
            return default
        if not isinstance(value, int | float) or isinstance(value, bool) or value <= 0:
            raise WeightsError(
                f"the drafter's config.json: `{key}` must be a positive number, not {value!r}"
            )
        return float(value)


def _generation(config: Mapping[str, Any]) -> int:
    named = config.get("architectures") or ["none"]
    if named[0] not in GENERATIONS:
        raise WeightsError(
            f"unknown drafter architecture: `{named[0]}`",
            hint=f"DFlash drafters are {' or '.join(GENERATIONS)}",
        )
    return GENERATIONS[named[0]]


def _insist_plain(keys: _Keys) -> None:
    """Refuses what would load and draft nonsense."""
    for key, expected in (("hidden_act", "silu"), ("attention_bias", False)):
        found = keys.get(key)
        if found is not None and found != expected:
            raise WeightsError(f"the drafter's config.json: `{key}` is {found!r}, not {expected!r}")


def _rope_theta(config: Mapping[str, Any]) -> float:
    """The whole head turns; a target's partial or multimodal rotation is never inherited."""
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if rope.get("rope_type", rope.get("type", "default")) != "default":
        raise WeightsError("the drafter's config.json: only plain rotary positions are supported")
    return _Keys({**config, **rope}).number("rope_theta", 10_000.0)


def _layers(
    config: Mapping[str, Any], own: Mapping[str, Any], keys: _Keys
) -> tuple[LayerConfig, ...]:
    """Windows, and causality: `is_causal`, else `dflash_config.causal`, else sliding layers are."""
    count = keys.integer("num_hidden_layers")
    kinds = config.get("layer_types") or ["full_attention"] * count
    if len(kinds) != count or not set(kinds) <= {"full_attention", "sliding_attention"}:
        raise WeightsError(
            f"the drafter's config.json: `layer_types` must name {count} layers, each "
            "full_attention or sliding_attention"
        )
    told = config.get("is_causal")
    told = own.get("causal") if told is None else told
    layers = []
    for kind in kinds:
        slides = kind == "sliding_attention"
        window = keys.integer("sliding_window") if slides else None
        causal = slides if told is None else bool(told)
        layers.append(LayerConfig(window=window, is_causal=causal))
    return tuple(layers)


def _conv(keys: _Keys) -> ConvConfig:
    return ConvConfig(
        kernel_size=keys.integer("conv_kernel_size"), group_size=keys.integer("conv_group_size")
    )


def _selector(keys: _Keys) -> SelectorConfig:
    return SelectorConfig(rank=keys.integer("selector_rank"), top_k=keys.integer("selector_top_k"))


def _check_sizes(config: DrafterConfig) -> None:
    if config.num_attention_heads % config.num_key_value_heads:
        raise WeightsError(
            "the drafter's config.json: `num_attention_heads` must be a multiple of "
            "`num_key_value_heads`"
        )
    if config.head_dim % 2:
        raise WeightsError("the drafter's config.json: `head_dim` must be even")
    if config.conv is not None and config.hidden_size % config.conv.group_size:
        raise WeightsError("the drafter's config.json: `conv_group_size` must divide `hidden_size`")
    if config.selector is not None and config.selector.top_k > config.vocab_size:
        raise WeightsError("the drafter's config.json: `selector_top_k` exceeds the vocabulary")
