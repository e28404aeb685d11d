"""The hybrid text decoder: Gated DeltaNet layers with a full-attention layer every few.

Shape legend
    T  rows, D hidden size, I feed-forward width
"""

from collections.abc import Sequence
from functools import lru_cache

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ocria.models.base import Fold, Prompt
from ocria.models.layers.linear import TiledLinear, fuse
from ocria.models.layers.norm import ZeroCentredRMSNorm
from ocria.models.layers.rope import (
    Rotary,
    axis_of_frequency,
    mrope_frequencies,
    rotary_angles,
)
from ocria.models.layers.rowwise import by_rows
from ocria.models.layers.span import Pass
from ocria.models.qwen3_5.attention import GatedAttention
from ocria.models.qwen3_5.config import TextConfig
from ocria.models.qwen3_5.delta import DeltaMixer


class FeedForward(nn.Module):
    """down(SiLU(gate x) * up x)."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        hidden, inner = config.hidden_size, config.intermediate_size
        self.gate_proj = TiledLinear(hidden, inner)
        self.up_proj = TiledLinear(hidden, inner)
        self.down_proj = TiledLinear(inner, hidden)

    def prepare(self) -> None:
        self.gate_up_proj = fuse(self.gate_proj, self.up_proj)
        del self.gate_proj, self.up_proj
        self.gate_up_proj.pack()
        self.down_proj.pack()

    def forward(self, x_TD: Tensor) -> Tensor:
        gate_TI, up_TI = self.gate_up_proj(x_TD).chunk(2, -1)
        return self.down_proj(by_rows(F.silu, gate_TI) * up_TI)


class DecoderLayer(nn.Module):
    """x + mixer(norm x), then x + feed-forward(norm x)."""

    def __init__(self, config: TextConfig, layer: int) -> None:
        super().__init__()
        self.kind = config.layer_types[layer]
        index = config.layer_types[:layer].count(self.kind)
        self.input_layernorm = ZeroCentredRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = ZeroCentredRMSNorm(config.hidden_size, config.rms_norm_eps)
        if self.kind == "full_attention":
            self.self_attn = GatedAttention(config, index)
        else:
            self.linear_attn = DeltaMixer(config, index)
        self.mlp = FeedForward(config)

    def fold(self, folds: Sequence[Fold]) -> None:
        if self.kind == "linear_attention":
            self.linear_attn.fold(folds)

    def forward(self, x_TD: Tensor, rows: Pass) -> Tensor:
        normed_TD = self.input_layernorm(x_TD)
        if self.kind == "full_attention":
            x_TD = x_TD + self.self_attn(normed_TD, rows)
        else:
            x_TD = x_TD + self.linear_attn(normed_TD, rows)
        return x_TD + self.mlp(self.post_attention_layernorm(x_TD))


class Decoder(nn.Module):
    """Embedding, layers and final norm. Names follow the checkpoint's `language_model.*`."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        table = torch.empty(config.vocab_size, config.hidden_size)
        self.embed_tokens = nn.Embedding.from_pretrained(table)
        self.layers = nn.ModuleList(
            DecoderLayer(config, layer) for layer in range(config.num_hidden_layers)
        )
        self.norm = ZeroCentredRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.rotary_width = round(config.head_dim * config.rope.partial_rotary_factor)
        self._frequencies = (config.rope.theta, config.rope.mrope_section)

    def prepare(self) -> None:
        device = self.embed_tokens.weight.device
        theta, section = self._frequencies
        self.frequencies_F = mrope_frequencies(self.rotary_width, theta).to(device)
        self.axis_F = axis_of_frequency(self.rotary_width // 2, section).to(device)
        for module in list(self.modules()):
            if isinstance(module, DeltaMixer | GatedAttention | FeedForward | ZeroCentredRMSNorm):
                module.prepare()

    def rotary(self, positions_3T: Tensor) -> Rotary:
        """Angles of rotary positions [3, T]."""
        return rotary_angles(positions_3T, self.frequencies_F, self.axis_F)

    def forward(self, x_TD: Tensor, rows: Pass) -> Tensor:
        """Runs the embedded rows of a pass; normed hidden states [T, D]."""
        return self.tapped(x_TD, rows, ())[0]

    def tapped(
        self, x_TD: Tensor, rows: Pass, tap_layers: Sequence[int]
    ) -> tuple[Tensor, list[Tensor]]:
        """Like `forward`; also the residual stream [T, D] after each of some layers."""
        streams: dict[int, Tensor] = {}
        for index, layer in enumerate(self.layers):
            x_TD = layer(x_TD, rows)
            if index in tap_layers:
                streams[index] = x_TD
        return self.norm(x_TD), [streams[index] for index in tap_layers]

    def fold(self, folds: Sequence[Fold]) -> None:
        for layer in self.layers:
            assert isinstance(layer, DecoderLayer)
            layer.fold(folds)


@lru_cache(maxsize=16)
def prompt_positions(length: int, image_start: int, grid_h: int, grid_w: int) -> Tensor:
    """Rotary positions [3, length] (time, height, width) of a prompt with one image or none.

    Pages of one shape share the tensor: it is not to be written to. Image token (row, column)
    stands at (p, p + row, p + column) for an image that starts at p; text goes on at
    p + max(grid_h, grid_w).
    """
    positions = torch.arange(length).repeat(3, 1)
    if image_start < 0:
        return positions
    num_image = grid_h * grid_w
    end = image_start + num_image
    image = slice(image_start, end)
    positions[0, image] = image_start
    positions[1, image] = image_start + torch.arange(grid_h).repeat_interleave(grid_w)
    positions[2, image] = image_start + torch.arange(grid_w).repeat(grid_h)
    positions[:, end:] = image_start + max(grid_h, grid_w) + torch.arange(length - end)
    return positions


def rope_delta(prompt: Prompt) -> int:
    """What is added to a position behind the prompt to get its rotary position."""
    return max(prompt.grid_h, prompt.grid_w) - prompt.grid_h * prompt.grid_w
