"""Where a page can be cut without cutting what stands on it: seams between lines and in gutters.

A seam is a path through paper. It may lean and wander as a skewed or curled page does, so it is
found as the cheapest path over slabs of the page, and it is a seam only if it crosses no ink.

Shape suffixes: H, W pixels of the ink map; S slabs, from the side where a seam begins to where it
ends.
"""

from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray

_Ink = TypeVar("_Ink", np.bool_, np.uint8)

_NUM_SLABS = 32
_STEP = 0.0016
"""A seam's largest step between two slabs, as a share of the page's long side: 2 degrees."""

_RULE_LENGTH = 0.018
"""Of an upright rule, as a share of the page's long side. A seam may cross rules."""
_RULE_PX = 8
"""Wider ink is no rule."""

_CLEARANCE = 0.002
"""Half of the gap that a seam would like to have around it, as a share of the page's long side."""


def cheapest_seam(ink_HW: NDArray[np.bool_], low: int, high: int) -> NDArray[np.intp] | None:
    """The best seam from left to right between rows `low` and `high`: int [W], a row a column.

    Wide gaps near the middle of the two are preferred. None if every path crosses ink.
    """
    height, width = ink_HW.shape
    long = max(height, width)
    clear = max(1, round(long * _CLEARANCE))
    rows = slice(max(0, low), min(height, high))
    edges = np.linspace(0, width, _NUM_SLABS + 1).round().astype(np.intp)
    inked_HS = np.stack([ink_HW[rows, a:b].any(axis=1) for a, b in pairwise(edges)], axis=1)
    if len(inked_HS) < 3:
        return None
    cost_HS = np.where(inked_HS, 1e6, 0.0)
    for reach, weight in ((clear, 8.0), (3 * clear, 2.0)):
        cost_HS += weight * _spread(inked_HS, reach)
    places = np.arange(len(inked_HS), dtype=np.float64)
    middle = (len(inked_HS) - 1) / 2
    cost_HS += (np.abs(places - middle) / middle)[:, None]
    path_S = _cheapest(cost_HS, max(1, round(long * _STEP)))
    if inked_HS[path_S, np.arange(_NUM_SLABS)].any():
        return None
    return np.repeat(path_S + rows.start, np.diff(edges))


def without_rules(ink_HW: NDArray[np.bool_], least: float = _RULE_LENGTH) -> NDArray[np.bool_]:
    """Ink without thin upright lines, such as stand in gutters and between the cells of a table.

    Args:
        ink_HW: the ink.
        least: length of a rule, as a share of the long side. Stems of letters in large headings
            are longer than the usual one.
    """
    length = round(max(ink_HW.shape) * least)
    # Eight pixels across as the bits of a byte.
    packed = _opened(np.packbits(ink_HW, axis=1), length)
    upright_HW = np.unpackbits(packed, axis=1, count=ink_HW.shape[1]).view(np.bool_)
    columns = np.flatnonzero(upright_HW.any(axis=0))
    if not len(columns):
        return ink_HW
    # Whether ink is wide is told by that near it.
    near = slice(max(0, int(columns[0]) - _RULE_PX), int(columns[-1]) + _RULE_PX)
    left_HW = ink_HW.copy()
    left_HW[:, near] &= ~upright_HW[:, near] | _opened(ink_HW[:, near].T, _RULE_PX).T
    return left_HW


def _opened(ink: NDArray[_Ink], length: int) -> NDArray[_Ink]:
    """What is set in a run of at least `length` along the first axis: an opening, by doubling."""
    if len(ink) < length:
        return np.zeros_like(ink)
    found = ink
    steps: list[int] = []
    while sum(steps) < length - 1:
        steps.append(min(1 + sum(steps), length - 1 - sum(steps)))
    for step in steps:
        found = found[:-step] & found[step:]
    for step in steps:
        grown = np.zeros_like(found, shape=(len(found) + step, found.shape[1]))
        grown[: len(found)] = found
        grown[step:] |= found
        found = grown
    return found


def _spread(inked_HS: NDArray[np.bool_], reach: int) -> NDArray[np.float64]:
    """Share of inked rows within `reach` rows."""
    padded = np.pad(inked_HS, ((reach + 1, reach), (0, 0)), mode="edge")
    total = np.cumsum(padded, axis=0, dtype=np.float64)
    return np.asarray((total[2 * reach + 1 :] - total[: -2 * reach - 1]) / (2 * reach + 1))


def _cheapest(cost_HS: NDArray[np.float64], step: int) -> NDArray[np.intp]:
    """int [S]: the rows of the cheapest path whose neighbours lie at most `step` rows apart."""
    num_rows, num_slabs = cost_HS.shape
    shifts = np.arange(-step, step + 1)
    total, came = cost_HS[:, 0], np.empty((num_slabs, num_rows), np.intp)
    padded = np.full(num_rows + 2 * step, np.inf)
    around = sliding_window_view(padded, num_rows)
    for slab in range(1, num_slabs):
        padded[step : step + num_rows] = total
        best = np.argmin(around + 1e-3 * np.abs(shifts)[:, None], axis=0)
        came[slab] = np.arange(num_rows) + shifts[best]
        total = around[best, np.arange(num_rows)] + cost_HS[:, slab]
    path = np.empty(num_slabs, np.intp)
    path[-1] = np.argmin(total)
    for slab in range(num_slabs - 1, 0, -1):
        path[slab - 1] = came[slab, path[slab]]
    return path
