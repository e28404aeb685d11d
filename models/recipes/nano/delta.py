"""The gated delta rule in chunks, for training.

Shapes: B batch, H heads, N chunks, C = 64 positions a chunk, D key width, V value width.
Within a chunk the rule is a unit lower triangular system; between chunks the state obeys
S[n+1] = M[n] S[n] + K[n], one matrix product a chunk (Yang et al. 2024, "Gated Delta Networks").
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor

from .invert import unit_lower_inverse
from .scan import scan_states

CHUNK = 64


def within_chunks(
    q: Tensor, k: Tensor, v: Tensor, g: Tensor, b: Tensor
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]:
    """All that a chunk can say without its incoming state.

    q, k, v [G, C, D]; g (log decay) and b (strength) [G, C]. One leading axis, so that a compiler
    has a single unknown size to reason about.
    """
    depth = q.shape[-1]
    q = F.normalize(q.float(), dim=-1) * depth**-0.5
    k = F.normalize(k.float(), dim=-1)
    g = g.cumsum(-1)
    mask = torch.ones(CHUNK, CHUNK, dtype=torch.bool, device=q.device).tril()
    fade = (g[:, :, None] - g[:, None, :]).masked_fill(~mask, -1e9).exp()
    weighted = k * b[..., None]
    inverse = unit_lower_inverse(((weighted @ k.mT) * fade).tril(-1))
    sources = torch.cat([v.float() * b[..., None], weighted * g.exp()[..., None]], -1)
    written, erased = (inverse @ sources).split([v.shape[-1], depth], -1)
    last = g[:, -1:]
    kept = (k * (last - g).exp()[..., None]).mT
    identity = torch.eye(depth, device=q.device, dtype=q.dtype) * last.exp()[..., None]
    steps, inputs = identity - kept @ erased, kept @ written
    return steps, inputs, written, erased, q * g.exp()[..., None], (q @ k.mT) * fade


def across_chunks(
    written: Tensor, erased: Tensor, query: Tensor, scores: Tensor, before: Tensor
) -> Tensor:
    """Outputs [G, C, V] once the state before each chunk [G, D, V] is known."""
    return query @ before + scores @ (written - erased @ before)


@dataclass
class DeltaPieces:
    """The two halves of the rule, replaceable by compiled ones."""

    within: Callable[..., tuple[Tensor, ...]] = within_chunks
    across: Callable[..., Tensor] = across_chunks

    def compile(self) -> None:
        self.within = torch.compile(within_chunks, dynamic=True)
        self.across = torch.compile(across_chunks, dynamic=True)


PIECES = DeltaPieces()


def chunked_delta_rule(
    query: Tensor, key: Tensor, value: Tensor, decay: Tensor, beta: Tensor
) -> tuple[Tensor, Tensor]:
    """Outputs [B, T, H, V] and the final state [B, H, D, V] of the gated delta rule, in float32.

    query, key [B, T, H, D] not yet normalised; value [B, T, H, V]; decay (log) and beta
    [B, T, H]. T must be a multiple of 64.
    """
    batch, length, heads, _ = query.shape
    count = length // CHUNK

    def chunks(x: Tensor) -> Tensor:  # [B, T, H, ...] -> [G, C, ...]
        split = x.view(batch, count, CHUNK, *x.shape[2:]).movedim(3, 1)
        return split.reshape(batch * heads * count, CHUNK, *x.shape[3:])

    parts = PIECES.within(*(chunks(x) for x in (query, key, value, decay, beta)))
    steps, inputs, written, erased, weighted, scores = parts
    by_row = (batch * heads, count)
    states = scan_states(steps.unflatten(0, by_row), inputs.unflatten(0, by_row))
    before = states[:, :-1].flatten(0, 1)
    out = PIECES.across(written, erased, weighted, scores, before)
    out = out.view(batch, heads, count, CHUNK, -1).permute(0, 2, 3, 1, 4)
    return out.reshape(batch, length, heads, -1), states[:, -1].unflatten(0, (batch, heads))
