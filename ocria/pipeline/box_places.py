"""Where the lines of a block may stand on its page, and what speaks against each place.

A place is a run of lines between the sides of the box that the model gave. Costs add up like
logarithms of probabilities: an error over its usual size, up to a bound, since a box that is
wrong altogether says no more. Usual sizes are those of 46 self-made pages of 45 kinds (961 blocks):
three errors of four are at most 3 of 511 for the left side, 7 for the right one, 2 for the height
of one line and 3 for the gap between two blocks. Blocks of more lines come out 13 % too low in the
median, which adds up down a column: one block of four is 26 and more from its box, one of a
hundred 130.

Shape suffixes: N lines; P places; A, B places of two blocks, the upper one first.
"""

from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Block
from ocria.vision import Lines, PageLines

Box = tuple[float, float, float, float]
Floats = NDArray[np.float64]
Ints = NDArray[np.intp]

_REACH = 0.2
"""How far lines are looked for above and below a box, as a share of the page's height."""
_TEXT_HEIGHT, _TEXT_AREA = 0.012, 0.8
"""A line's height at most, as a share of the page's, and a letter's area in such heights
squared: how tall a block may be whose box says otherwise."""
_TALLER, _TALLER_THAN_TEXT, _TALLER_BY = 2.5, 1.7, 0.03
"""A place may be as many times as tall as its box or its text's area, and more by the last, as a
share of the page's height."""
_MOST = 60
"""Places that are kept of a block."""

_LEFT, _RIGHT, _SIDE_BOUND = 0.006, 0.012, 3.0
"""Errors of the sides, as shares of the page's width."""
_SHIFT, _SHIFT_BOUND = 0.08, 2.0
"""How far a block is from its box, as a share of the page's height."""
_HEIGHT, _HEIGHT_MORE, _ONE_LINE, _HEIGHT_BOUND = 0.004, 0.2, 0.02, 3.0
"""Of the height: of one line, and for each unit of height above that, as shares of the page's."""
_UNEVEN, _UNEVEN_BOUND = 1.0, 3.0
"""For the widest gap between two lines less the narrowest one, in heights of a line."""
_SIZES, _SIZES_BOUND = 0.5, 2.0
"""For the logarithm of the tallest line over the lowest one."""
_SHORT, _UNFILLED, _UNFILLED_BOUND = 0.15, 3.0, 6.0
"""For a line that ends that far, as a share of the box's width, before its right side, though
another line follows."""
_FEWER, _MORE = 5.0, 1.5
"""For the logarithm of a table's lines over its rows."""
_LETTERS, _LETTERS_BOUND = 0.55, 6.0
"""Of the logarithm of a letter's width, for one over the square root of the number of letters, and
the bound. Where text is right, long paragraphs lie within 0.05 of the page's median."""
_NO_LINES = 10.0
"""For a block that has no place."""
_END, _MOST_LINES = 0.7, 3
"""For a line above the first block of a column or below the last one, and how many count."""

_GAP, _GAP_BOUND, _GAP_UNKNOWN = 0.004, 4.0, 1.0
"""Of the gap between two blocks, as a share of the page's height; and where one has no place."""
_OVER, _OVER_BOUND = 4.0, 3.0
"""For a line that both of two blocks take."""
_SKIPPED = 1.5
"""For a line between two blocks that none of them takes."""

_SHARED_WIDTH, _OVERLAP, _SHARED_HEIGHT = 0.3, 0.7, 0.5
"""Of two boxes in one column: of the narrower one's width at least, and of the lower one's height
at most. Of two in one row: of the lower one's height at least."""

_WITHOUT_LETTERS = frozenset({"table", "figure", "formula"})


class Runs(NamedTuple):
    """Runs of lines, all [P]; lengths are pixels of the level ink.

    Attributes:
        is_empty: no lines: the block comes between two of them, and is not seen.
        cost: of the place as such.
        top: of the first line.
        bottom: of the last one.
        left: of all.
        right: of all.
        line_height: their mean.
        letter_width: logarithm of a letter's width over that; 0 without letters.
    """

    is_empty: NDArray[np.bool_]
    cost: Floats
    top: Floats
    bottom: Floats
    left: Floats
    right: Floats
    line_height: Floats
    letter_width: Floats

    def kept(self, kept: Ints) -> "Runs":
        """These of them."""
        return Runs._make(column[kept] for column in self)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Places:
    """The places of one block.

    Attributes:
        box: the model's, in pixels of the level ink.
        num_letters: of its text, a space counted as half of one; 0 where they tell nothing.
        middles: float [N], of the lines around, ascending.
        runs: the places.
    """

    box: Box
    num_letters: float
    middles: Floats
    runs: Runs

    def weighed(
        self, letter_width: float, spread: float, *, is_first: bool, is_last: bool
    ) -> "Places":
        """The cheapest places, with the costs of what is known of the page.

        Args:
            letter_width: logarithm of the page's usual one.
            spread: of that.
            is_first: no block stands above it in its column.
            is_last: nor below.
        """
        runs = self.runs
        cost = runs.cost.copy()
        if self.num_letters:
            usual = spread + _LETTERS / self.num_letters**0.5
            error = np.abs(runs.letter_width - letter_width) / usual
            smooth = np.where(error < 1, error**2 / 2, error - 0.5)
            cost += np.where(runs.is_empty, 0.0, np.minimum(smooth, _LETTERS_BOUND))
        if is_first:
            above = np.searchsorted(self.middles, runs.top)
            cost += _END * np.minimum(above, _MOST_LINES)
        if is_last:
            below = len(self.middles) - np.searchsorted(self.middles, runs.bottom)
            cost += _END * np.minimum(below, _MOST_LINES)
        ranked = np.argsort(np.where(runs.is_empty, -1.0, cost), kind="stable")
        kept = ranked[: np.count_nonzero(runs.is_empty) + _MOST]
        return replace(self, runs=runs._replace(cost=cost).kept(kept))


def find_places(block: Block, box: Box, page: PageLines) -> Places | None:
    """Where a block may stand; None where there are no lines around.

    Args:
        block: its text and type.
        box: the model's, in pixels of the level ink.
        page: the ink.
    """
    x0, y0, x1, y1 = box
    num_letters = 0.0 if block.type in _WITHOUT_LETTERS else _num_letters(block.text)
    area = _TEXT_AREA * num_letters * (_TEXT_HEIGHT * page.height) ** 2
    text_height = area / max(1.0, x1 - x0)
    reach = _REACH * page.height
    lines = page.lines((x0, y0, x1, max(y1, y0 + text_height)), reach)
    if not len(lines):
        return None
    tallest = max(_TALLER * (y1 - y0), _TALLER_THAN_TEXT * text_height) + _TALLER_BY * page.height
    height_NN = lines.bottom - lines.top[:, None]
    starts = np.abs(lines.top - y0) < reach
    first, last = np.nonzero(
        np.tri(len(lines), dtype=bool).T & starts[:, None] & (height_NN < tallest)
    )
    taken = _taken(lines, first, last, num_letters)
    cost = _box_cost(taken, box, page)
    if num_letters:
        cost += _evenness_cost(lines, first, last, taken.line_height)
    if num_letters and block.type != "code":
        cost += _unfilled_cost(lines, first, last, box)
    if block.type == "table":
        cost += _rows_cost(last - first + 1, (block.html or "").count("<tr"))
    return Places(
        box=box,
        num_letters=num_letters,
        middles=np.sort((lines.top + lines.bottom) / 2),
        runs=_joined(_empty(lines, box), taken._replace(cost=cost)),
    )


def pair_cost(upper: Places, lower: Places, page_height: int) -> Floats:
    """Float [A, B]: what speaks against each two places of blocks above or beside each other.

    Args:
        upper: the block that comes first.
        lower: the other one.
        page_height: in pixels.
    """
    a, b = upper.runs, lower.runs
    is_unknown = a.is_empty[:, None] | b.is_empty

    def gap_cost(error: Floats) -> Floats:
        known = np.minimum(np.abs(error) / (_GAP * page_height), _GAP_BOUND)
        return np.where(is_unknown, _GAP_UNKNOWN, known)

    if not is_above(upper.box, lower.box):
        return gap_cost(_shift(b, lower.box) - _shift(a, upper.box)[:, None])
    cost = gap_cost(b.top - a.bottom[:, None] - (lower.box[1] - upper.box[3]))
    over = a.bottom[:, None] - b.top - 1
    line_height = np.minimum(a.line_height[:, None], b.line_height)
    cost += _OVER * np.clip(over / line_height, 0.0, _OVER_BOUND)
    before = np.searchsorted(lower.middles, b.top)
    skipped = before - np.searchsorted(lower.middles, a.bottom)[:, None]
    return np.asarray(cost + _SKIPPED * np.clip(skipped, 0, _MOST_LINES))


def is_above(box: Box, other: Box) -> bool:
    """Whether `box` stands above `other` in one column."""
    width = min(box[2], other[2]) - max(box[0], other[0])
    narrow = max(1.0, min(box[2] - box[0], other[2] - other[0]))
    low = min(box[3] - box[1], other[3] - other[1])
    comes_first = box[1] + box[3] < other[1] + other[3]
    return comes_first and width > _SHARED_WIDTH * narrow and box[3] - other[1] < _OVERLAP * low


def is_beside(box: Box, other: Box) -> bool:
    """Whether the two stand in one row."""
    height = min(box[3], other[3]) - max(box[1], other[1])
    return height > _SHARED_HEIGHT * min(box[3] - box[1], other[3] - other[1])


def _num_letters(text: str) -> float:
    return sum(0.5 if character.isspace() else 1.0 for character in text)


def _shift(runs: Runs, box: Box) -> Floats:
    """Float [P]: how far below its box the block stands."""
    return (runs.top + runs.bottom - box[1] - box[3]) / 2


def _taken(lines: Lines, first: Ints, last: Ints, num_letters: float) -> Runs:
    """Runs from line `first` to line `last`, each int [P]."""
    heights = lines.bottom - lines.top
    line_height = _sums(heights, first, last) / (last - first + 1)
    width = _sums(lines.width, first, last)
    return Runs(
        is_empty=np.zeros(len(first), np.bool_),
        cost=np.zeros(len(first)),
        top=lines.top[first],
        bottom=lines.bottom[last],
        left=_accumulated(np.minimum, lines.left)[first, last],
        right=_accumulated(np.maximum, lines.right)[first, last],
        line_height=line_height,
        letter_width=np.log(np.maximum(width, 1.0) / (max(1.0, num_letters) * line_height)),
    )


def _empty(lines: Lines, box: Box) -> Runs:
    """The places before, between and behind all lines."""
    between = (lines.bottom[:-1] + lines.top[1:]) / 2
    at = np.concatenate([lines.top[:1] - 1, between, lines.bottom[-1:] + 1])
    every = np.ones_like(at)
    return Runs(
        is_empty=np.ones(len(at), np.bool_),
        cost=_NO_LINES * every,
        top=at,
        bottom=at,
        left=box[0] * every,
        right=box[2] * every,
        line_height=float(np.median(lines.bottom - lines.top)) * every,
        letter_width=0.0 * every,
    )


def _joined(one: Runs, other: Runs) -> Runs:
    return Runs._make(np.concatenate(columns) for columns in zip(one, other, strict=True))


def _box_cost(runs: Runs, box: Box, page: PageLines) -> Floats:
    """Where the model said that the block is, and how tall."""
    x0, y0, x1, y1 = box
    height = max(0.0, y1 - y0)
    more = max(0.0, height - _ONE_LINE * page.height)
    taller = np.abs(runs.bottom - runs.top - height)
    return np.asarray(
        np.minimum(np.abs(runs.left - x0) / (_LEFT * page.width), _SIDE_BOUND)
        + np.minimum(np.abs(runs.right - x1) / (_RIGHT * page.width), _SIDE_BOUND)
        + np.minimum(np.abs(_shift(runs, box)) / (_SHIFT * page.height), _SHIFT_BOUND)
        + np.minimum(taller / (_HEIGHT * page.height + _HEIGHT_MORE * more), _HEIGHT_BOUND)
    )


def _evenness_cost(lines: Lines, first: Ints, last: Ints, line_height: Floats) -> Floats:
    """Lines of one block are of one size and equally far apart."""
    gaps = np.maximum(0.0, lines.top[1:] - lines.bottom[:-1])
    uneven = np.zeros(len(first))
    has_gap = last > first
    a, b = first[has_gap], last[has_gap] - 1
    spread = _accumulated(np.maximum, gaps) - _accumulated(np.minimum, gaps)
    uneven[has_gap] = spread[a, b] / line_height[has_gap]
    heights = np.log(lines.bottom - lines.top)
    sizes = (_accumulated(np.maximum, heights) - _accumulated(np.minimum, heights))[first, last]
    return np.asarray(
        _UNEVEN * np.minimum(uneven, _UNEVEN_BOUND) + _SIZES * np.minimum(sizes, _SIZES_BOUND)
    )


def _unfilled_cost(lines: Lines, first: Ints, last: Ints, box: Box) -> Floats:
    """Text goes on in the line that it is in as long as there is room."""
    is_short = lines.right < box[2] - _SHORT * (box[2] - box[0])
    num_short = _sums(is_short.astype(np.float64), first, last - 1)
    return np.minimum(_UNFILLED * num_short, _UNFILLED_BOUND)


def _rows_cost(num_lines: Ints, num_rows: int) -> Floats:
    """A row of a table has a line or more."""
    more = np.log(num_lines / max(1, num_rows))
    return np.minimum(np.where(more < 0, -_FEWER * more, _MORE * more), _LETTERS_BOUND)


def _sums(values: Floats, first: Ints, last: Ints) -> Floats:
    """Float [P]: sums of `values` from `first` to `last`."""
    total = np.append(0.0, values.cumsum())
    return np.asarray(total[last + 1] - total[first])


def _accumulated(function: np.ufunc, values: Floats) -> Floats:
    """Float [N, N]: the smallest or largest of `values` from a row's index to a column's."""
    nothing = np.inf if function is np.minimum else -np.inf
    upper = np.where(np.tri(len(values), dtype=bool).T, values, nothing)
    return np.asarray(function.accumulate(upper, axis=1))
