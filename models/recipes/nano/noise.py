"""Errors in what the reader is shown of its own text, so that it learns to go on after one.

Teacher forcing shows a perfect past. A reader that has only seen that trusts its own text more
than the page: after one slip it repeats itself. Here a part of the past is wrong and the answer
asked for stays right (scheduled sampling's aim without its second pass).
"""

from __future__ import annotations

import torch
from torch import Tensor

from .vocabulary import COORDINATES, FIRST_COORDINATE, NUM_PIECES

# Shares of pages whose text, and whose corners, are disturbed.
_TEXTS, _CORNERS = 0.6, 0.6
# Most tokens of a text replaced, and the widest spread of its corners in units of the grid.
_MOST, _WIDEST = 0.06, 6.0
# How far back a repeated token may come from.
_BACK = 96
_FIRST_PIECE = 4


def disturbed(ids: Tensor, generator: torch.Generator | None = None) -> Tensor:
    """A copy of ids [B, T] with wrong tokens in it; markup other than corners stays.

    Half of the replaced text tokens are ones from shortly before (what a reader that lost its place
    writes), half come from another place of another page. Corners move by a Gaussian step.
    """
    batch, length = ids.shape
    device = ids.device

    def uniform(*shape: int) -> Tensor:
        return torch.rand(shape, generator=generator, device=device)

    text = (ids >= _FIRST_PIECE) & (ids < NUM_PIECES)
    share = uniform(batch, 1) * _MOST * (uniform(batch, 1) < _TEXTS)
    wrong = text & (uniform(batch, length) < share)
    column = torch.arange(length, device=device)
    back = (column - 1 - (uniform(batch, length) * _BACK).long()).clamp(min=0)
    earlier = ids.gather(1, back)
    elsewhere = ids.flatten()[(uniform(batch, length) * ids.numel()).long()]
    other = torch.where(uniform(batch, length) < 0.5, earlier, elsewhere)
    is_text = (other >= _FIRST_PIECE) & (other < NUM_PIECES)
    shown = torch.where(wrong & is_text, other, ids)

    place = ids - FIRST_COORDINATE
    corner = (place >= 0) & (place < COORDINATES)
    spread = uniform(batch, 1) * _WIDEST * (uniform(batch, 1) < _CORNERS)
    step = torch.randn(batch, length, generator=generator, device=device) * spread
    moved = (place + step.round().long()).clamp(0, COORDINATES - 1) + FIRST_COORDINATE
    return torch.where(corner, moved, shown)
