"""Where each patch of a page lies: taps into the learned table, and rotary angles.

Patches come in merge-block order: block row, block column, row in the block, column in the block.

Shape legend: P patches, C width of the tower, K channels of a head.
Source: architecture specification of qwen3_5, vision tower, points 2 to 4.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Geometry(NamedTuple):
    """What depends on the grid alone.

    Attributes:
        position_PC: learned positions, interpolated to the grid.
        cos_PK, sin_PK: float32 rotary factors; the sine already has the sign of rotate-half.
    """

    position_PC: Tensor
    cos_PK: Tensor
    sin_PK: Tensor


def patch_coordinates(grid_h: int, grid_w: int, merge: int) -> tuple[Tensor, Tensor]:
    """Row and column of each patch, int64 [P] each."""
    raster = torch.arange(grid_h * grid_w).view(grid_h // merge, merge, grid_w // merge, merge)
    order = raster.transpose(1, 2).reshape(-1)
    return order // grid_w, order % grid_w


def interpolate_table(table_SC: Tensor, side: int, grid_h: int, grid_w: int, merge: int) -> Tensor:
    """Bilinear with aligned corners: the learned table [side * side, C] at each patch, [P, C].

    Formed in float32 at least.
    """
    rows, columns = patch_coordinates(grid_h, grid_w, merge)
    low_y, high_y, part_y = _taps(rows, grid_h, side)
    low_x, high_x, part_x = _taps(columns, grid_w, side)
    wide = torch.promote_types(table_SC.dtype, torch.float32)
    weighted = [
        ((y * side + x), weight_y * weight_x)
        for y, weight_y in ((low_y, 1 - part_y), (high_y, part_y))
        for x, weight_x in ((low_x, 1 - part_x), (high_x, part_x))
    ]
    device = table_SC.device
    return torch.stack(
        [table_SC[i.to(device)].to(wide) * w[:, None].to(device, wide) for i, w in weighted]
    ).sum(0)


def rotary_factors(
    grid_h: int, grid_w: int, merge: int, head_dim: int, theta: float
) -> tuple[Tensor, Tensor]:
    """Cosine and signed sine [P, K] in float32; the first half of the angles follows the row.

    With rotate-half, x turned = x * cos + swap_halves(x) * sin: the minus sign is in `sin`.
    """
    rows, columns = patch_coordinates(grid_h, grid_w, merge)
    half = head_dim // 2
    frequencies = 1.0 / theta ** (torch.arange(0, half, 2, dtype=torch.float32) / half)
    angles = torch.cat(
        (rows[:, None].float() * frequencies, columns[:, None].float() * frequencies), dim=1
    )
    return torch.cat((angles.cos(),) * 2, 1), torch.cat((-angles.sin(), angles.sin()), 1)


def _taps(index: Tensor, size: int, side: int) -> tuple[Tensor, Tensor, Tensor]:
    # A single row lies on the table's first: there is no spacing to divide by.
    source = index.float() * (side - 1) / max(size - 1, 1)
    low = source.floor()
    return low.long(), (low.long() + 1).clamp(max=side - 1), source - low
