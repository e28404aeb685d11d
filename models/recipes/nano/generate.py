"""Batched greedy decoding of the trainable model, with key-value cache and recurrent state.

Plain and for evaluation only: pages of one pixel shape share a batch.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .delta import CHUNK, chunked_delta_rule
from .model import DeltaMixer, GatedAttention, Layer, Reader, decoder_angles
from .vocabulary import EOS, IMAGE, LAST_USED, MASK, PAD

Cache = tuple[Tensor, Tensor]


def _prefill_delta(mixer: DeltaMixer, x: Tensor) -> tuple[Tensor, Cache]:
    """Output [B, S, D] and cache: last convolution inputs, state [B, H, D, V]."""
    length = x.shape[1]
    *parts, decay, beta = mixer.project(x)
    window = F.pad(mixer.in_proj_qkv(x), (0, 0, mixer.g.conv - 1, 0))[:, length:]
    # Padding with zero decay and zero strength leaves the state as it was.
    extra = -length % CHUNK
    q, k, v = (F.pad(t, (0, 0, 0, 0, 0, extra)) for t in parts)
    decay, beta = (F.pad(t, (0, 0, 0, extra)) for t in (decay, beta))
    with torch.autocast(x.device.type, enabled=False):
        out, state = chunked_delta_rule(q, k, v, decay, beta)
    return mixer.finish(out[:, :length], x), (window, state)


def _step_delta(mixer: DeltaMixer, x: Tensor, cache: Cache) -> tuple[Tensor, Cache]:
    window, state = cache
    window = torch.cat([window, mixer.in_proj_qkv(x)], 1)
    weight = mixer.conv1d.to(window.dtype)
    mixed = F.silu((window * weight.T).sum(1))
    heads = (3, mixer.g.linear_heads, mixer.g.linear_width)
    q, k, v = mixed.float().unflatten(-1, heads).unbind(1)
    q = F.normalize(q, dim=-1) * mixer.g.linear_width**-0.5
    k = F.normalize(k, dim=-1)
    decay, beta = (t[:, 0, :, None, None] for t in mixer.rates(x))
    with torch.autocast(x.device.type, enabled=False):
        state = state * decay.exp()
        seen = (state * k[..., None]).sum(-2)
        state = state + k[..., None] * ((v - seen) * beta[..., 0])[:, :, None]
        out = (state * q[..., None]).sum(-2)
    return mixer.finish(out[:, None], x), (window[:, 1:], state)


def _attend(
    mixer: GatedAttention, x: Tensor, cos: Tensor, sin: Tensor, cache: Cache, at: int
) -> Tensor:
    """Attention of the positions `at`... over the cache, which it extends in place."""
    query, key, value, gate = mixer.project(x, cos, sin)
    keys, values = cache
    end = at + x.shape[1]
    keys[:, :, at:end], values[:, :, at:end] = key, value
    repeats = mixer.g.heads // mixer.g.kv_heads
    seen = [t[:, :, :end].repeat_interleave(repeats, 1) for t in (keys, values)]
    mixed = F.scaled_dot_product_attention(query, *seen, is_causal=x.shape[1] > 1)
    return mixer.finish(mixed, gate)


def _layer(
    layer: Layer, x: Tensor, angles: tuple[Tensor, Tensor], cache: Cache | None, at: int, room: int
) -> tuple[Tensor, Cache]:
    h = layer.input_layernorm(x)
    if layer.full:
        if cache is None:
            shape = (x.shape[0], layer.self_attn.g.kv_heads, room, layer.self_attn.g.head_width)
            cache = (x.new_zeros(shape), x.new_zeros(shape))
        mixed = _attend(layer.self_attn, h, *angles, cache, at)
    elif cache is None:
        mixed, cache = _prefill_delta(layer.linear_attn, h)
    else:
        mixed, cache = _step_delta(layer.linear_attn, h, cache)
    x = x + mixed
    return x + layer.mlp(layer.post_attention_layernorm(x)), cache


@torch.no_grad()
def greedy(reader: Reader, pixels: Tensor, limit: int) -> list[list[int]]:
    """Token ids (no eos) for grey pages [B, height, width] uint8, at most `limit` each."""
    device = pixels.device
    rows, columns = pixels.shape[1] // 32, pixels.shape[2] // 32
    banned = torch.tensor([PAD, IMAGE, IMAGE + 1, MASK, *range(LAST_USED + 1, reader.g.rows)])
    banned = banned.to(device)
    with torch.autocast(device.type, torch.bfloat16):
        image = reader.visual((pixels.float() - 127.5) / 127.5)
        x = reader.sequence(image, torch.empty(len(pixels), 0, dtype=torch.long, device=device))
        x = x.to(torch.bfloat16)
        cos, sin = decoder_angles(reader.g, rows, columns, limit, device)
        cos, sin = cos.to(x.dtype), sin.to(x.dtype)
        at, room = 0, x.shape[1] + limit
        caches: list[Cache | None] = [None] * len(reader.layers)
        ended = torch.zeros(len(pixels), dtype=torch.bool, device=device)
        out: list[Tensor] = []
        for _ in range(limit):
            angles = (cos[at : at + x.shape[1]], sin[at : at + x.shape[1]])
            length = x.shape[1]
            for i, layer in enumerate(reader.layers):
                x, caches[i] = _layer(layer, x, angles, caches[i], at, room)
            at += length
            logits = reader.logits(reader.norm(x[:, -1])).float().index_fill(1, banned, -1e4)
            chosen = torch.where(ended, PAD, logits.argmax(-1))
            out.append(chosen)
            ended |= chosen == EOS
            # Asking the device whether all have ended costs a wait; every 16 steps is enough.
            if len(out) % 16 == 0 and bool(ended.all()):
                break
            x = reader.embed_tokens(chosen)[:, None].to(torch.bfloat16)
    ids = torch.stack(out, 1).cpu().tolist()
    return [[token for token in row if token not in (PAD, EOS)] for row in ids]
