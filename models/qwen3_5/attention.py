"""Full attention with an output gate.

Shape legend
    T  rows, D hidden size, H query heads, J key-value heads, F head width, S positions
"""

import torch
from torch import Tensor, nn

from ocria.kernels.block_attention import block_attention
from ocria.models.base import KEY_BLOCK
from ocria.models.layers.linear import TiledLinear, fuse
from ocria.models.layers.norm import ZeroCentredRMSNorm
from ocria.models.layers.rope import rotate
from ocria.models.layers.rowwise import by_rows
from ocria.models.layers.span import Pass, Span
from ocria.models.qwen3_5.config import TextConfig


class GatedAttention(nn.Module):
    """One `full_attention` layer's mixer. `index` counts the attention layers only."""

    def __init__(self, config: TextConfig, index: int) -> None:
        super().__init__()
        self.index = index
        self.num_heads = config.num_attention_heads
        self.num_kv_heads = config.num_key_value_heads
        self.width = config.head_dim
        hidden, kv = config.hidden_size, self.num_kv_heads * self.width
        # Each head's rows are its query followed by its gate, head after head.
        self.q_proj = TiledLinear(hidden, self.num_heads * 2 * self.width)
        self.k_proj = TiledLinear(hidden, kv)
        self.v_proj = TiledLinear(hidden, kv)
        self.o_proj = TiledLinear(self.num_heads * self.width, hidden)
        self.q_norm = ZeroCentredRMSNorm(self.width, config.rms_norm_eps)
        self.k_norm = ZeroCentredRMSNorm(self.width, config.rms_norm_eps)

    def prepare(self) -> None:
        """Joins the projections that read the same input, and packs."""
        self.qkv_proj = fuse(self.q_proj, self.k_proj, self.v_proj)
        del self.q_proj, self.k_proj, self.v_proj
        self.qkv_proj.pack()
        self.o_proj.pack()

    def forward(self, x_TD: Tensor, rows: Pass) -> Tensor:
        """Attends every row to all positions of its sequence up to its own."""
        kv = self.num_kv_heads * self.width
        qg_TE, k_TE, v_TE = self.qkv_proj(x_TD).split([2 * self.num_heads * self.width, kv, kv], -1)
        q_THF, gate_THF = qg_TE.unflatten(-1, (self.num_heads, 2 * self.width)).chunk(2, -1)
        k_TJF = k_TE.unflatten(-1, (self.num_kv_heads, self.width))
        v_TJF = v_TE.unflatten(-1, (self.num_kv_heads, self.width))
        q_THF = rotate(self.q_norm(q_THF), rows.rotary)
        k_TJF = rotate(self.k_norm(k_TJF), rows.rotary)

        mixed = [
            self._attend(q_THF[place], k_TJF[place], v_TJF[place], span)
            for span, place in rows.placed()
        ]
        out_THF = mixed[0] if len(mixed) == 1 else torch.cat(mixed)
        return self.o_proj((out_THF * by_rows(torch.sigmoid, gate_THF)).flatten(1))

    def _attend(self, q_THF: Tensor, k_TJF: Tensor, v_TJF: Tensor, span: Span) -> Tensor:
        """Writes the keys and values of one sequence's rows, then reads up to each row."""
        keys_JSF = span.state.keys_LJSD[self.index]
        values_JSF = span.state.values_LJSD[self.index]
        keys_JSF[:, span.start : span.end] = k_TJF.transpose(0, 1).to(keys_JSF.dtype)
        values_JSF[:, span.start : span.end] = v_TJF.transpose(0, 1).to(values_JSF.dtype)
        return block_attention(q_THF, keys_JSF, values_JSF, span.start, KEY_BLOCK)
