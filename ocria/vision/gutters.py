"""Columns of running text, found by the white gutters between them.

Cells of a table have gutters too. Columns of text are wide, and their lines fill them.

Shape suffixes: H, W pixels of the ink map; B bands of rows.
"""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

_NUM_BANDS = 48
_MIN_WIDTH = 0.009
"""Of a gutter, as a share of the page's width."""
_MIN_BANDS = 5
_MIN_SHARED_PX = 3
"""Of two runs below each other."""
_MOST_MISSED = 1
"""Bands that a gutter passes over."""
_MIN_TAIL = 4
"""Bands that a column is longer than the next one, and not followed by a heading."""
_MIN_COLUMN = 0.11
"""Of a column, as a share of the page's width."""
_MIN_FILL = 0.3
"""Of the width between two gutters, by the middle one of a column's lines."""
_MEAN_FILL = 0.45
"""The same, of all columns. Self-made pages: 0.56 to 0.96 where it was text (the emptiest column
0.38), 0.20 to 0.43 where it was a table or a form."""
_SAME = 0.75
"""Share of the longest gutter's height that its companions have."""


class _Run(NamedTuple):
    """White columns x0..x1 of a band, with ink on both sides."""

    x0: int
    x1: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Columns:
    """Rows `top` to `bottom`, within which `gutters`, left to right, part columns of text.

    A gutter is the range of columns within which its seam lies.
    """

    top: int
    bottom: int
    gutters: tuple[tuple[int, int], ...]


def find_columns(ink_HW: NDArray[np.bool_], page_width: int) -> Columns | None:
    """The longest columns of text; None if there are none.

    Args:
        ink_HW: without thin upright rules, which stand in gutters.
        page_width: in pixels of the ink map, of which this may be a part.
    """
    edges = np.linspace(0, len(ink_HW), _NUM_BANDS + 1).round().astype(int)
    if len(ink_HW) < 4 * _NUM_BANDS:
        return None
    inked_BW = np.stack([ink_HW[top:bottom].any(axis=0) for top, bottom in pairwise(edges)])
    chains = [
        (first, runs + _going_on(inked_BW[first + len(runs) :], runs))
        for first, runs in _chains([_white_runs(row, page_width * _MIN_WIDTH) for row in inked_BW])
    ]
    for first, runs in sorted(chains, key=lambda chain: -len(chain[1])):
        if len(runs) < _MIN_BANDS:
            return None
        last = first + len(runs)
        beside = []
        for other, others in chains:
            low, high = max(first, other), min(last, other + len(others))
            if high - low >= _SAME * len(runs):
                beside.append((low, high, _extent(others[low - other : high - other])))
        low, high = max(b[0] for b in beside), min(b[1] for b in beside)
        if high - low < _MIN_BANDS:
            continue
        top, bottom = int(edges[low]), int(edges[high])
        gutters = _that_part_text(ink_HW[top:bottom], [b[2] for b in beside], page_width)
        if gutters:
            return Columns(top=top, bottom=bottom, gutters=gutters)
    return None


def _white_runs(inked_W: NDArray[np.bool_], least: float) -> list[_Run]:
    places = np.flatnonzero(inked_W)
    gaps = np.diff(places)
    return [_Run(int(places[i]) + 1, int(places[i + 1])) for i in np.flatnonzero(gaps - 1 >= least)]


def _chains(runs_B: list[list[_Run]]) -> list[tuple[int, list[_Run]]]:
    """Runs that lie below each other: the first band, and a run for it and those that follow.

    A chain passes over bands without a run of its own, such as one with a picture; whether a seam
    gets through is seen later.
    """
    going_on: list[tuple[int, list[_Run], int]] = []
    closed: list[tuple[int, list[_Run]]] = []
    for band, runs in enumerate(runs_B):
        free, following = list(runs), []
        for first, chain, missed in going_on:
            last = chain[-1]
            best = max(free, key=lambda run: _shared(run, last), default=None)
            if best is not None and _shared(best, last) >= _MIN_SHARED_PX:
                free.remove(best)
                following.append((first, [*chain, best], 0))
            elif missed < _MOST_MISSED:
                following.append((first, [*chain, last], missed + 1))
            else:
                closed.append((first, chain[: len(chain) - missed]))
        following += [(band, [run], 0) for run in free]
        going_on = following
    return closed + [(first, chain[: len(chain) - missed]) for first, chain, missed in going_on]


def _shared(a: _Run, b: _Run) -> int:
    return min(a.x1, b.x1) - max(a.x0, b.x0)


def _going_on(below_BW: NDArray[np.bool_], runs: list[_Run]) -> list[_Run]:
    """The gutter in the bands below its end in which only the columns left of it go on.

    None where that is so little that it may be the heading of what comes next.
    """
    gutter = _Run(*_extent(runs[-2 * _MIN_TAIL :]))
    right = np.flatnonzero(below_BW[:, (gutter.x0 + gutter.x1) // 2 :].any(axis=1))
    count = int(right[0]) if len(right) else len(below_BW)
    return [gutter] * count if count >= _MIN_TAIL else []


def _extent(runs: list[_Run]) -> tuple[int, int]:
    """Where a seam through all runs may wander: the narrow ones say where the gutter is."""
    narrow = sorted(runs, key=lambda run: run.x1 - run.x0)[: max(1, len(runs) // 2)]
    return min(run.x0 for run in narrow), max(run.x1 for run in narrow)


def _that_part_text(
    ink_HW: NDArray[np.bool_], gutters: list[tuple[int, int]], page_width: int
) -> tuple[tuple[int, int], ...]:
    """The gutters, if what they part are columns of text, each of them."""
    inked = np.flatnonzero(ink_HW.any(axis=0))
    if not len(inked):
        return ()
    gutters = sorted(set(gutters))
    middles = [(x0 + x1) // 2 for x0, x1 in gutters]
    sides = [int(inked[0]), *middles, int(inked[-1]) + 1]
    if min(right - left for left, right in pairwise(sides)) < _MIN_COLUMN * page_width:
        return ()
    fills = [_fill(ink_HW[:, left:right]) for left, right in pairwise(sides)]
    is_text = min(fills) >= _MIN_FILL and sum(fills) >= _MEAN_FILL * len(fills)
    return tuple(gutters) if is_text else ()


def _fill(ink_HW: NDArray[np.bool_]) -> float:
    """What share of the width between two gutters lines take, the middle one of them."""
    rows = ink_HW[ink_HW.any(axis=1)]
    if not len(rows):
        return 0.0
    first, last = rows.argmax(axis=1), rows.shape[1] - rows[:, ::-1].argmax(axis=1)
    return float(np.median(last - first)) / rows.shape[1]
