"""A trainable qwen3_5 with the parameter names of the Hugging Face layout.

Shapes: B batch, P patches, G = P/4 image tokens, T text tokens, S = 2 + G + T sequence,
H heads, D width. Where a name differs from the layout, export.py says how (grey patch weights).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .delta import CHUNK, chunked_delta_rule
from .vocabulary import NUM_ROWS, VISION_END, VISION_START

CUDNN_ON_PAGES = True


@dataclass(frozen=True, kw_only=True)
class Geometry:
    """Sizes of OCRia-1 nano."""

    rows: int = NUM_ROWS
    width: int = 512
    layers: int = 9
    inner: int = 1280
    heads: int = 8
    kv_heads: int = 2
    head_width: int = 64
    linear_heads: int = 4
    linear_width: int = 128
    conv: int = 4
    attention_every: int = 3
    theta: float = 10000.0
    sections: tuple[int, int, int] = (12, 10, 10)
    vision_width: int = 320
    vision_depth: int = 10
    vision_heads: int = 5
    vision_inner: int = 1280
    patch: int = 16
    grid: int = 48


class ZeroCentredNorm(nn.Module):
    """RMS norm whose weight is stored minus one."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(width))

    def forward(self, x: Tensor) -> Tensor:
        return F.rms_norm(x, (x.shape[-1],), (1 + self.weight).to(x.dtype), 1e-6)


def rotate(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Rotary embedding, halves convention."""
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def page_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Unmasked attention over a whole page [B, H, P, d].

    cuDNN is named outright: at 5,632 patches on an H200 it took a third of flash's time (16 against
    43 ms forward). It builds a plan for every new shape, about a second, so training keeps the
    batch size of a pixel shape fixed.
    """
    if not query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value)
    if not CUDNN_ON_PAGES:
        return torch.ops.aten._scaled_dot_product_flash_attention(query, key, value)[0]
    return torch.ops.aten._scaled_dot_product_cudnn_attention(query, key, value, None, True)[0]


def text_attention(query: Tensor, key: Tensor, value: Tensor) -> Tensor:
    """Causal attention [B, H, S, d] by flash, whose cost does not depend on having seen a shape."""
    if not query.is_cuda:
        return F.scaled_dot_product_attention(query, key, value, is_causal=True)
    flash = torch.ops.aten._scaled_dot_product_flash_attention
    return flash(query, key, value, 0.0, True)[0]


class VisionAttention(nn.Module):
    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.heads = g.vision_heads
        self.qkv = nn.Linear(g.vision_width, 3 * g.vision_width)
        self.proj = nn.Linear(g.vision_width, g.vision_width)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        batch, patches, width = x.shape
        split = self.qkv(x).view(batch, patches, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        q, k, v = split.unbind(0)
        mixed = page_attention(rotate(q, cos, sin), rotate(k, cos, sin), v)
        return self.proj(mixed.transpose(1, 2).reshape(batch, patches, width))


class VisionMLP(nn.Module):
    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.linear_fc1 = nn.Linear(g.vision_width, g.vision_inner)
        self.linear_fc2 = nn.Linear(g.vision_inner, g.vision_width)

    def forward(self, x: Tensor) -> Tensor:
        return self.linear_fc2(F.gelu(self.linear_fc1(x), approximate="tanh"))


class VisionBlock(nn.Module):
    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.norm1 = nn.LayerNorm(g.vision_width, 1e-6)
        self.norm2 = nn.LayerNorm(g.vision_width, 1e-6)
        self.attn = VisionAttention(g)
        self.mlp = VisionMLP(g)

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        x = x + self.attn(self.norm1(x), cos, sin)
        return x + self.mlp(self.norm2(x))


class Merger(nn.Module):
    """Joins 2x2 patches into one image token."""

    def __init__(self, g: Geometry) -> None:
        super().__init__()
        joined = 4 * g.vision_width
        self.norm = nn.LayerNorm(g.vision_width, 1e-6)
        self.linear_fc1 = nn.Linear(joined, joined)
        self.linear_fc2 = nn.Linear(joined, g.width)

    def forward(self, x: Tensor) -> Tensor:
        joined = self.norm(x).unflatten(1, (-1, 4)).flatten(2)
        return self.linear_fc2(F.gelu(self.linear_fc1(joined)))


class Vision(nn.Module):
    """Grey pixels [B, height, width] in [-1, 1] to image tokens [B, G, D]."""

    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.g = g
        self.patch_embed = nn.Linear(g.patch**2, g.vision_width)
        self.pos_embed = nn.Embedding(g.grid**2, g.vision_width)
        self.blocks = nn.ModuleList(VisionBlock(g) for _ in range(g.vision_depth))
        self.merger = Merger(g)

    def forward(self, pixels: Tensor) -> Tensor:
        batch, height, width = pixels.shape
        rows, columns = height // 16, width // 16
        tiles = pixels.view(batch, rows // 2, 2, 16, columns // 2, 2, 16)
        patches = tiles.permute(0, 1, 4, 2, 5, 3, 6).reshape(batch, rows * columns, 256)
        index, weight, cos, sin = vision_places(self.g, rows, columns, pixels.device)
        x = self.patch_embed(patches)
        places = (self.pos_embed.weight[index] * weight[..., None]).sum(1)
        x = x + places.to(x.dtype)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for block in self.blocks:
            x = block(x, cos, sin)
        return self.merger(x)


def vision_places(
    g: Geometry, rows: int, columns: int, device: torch.device
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Four table indices and weights a patch, and rotary cos and sin, in merge-block order."""
    y = torch.arange(rows, device=device).view(rows // 2, 2, 1, 1).permute(0, 2, 1, 3)
    x = torch.arange(columns, device=device).view(1, columns // 2, 1, 2)
    shape = (rows // 2, columns // 2, 2, 2)
    y, x = y.expand(shape).reshape(-1), x.expand(shape).reshape(-1)
    top = y.float() * (g.grid - 1) / max(1, rows - 1)
    left = x.float() * (g.grid - 1) / max(1, columns - 1)
    y0, x0 = top.floor().long(), left.floor().long()
    y1, x1 = (y0 + 1).clamp(max=g.grid - 1), (x0 + 1).clamp(max=g.grid - 1)
    fy, fx = top - y0, left - x0
    corners = [y0 * g.grid + x0, y0 * g.grid + x1, y1 * g.grid + x0, y1 * g.grid + x1]
    shares = [(1 - fy) * (1 - fx), (1 - fy) * fx, fy * (1 - fx), fy * fx]
    half = g.vision_width // g.vision_heads // 2
    frequency = 1 / (10000.0 ** (torch.arange(0, half, 2, device=device).float() / half))
    angle = torch.cat([y[:, None] * frequency, x[:, None] * frequency], -1)
    angle = torch.cat([angle, angle], -1)
    return torch.stack(corners, 1), torch.stack(shares, 1), angle.cos(), angle.sin()


class DeltaMixer(nn.Module):
    """Gated DeltaNet: short convolution, delta rule, gated norm."""

    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.g = g
        self.inner = g.linear_heads * g.linear_width
        self.in_proj_qkv = nn.Linear(g.width, 3 * self.inner, bias=False)
        self.in_proj_z = nn.Linear(g.width, self.inner, bias=False)
        self.in_proj_b = nn.Linear(g.width, g.linear_heads, bias=False)
        self.in_proj_a = nn.Linear(g.width, g.linear_heads, bias=False)
        self.conv1d = nn.Parameter(torch.randn(3 * self.inner, g.conv) * 0.3)
        self.dt_bias = nn.Parameter(torch.zeros(g.linear_heads))
        self.A_log = nn.Parameter(torch.zeros(g.linear_heads))
        self.norm = nn.Parameter(torch.ones(g.linear_width))
        self.out_proj = nn.Linear(self.inner, g.width, bias=False)

    def rates(self, x: Tensor) -> tuple[Tensor, Tensor]:
        """Log decay and write strength [B, S, H], float32."""
        step = F.softplus(self.in_proj_a(x).float() + self.dt_bias)
        return -self.A_log.float().exp() * step, self.in_proj_b(x).float().sigmoid()

    def finish(self, mixed: Tensor, x: Tensor) -> Tensor:
        heads = (self.g.linear_heads, self.g.linear_width)
        gate = F.silu(self.in_proj_z(x).unflatten(-1, heads))
        normed = F.rms_norm(mixed, (self.g.linear_width,), self.norm.to(mixed.dtype), 1e-6)
        return self.out_proj((normed * gate).flatten(-2).to(x.dtype))

    def project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Query, key, value [B, S, H, d] after the convolution, log decay, strength [B, S, H]."""
        length = x.shape[1]
        inputs = self.in_proj_qkv(x)
        padded = F.pad(inputs, (0, 0, self.g.conv - 1, 0))
        weight = self.conv1d.to(inputs.dtype)
        mixed = padded[:, :length] * weight[:, 0]
        for i in range(1, self.g.conv):
            mixed = mixed + padded[:, i : i + length] * weight[:, i]
        heads = (3, self.g.linear_heads, self.g.linear_width)
        q, k, v = F.silu(mixed).unflatten(-1, heads).unbind(2)
        decay, beta = self.rates(x)
        return q, k, v, decay, beta


class GatedAttention(nn.Module):
    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.g = g
        self.q_proj = nn.Linear(g.width, 2 * g.heads * g.head_width, bias=False)
        self.k_proj = nn.Linear(g.width, g.kv_heads * g.head_width, bias=False)
        self.v_proj = nn.Linear(g.width, g.kv_heads * g.head_width, bias=False)
        self.o_proj = nn.Linear(g.heads * g.head_width, g.width, bias=False)
        self.q_norm = ZeroCentredNorm(g.head_width)
        self.k_norm = ZeroCentredNorm(g.head_width)

    def project(self, x: Tensor, cos: Tensor, sin: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Query [B, H, S, d], key and value [B, KV, S, d], gate [B, S, H * d]."""
        g = self.g
        both = self.q_proj(x).unflatten(-1, (g.heads, 2 * g.head_width))
        query, gate = both.chunk(2, -1)
        query = rotate(self.q_norm(query).transpose(1, 2), cos, sin)
        key = self.k_norm(self.k_proj(x).unflatten(-1, (g.kv_heads, g.head_width)))
        key = rotate(key.transpose(1, 2), cos, sin)
        value = self.v_proj(x).unflatten(-1, (g.kv_heads, g.head_width)).transpose(1, 2)
        return query, key, value, gate.flatten(-2)

    def finish(self, mixed: Tensor, gate: Tensor) -> Tensor:
        return self.o_proj(mixed.transpose(1, 2).flatten(-2) * torch.sigmoid(gate))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        query, key, value, gate = self.project(x, cos, sin)
        repeats = self.g.heads // self.g.kv_heads
        key, value = (t.repeat_interleave(repeats, 1) for t in (key, value))
        mixed = text_attention(query, key, value)
        return self.finish(mixed, gate)


class MLP(nn.Module):
    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(g.width, g.inner, bias=False)
        self.up_proj = nn.Linear(g.width, g.inner, bias=False)
        self.down_proj = nn.Linear(g.inner, g.width, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        return self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))


class Layer(nn.Module):
    """A decoder layer: every third holds full attention, the others a delta mixer."""

    def __init__(self, g: Geometry, index: int) -> None:
        super().__init__()
        self.full = (index + 1) % g.attention_every == 0
        self.input_layernorm = ZeroCentredNorm(g.width)
        self.post_attention_layernorm = ZeroCentredNorm(g.width)
        if self.full:
            self.self_attn = GatedAttention(g)
        else:
            self.linear_attn = DeltaMixer(g)
        self.mlp = MLP(g)

    def enter(self, x: Tensor) -> tuple[Tensor, ...]:
        """The delta mixer's inputs, and the normed stream for its gate."""
        h = self.input_layernorm(x)
        return *self.linear_attn.project(h), h

    def leave(self, x: Tensor, mixed: Tensor, h: Tensor) -> Tensor:
        """Gates and adds the delta mixer's output, then the MLP."""
        x = x + self.linear_attn.finish(mixed, h)
        return x + self.mlp(self.post_attention_layernorm(x))

    def attend(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        """The whole of a full attention layer."""
        x = x + self.self_attn(self.input_layernorm(x), cos, sin)
        return x + self.mlp(self.post_attention_layernorm(x))

    def compile_pieces(self) -> None:
        """Compiles all but the scan between chunks, for any batch and length."""
        if self.full:
            self.attend = torch.compile(self.attend, dynamic=True)  # type: ignore[method-assign]
        else:
            self.enter = torch.compile(self.enter, dynamic=True)  # type: ignore[method-assign]
            self.leave = torch.compile(self.leave, dynamic=True)  # type: ignore[method-assign]

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        if self.full:
            return self.attend(x, cos, sin)
        *inputs, h = self.enter(x)
        with torch.autocast(x.device.type, enabled=False):
            mixed, _ = chunked_delta_rule(*inputs)
        return self.leave(x, mixed, h)


class Reader(nn.Module):
    """Image and text in one sequence: vision start, image tokens, vision end, text."""

    def __init__(self, g: Geometry) -> None:
        super().__init__()
        self.g = g
        self.visual = Vision(g)
        self.embed_tokens = nn.Embedding(g.rows, g.width)
        self.layers = nn.ModuleList(Layer(g, i) for i in range(g.layers))
        self.norm = ZeroCentredNorm(g.width)

    def sequence(self, image: Tensor, ids: Tensor) -> Tensor:
        """Input embeddings [B, S, D]."""
        batch = image.shape[0]
        ends = self.embed_tokens.weight[[VISION_START, VISION_END]].to(image.dtype)
        start, end = (row.expand(batch, 1, -1) for row in ends)
        return torch.cat([start, image, end, self.embed_tokens(ids).to(image.dtype)], 1)

    def forward(self, pixels: Tensor, ids: Tensor) -> Tensor:
        """Hidden states [B, T + 1, D]: that of vision end first, which predicts `ids[:, 0]`."""
        return self.decode(self.visual(pixels), (pixels.shape[1] // 32, pixels.shape[2] // 32), ids)

    def decode(self, image: Tensor, grid: tuple[int, int], ids: Tensor) -> Tensor:
        """As `forward`, from image tokens [B, rows * columns, D] of a `grid` (rows, columns)."""
        last = image
        for x in self.states(image, grid, ids):
            last = x
        return self.norm(last[:, 1 + grid[0] * grid[1] :])

    def states(self, image: Tensor, grid: tuple[int, int], ids: Tensor) -> Iterator[Tensor]:
        """The stream [B, S, D] after each layer; arguments as `decode`."""
        x = self.sequence(image, ids)
        cos, sin = decoder_angles(self.g, *grid, ids.shape[1], x.device)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
            yield x

    def logits(self, hidden: Tensor) -> Tensor:
        return F.linear(hidden, self.embed_tokens.weight.to(hidden.dtype))


def decoder_angles(
    g: Geometry, rows: int, columns: int, text: int, device: torch.device
) -> tuple[Tensor, Tensor]:
    """Interleaved mRoPE cos and sin [S, d] for start, image grid, end and `text` tokens."""
    zero = torch.zeros(1, device=device)
    grid = torch.ones(rows * columns, device=device)
    y = 1 + torch.arange(rows, device=device).repeat_interleave(columns).float()
    x = 1 + torch.arange(columns, device=device).repeat(rows).float()
    after = 1 + max(rows, columns) + torch.arange(text + 1, device=device).float()
    axes = torch.stack([torch.cat([zero, a, after]) for a in (grid, y, x)])
    frequency = 1 / (g.theta ** (torch.arange(0, g.head_width, 2, device=device) / g.head_width))
    angles = axes[..., None] * frequency
    mixed = angles[0].clone()
    for axis in (1, 2):
        places = slice(axis, g.sections[axis] * 3, 3)
        mixed[:, places] = angles[axis][:, places]
    mixed = torch.cat([mixed, mixed], -1)
    return mixed.cos(), mixed.sin()


def text_room(rows: int, columns: int, tokens: int, step: int = CHUNK) -> int:
    """The padded text length (without eos shift) that makes the sequence a multiple of 64."""
    total = 2 + rows * columns + tokens
    return (total + step - 1) // step * step - 2 - rows * columns
