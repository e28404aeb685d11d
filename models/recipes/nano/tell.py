"""Asks the picture's rows which tokens begin in their patch.

A drafter reads these rows and must say which token stands k places on; nothing in reading aloud
asks them to hold that. What asks is for training alone and is not exported.

Shapes: B pages, R rows of the picture, T tokens, D width, N rows asked for a slot.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from .vocabulary import EOS

# Tokens asked of a patch. Later ones are not asked for.
SLOTS = 4


def token_patches(
    offsets: Sequence[tuple[int, int]], markup: str, places: np.ndarray
) -> np.ndarray:
    """The patch in which each token begins [T] int16: that of its first printed character, or -1.

    White space alone begins where the character behind it stands.

    Args:
        offsets: first character and last plus one of each token.
        markup: what the tokens spell.
        places: the patch of each character, -1 for none.
    """
    size = len(markup)
    if not offsets or not size:
        return np.full(len(offsets), -1, np.int16)
    index = np.where(places >= 0, np.arange(size), size)
    following = np.append(np.minimum.accumulate(index[::-1])[::-1], size)
    visible = np.cumsum([0, *(not character.isspace() for character in markup)])
    start, stop = np.array(offsets).T
    first = following[start]
    blank = visible[start] == visible[stop]
    found = first < stop + blank
    return np.where(found, places[np.minimum(first, size - 1)], -1).astype(np.int16)


@dataclass(frozen=True, kw_only=True)
class Targets:
    """By slot: the rows asked, as page * R + patch, and the tokens that they should tell."""

    rows: list[Tensor]
    tokens: list[Tensor]

    @property
    def count(self) -> int:
        return sum(map(len, self.rows))


def draw_targets(
    ids: Tensor,
    patches: Tensor,
    unsure: Tensor,
    most: Tensor,
    generator: torch.Generator | None = None,
) -> Targets:
    """Rows with tokens and as many without, drawn at random so that at most `most` slots are asked.

    Slot j asks for the j-th token that begins in the patch, the slot after the last one for `EOS`.

    Args:
        ids: tokens [B, T].
        patches: the patch in which each begins [B, T], -1 for none.
        unsure: patches that are not asked [B, R].
        most: the number of slots asked, a scalar on the device.
    """
    asked = ~unsure.flatten()
    page, at = (patches >= 0).nonzero(as_tuple=True)
    row, order = (page * unsure.shape[1] + patches[page, at].long()).sort(stable=True)
    token = ids[page, at][order]
    count = torch.bincount(row, minlength=asked.numel())
    slot = torch.arange(len(row), device=row.device) - (count.cumsum(0) - count)[row]

    drawn = torch.rand(asked.shape, generator=generator, device=row.device)
    full, empty = asked & (count > 0), asked & (count == 0)
    rank = drawn.masked_fill(~empty, 2.0).argsort().argsort()
    kept = full | (empty & (rank < full.sum()))
    size = (count + 1).clamp(max=SLOTS) * kept
    order = drawn.masked_fill(~kept, 2.0).argsort()
    fits = torch.zeros_like(kept).scatter(0, order, size[order].cumsum(0) <= most) & kept

    rows, tokens = [], []
    for j in range(SLOTS):
        here = fits[row] & (slot == j)
        ended = (fits & (count == j)).nonzero().flatten()
        rows.append(torch.cat([row[here], ended]))
        tokens.append(torch.cat([token[here], torch.full_like(ended, EOS)]))
    return Targets(rows=rows, tokens=tokens)


class Teller(nn.Module):
    """Hidden states of the picture's rows to what the tied head takes, one matrix a slot.

    A vector a slot, added before a shared matrix, would add the same to every row's logits.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.slots = nn.ModuleList(nn.Linear(width, width, bias=False) for _ in range(SLOTS))
        for slot in self.slots:
            nn.init.eye_(slot.weight)

    def forward(self, hidden: Tensor, targets: Targets) -> Tensor:
        """[N, D] for the targets, slot by slot; hidden [B, R, D]."""
        normed = F.rms_norm(hidden, hidden.shape[-1:], eps=1e-6).flatten(0, 1)
        # Not by indexing, whose gradient sorts.
        told = zip(self.slots, targets.rows, strict=True)
        return torch.cat([slot(normed.index_select(0, rows)) for slot, rows in told])
