"""The head for multi-token prediction that some checkpoints carry: one decoder layer that drafts.

    x_i = fc([norm_e(embed(t_{i+1})) ; norm_h(h_i)])   embedding first
    y_i = norm(layer(x_i))                             full attention, own keys and values
    draft of t_{i+2} = argmax head(y_i); further drafts feed y back as h

h_i is the target's hidden row behind its final norm. Only the drafts depend on this arithmetic, so
it is free of the canonical rules of the target.

Source: architecture specification of qwen3_5, MTP head.

Shape legend
    T  rows, D hidden size, H query heads, J key-value heads, F head width, S positions
"""

from typing import Protocol

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ocria.errors import WeightsError
from ocria.models.base import KEY_BLOCK
from ocria.models.layers.linear import TiledLinear
from ocria.models.layers.norm import ZeroCentredRMSNorm
from ocria.models.layers.rope import (
    Rotary,
    axis_of_frequency,
    mrope_frequencies,
    rotary_angles,
    rotate,
)
from ocria.models.qwen3_5.config import TextConfig
from ocria.weights import TensorSource, assign

PREFIX = "mtp."
_FINAL_NORM = "model.language_model.norm.weight"


class MtpHost(Protocol):
    """What the head borrows from its target."""

    device: torch.device
    dtype: torch.dtype
    num_layers: int
    tap_layers: tuple[int, ...]

    def embed(self, ids_T: Tensor) -> Tensor:
        """Embedding rows [T, D]."""
        ...

    def head(self, hidden_TD: Tensor) -> Tensor:
        """Logits [T, V] of normed rows."""
        ...


class MtpCache:
    """Keys and values of one sequence, by row; grows as the page grows."""

    def __init__(self) -> None:
        self.length = 0
        self._kept_2JSF: Tensor | None = None

    def extend(self, keys_JTF: Tensor, values_JTF: Tensor) -> tuple[Tensor, Tensor]:
        """Writes rows behind `length` without counting them; all keys and values up to them."""
        new_2JTF = torch.stack([keys_JTF, values_JTF])
        end = self.length + new_2JTF.shape[2]
        kept = self._kept_2JSF
        if kept is None or kept.shape[2] < end:
            room = -(-(end + end // 2) // KEY_BLOCK) * KEY_BLOCK
            grown = new_2JTF.new_zeros(2, new_2JTF.shape[1], room, new_2JTF.shape[3])
            if kept is not None:
                grown[:, :, : self.length] = kept[:, :, : self.length]
            self._kept_2JSF = kept = grown
        kept[:, :, self.length : end] = new_2JTF
        return kept[0, :, :end], kept[1, :, :end]


class _Attention(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.num_heads = config.num_attention_heads
        self.num_kv_heads = config.num_key_value_heads
        self.width = config.head_dim
        hidden, kv = config.hidden_size, self.num_kv_heads * self.width
        self.q_proj = TiledLinear(hidden, self.num_heads * 2 * self.width)
        self.k_proj = TiledLinear(hidden, kv)
        self.v_proj = TiledLinear(hidden, kv)
        self.o_proj = TiledLinear(self.num_heads * self.width, hidden)
        self.q_norm = ZeroCentredRMSNorm(self.width, config.rms_norm_eps)
        self.k_norm = ZeroCentredRMSNorm(self.width, config.rms_norm_eps)

    def forward(self, x_TD: Tensor, rotary: Rotary, cache: MtpCache) -> Tensor:
        heads = (self.num_heads, 2 * self.width)
        q_THF, gate_THF = self.q_proj(x_TD).unflatten(-1, heads).chunk(2, -1)
        k_TJF = self.k_proj(x_TD).unflatten(-1, (self.num_kv_heads, self.width))
        v_TJF = self.v_proj(x_TD).unflatten(-1, (self.num_kv_heads, self.width))
        q_THF, k_TJF = rotate(self.q_norm(q_THF), rotary), rotate(self.k_norm(k_TJF), rotary)
        keys_JSF, values_JSF = cache.extend(k_TJF.transpose(0, 1), v_TJF.transpose(0, 1))
        num_rows, num_keys = x_TD.shape[0], keys_JSF.shape[1]
        seen_TS = torch.ones(num_rows, num_keys, dtype=torch.bool, device=x_TD.device)
        out_HTF = F.scaled_dot_product_attention(
            q_THF.transpose(0, 1)[None],
            keys_JSF[None],
            values_JSF[None],
            attn_mask=seen_TS.tril(num_keys - num_rows),
            enable_gqa=True,
        )[0]
        gated_THF = out_HTF.transpose(0, 1) * torch.sigmoid(gate_THF)
        return self.o_proj(gated_THF.flatten(1))


class _FeedForward(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.gate_proj = TiledLinear(config.hidden_size, config.intermediate_size)
        self.up_proj = TiledLinear(config.hidden_size, config.intermediate_size)
        self.down_proj = TiledLinear(config.intermediate_size, config.hidden_size)

    def forward(self, x_TD: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x_TD)) * self.up_proj(x_TD))


class _Layer(nn.Module):
    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        self.input_layernorm = ZeroCentredRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.post_attention_layernorm = ZeroCentredRMSNorm(config.hidden_size, config.rms_norm_eps)
        self.self_attn = _Attention(config)
        self.mlp = _FeedForward(config)

    def forward(self, x_TD: Tensor, rotary: Rotary, cache: MtpCache) -> Tensor:
        x_TD = x_TD + self.self_attn(self.input_layernorm(x_TD), rotary, cache)
        return x_TD + self.mlp(self.post_attention_layernorm(x_TD))


class MtpHead(nn.Module):
    """The head. Parameter names are those below `mtp.`, and the target's final norm."""

    def __init__(self, config: TextConfig) -> None:
        super().__init__()
        hidden, eps = config.hidden_size, config.rms_norm_eps
        self.fc = TiledLinear(2 * hidden, hidden)
        self.pre_fc_norm_embedding = ZeroCentredRMSNorm(hidden, eps)
        self.pre_fc_norm_hidden = ZeroCentredRMSNorm(hidden, eps)
        self.layers = nn.ModuleList([_Layer(config)])
        self.norm = ZeroCentredRMSNorm(hidden, eps)
        self.final_norm = ZeroCentredRMSNorm(hidden, eps)
        self._config = config

    def prepare(self, device: torch.device) -> None:
        """Lays the weights out; call it once they are assigned."""
        config = self._config
        width = round(config.head_dim * config.rope.partial_rotary_factor)
        self._frequencies_F = mrope_frequencies(width, config.rope.theta).to(device)
        self._axis_F = axis_of_frequency(width // 2, config.rope.mrope_section).to(device)
        for module in list(self.modules()):
            if isinstance(module, ZeroCentredRMSNorm):
                module.prepare()
            elif isinstance(module, TiledLinear):
                module.pack()

    def forward(
        self, embedded_TD: Tensor, hidden_TD: Tensor, positions_3T: Tensor, cache: MtpCache
    ) -> Tensor:
        """Normed output rows [T, D], behind what the cache counts.

        Args:
            embedded_TD: embedding of the token after each row.
            hidden_TD: the row behind the target's final norm, or an output of this head.
            positions_3T: rotary positions of the rows.
            cache: of the sequence.
        """
        rotary = rotary_angles(positions_3T, self._frequencies_F, self._axis_F)
        parts = [self.pre_fc_norm_embedding(embedded_TD), self.pre_fc_norm_hidden(hidden_TD)]
        x_TD = self.fc(torch.cat(parts, -1))
        return self.norm(self.layers[0](x_TD, rotary, cache))


class _BelowPrefix:
    """The head's tensors by the names of the module."""

    def __init__(self, source: TensorSource) -> None:
        self._source = source
        below = [name for name in source.names() if name.startswith(PREFIX)]
        self._names = {name.removeprefix(PREFIX): name for name in below}
        self._names["final_norm.weight"] = _FINAL_NORM

    def names(self) -> list[str]:
        return list(self._names)

    def shape(self, name: str) -> tuple[int, ...]:
        return self._source.shape(self._names[name])

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self._source.read(self._names[name], dtype)


def has_mtp(source: TensorSource) -> bool:
    """Whether a checkpoint brings a head. One that was saved by `transformers` never does."""
    return any(name.startswith(PREFIX) for name in source.names())


def load_mtp(config: TextConfig, source: TensorSource, host: MtpHost) -> MtpHead:
    """The head of a checkpoint, ready on the target's device.

    Raises:
        WeightsError: tensors are missing, of another shape, or left over (a head of several
            layers).
    """
    with torch.device("meta"):
        head = MtpHead(config)
    report = assign(head, _BelowPrefix(source), dtype=host.dtype)
    if report.unexpected:
        raise WeightsError(
            f"the MTP head holds what one layer has no place for: {report.unexpected[0]}",
            hint="leave `--drafter` out: the model reads without its head",
        )
    head.to(host.device).requires_grad_(False).eval()
    head.prepare(host.device)
    return head
