"""The training loss: cross entropy, with soft targets where the truth is a box corner.

A corner told wrong by one unit of 511 is nearly right, which plain cross entropy cannot see: it
asks as much for the neighbour as for the far side of the page.
"""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from .vocabulary import COORDINATES, FIRST_COORDINATE

# Spread of a corner's target in units of the box grid. 1.5 in the second run, whose corners then
# tied: rounding changed the best one in 15 of 100.
SPREAD = 0.8
_REACH = 4
# A corner starts at 3 nats and cannot fall below 1.2, a text token starts at 0.1 to 0.5:
# unweighted, corners would have most of the gradient.
CORNER_WEIGHT = 0.5


def token_losses(logits: Tensor, truth: Tensor) -> Tensor:
    """Loss of each token [N], float32; logits [N, V] float32, truth [N].

    Coordinate tokens are asked for a Gaussian over their neighbours, cut at the grid's ends, and
    weigh `CORNER_WEIGHT`.
    """
    place = truth - FIRST_COORDINATE
    corner = ((place >= 0) & (place < COORDINATES))[:, None]
    offsets = torch.arange(-_REACH, _REACH + 1, device=truth.device)
    near = place[:, None] + offsets
    weight = torch.exp(-((offsets / SPREAD) ** 2) / 2) * ((near >= 0) & (near < COORDINATES))
    weight = CORNER_WEIGHT * weight / weight.sum(1, keepdim=True).clamp(min=1e-9)
    # Of a token that is no corner the middle place counts alone, with the token itself in it.
    plain = (offsets == 0).to(weight.dtype).expand_as(weight)
    near = near.clamp(0, COORDINATES - 1) + FIRST_COORDINATE
    asked = torch.where(corner, near, truth[:, None])
    told = F.log_softmax(logits, 1).gather(1, asked)
    return -(told * torch.where(corner, weight, plain)).sum(1)


def divergence(logits: Tensor, teacher: Tensor) -> Tensor:
    """KL divergence of each row from the teacher's [N], in nats; both logits [N, V] float32."""
    told, known = F.log_softmax(logits, 1), F.log_softmax(teacher, 1)
    return F.kl_div(told, known, reduction="none", log_target=True).sum(1)
