"""Bytes and operations of a step, counted from the config and from how weights are stored.

Counts are of what must be done at least: every weight of the decoder and the head once a pass, the
committed keys and values, the recurrent states. Real implementations move more.
"""

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from ocria.bench.figures import StepBytes
from ocria.models.base import FOLD_BLOCK, StateLayout
from ocria.models.qwen3_5.config import Qwen35Config, VisionConfig
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES, canonical_name
from ocria.weights import CheckpointReader

_DECODER, _EMBEDDING, _HEAD = (
    "model.language_model.",
    "model.language_model.embed_tokens.",
    "lm_head.",
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Counter:
    """Counts for one model on one device.

    Attributes:
        config: sizes.
        layout: what a sequence keeps.
        dtype: of activations, and of weights that are not kept packed.
        cache_bytes: bytes of one number in the keys and values.
    """

    config: Qwen35Config
    layout: StateLayout
    dtype: torch.dtype
    cache_bytes: int

    def step_bytes(self, weights: int, mean_length: float, sequences: float) -> StepBytes:
        """Least bytes of a pass over some sequences of `mean_length` committed positions each."""
        layout = self.layout
        row = 2 * layout.num_attention_layers * layout.num_kv_heads * layout.head_dim
        heads = layout.num_delta_layers * layout.num_value_heads
        checkpoint = heads * layout.key_dim * layout.value_dim * 4
        # A block that is being filled holds half of its rows in the mean.
        ring_row = layout.num_delta_layers * layout.conv_channels * self.dtype.itemsize + heads * 8
        state = row * self.cache_bytes * mean_length + checkpoint + ring_row * FOLD_BLOCK // 2
        return StepBytes(weights=weights, state=round(state * sequences))

    def step_flops(self, rows: float, mean_length: float) -> float:
        """Operations of a pass of `rows` rows."""
        text = self.config.text
        attended = self.layout.num_attention_layers * text.num_attention_heads * text.head_dim
        return rows * (2 * self.num_weights + 4 * attended * mean_length)

    def prefill_flops(self, num_rows: int) -> float:
        """Operations of reading a prompt; the head runs on its last row alone."""
        text = self.config.text
        head = text.vocab_size * text.hidden_size
        attended = self.layout.num_attention_layers * text.num_attention_heads * text.head_dim
        return 2.0 * num_rows * (self.num_weights - head) + 2.0 * attended * num_rows**2 + 2 * head

    @property
    def num_weights(self) -> int:
        """Weights that a pass reads: layers and head, not the embedding's rows."""
        return sum(math.prod(shape) for _, shape in _read_in_a_pass(self.config))

    def weight_bytes(self) -> int:
        """Bytes of these weights as the reference path keeps them: all in `dtype`."""
        return sum(
            math.prod(shape)
            * (4 if name.rpartition(".")[2] in FLOAT32_NAMES else self.dtype.itemsize)
            for name, shape in _read_in_a_pass(self.config)
        )


def stored_weight_bytes(folder: Path, config: Qwen35Config) -> int:
    """Bytes of a pass's weights as the checkpoint stores them, scales included.

    Raises:
        WeightsError: the folder cannot be read.
    """
    total = 0
    for info in CheckpointReader(folder):
        name = canonical_name(info.name)
        is_table = name.startswith(_EMBEDDING)
        in_layers = name.startswith(_DECODER) and not is_table
        is_head = is_table if config.tie_word_embeddings else name.startswith(_HEAD)
        if in_layers or is_head:
            total += info.num_bytes
    return total


def vision_flops(vision: VisionConfig, num_patches: int) -> float:
    """Operations of the vision tower on one page: products, attention, merger."""
    width, inner = vision.hidden_size, vision.intermediate_size
    merged = width * vision.spatial_merge_size**2
    patch = vision.in_channels * vision.patch_size**2 * width
    block = 4 * width * width + 2 * width * inner
    merger = merged * merged + merged * vision.out_hidden_size
    products = patch + vision.depth * block + merger / vision.spatial_merge_size**2
    attention = vision.depth * 4 * width * num_patches**2
    return 2.0 * products * num_patches + attention


def parameter_shapes(config: Qwen35Config) -> Mapping[str, tuple[int, ...]]:
    """Shape of every tensor that the model of `config` is filled with."""
    with torch.device("meta"):
        model = Qwen35(config)
    return {name: tuple(value.shape) for name, value in model.state_dict().items()}


def _read_in_a_pass(config: Qwen35Config) -> Iterator[tuple[str, tuple[int, ...]]]:
    for name, shape in parameter_shapes(config).items():
        if name.startswith(_DECODER) and not name.startswith(_EMBEDDING):
            yield name, shape
    yield "head", (config.text.vocab_size, config.text.hidden_size)
