"""Interleaved multimodal rotary positions (mRoPE) of the decoder."""

from typing import NamedTuple

import torch
from torch import Tensor


class Rotary(NamedTuple):
    """cos and sin [T, rotary width], duplicated to both halves."""

    cos_TF: Tensor
    sin_TF: Tensor


def mrope_frequencies(rotary_width: int, theta: float) -> Tensor:
    """theta^(-2i / width) for i = 0 .. width/2 - 1, float64."""
    exponent = torch.arange(0, rotary_width, 2, dtype=torch.float64) / rotary_width
    return theta**-exponent


def axis_of_frequency(num_frequencies: int, section: tuple[int, ...]) -> Tensor:
    """Which position axis (0 time, 1 height, 2 width) turns each frequency.

    Height takes i = 1, 4, 7, … and width i = 2, 5, 8, …, as many as their sections hold.
    """
    axis = torch.zeros(num_frequencies, dtype=torch.long)
    for which in (1, 2):
        axis[which : section[which] * 3 : 3] = which
    return axis


def rotary_angles(positions_3T: Tensor, frequencies_F: Tensor, axis_F: Tensor) -> Rotary:
    """Angles in float32 from positions [3, T], as the reference computes them."""
    chosen_TF = positions_3T.to(torch.float32)[axis_F].mT
    angles_TF = chosen_TF * frequencies_F.to(torch.float32)
    both_TF = torch.cat([angles_TF, angles_TF], -1)
    return Rotary(both_TF.cos(), both_TF.sin())


def rotate(x_THD: Tensor, rotary: Rotary) -> Tensor:
    """Turns the first F of D features of every head; the rest pass through."""
    width = rotary.cos_TF.shape[-1]
    if width < x_THD.shape[-1]:
        turned_THF = rotate(x_THD[..., :width], rotary)
        return torch.cat([turned_THF, x_THD[..., width:]], -1)
    first, second = x_THD.chunk(2, -1)
    cos, sin = rotary.cos_TF[:, None].to(x_THD.dtype), rotary.sin_TF[:, None].to(x_THD.dtype)
    swapped = torch.cat([-second, first], -1)
    return x_THD * cos + swapped * sin
