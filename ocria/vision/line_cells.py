"""Lines of text on a page, as its picture shows them, whoever reads them.

A page is looked at in upright strips two or three letters wide. Within one even a curled line is
level, and paper lies between it and the next. Ink between two white rows of a strip is a cell;
cells that go on from strip to strip are a line. Pictures give cells too tall, rules none, noise few
that go on. Lines between two given sides are told better by `text_lines.py`; here no sides are
known. Thresholds were set on self-made pages only.

Shape suffixes: H, W pixels of the ink map; S strips, left to right; C cells, strip by strip.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocria.vision.seams import without_rules

_STRIP = 0.01
"""Width of a strip, as a share of the page's long side."""
_LOWEST, _HIGHEST = 0.0028, 0.03
"""Height of a cell, as a share of the page's long side: 2.4 to 25 points on A4."""
_MOST_FILLED = 0.8
"""Share of a cell that letters ink."""
_LEAST_CELLS = 4
"""Of a line."""
_STEP = 0.4
"""Between the middles of two neighbours of a line, in heights of the taller one."""
_UNLIKE = 3
"""Times the lower one's height is the taller one's at most: `m` beside `pj`."""
_REACH = 2
"""Strips from a cell to the next; one between two words may be white."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class LineCells:
    """The cells of all lines of a page.

    Attributes:
        x_C: middles, float, in pixels of the ink, as are the next two.
        y_C: the same.
        height_C: from top to bottom.
        ems_C: widths in heights; letters are about as many.
        line_C: int, which line each belongs to.
        num_lines: how many there are.
    """

    x_C: NDArray[np.float64]
    y_C: NDArray[np.float64]
    height_C: NDArray[np.float64]
    ems_C: NDArray[np.float64]
    line_C: NDArray[np.intp]
    num_lines: int


def line_cells(ink_WH: NDArray[np.bool_]) -> LineCells:
    """The cells of lines of text in ink without upright rules, of about 1 to 4 million pixels."""
    width, height = ink_WH.shape
    long = max(height, width)
    strip = max(4, round(long * _STRIP))
    num_strips = width // strip
    strips = without_rules(ink_WH)[: num_strips * strip].reshape(num_strips, strip, height)
    count_SH = strips.sum(axis=1, dtype=np.uint16)
    edges = np.diff((count_SH > 0).view(np.int8), axis=1, prepend=0, append=0)
    strip_C, top_C = np.nonzero(edges == 1)
    bottom_C = np.nonzero(edges == -1)[1]
    height_C = bottom_C - top_C
    total = np.cumsum(count_SH, axis=1, dtype=np.int64)
    inked_C = total[strip_C, bottom_C - 1] - total[strip_C, top_C] + count_SH[strip_C, top_C]
    is_text = (height_C >= _LOWEST * long) & (height_C <= _HIGHEST * long)
    is_text &= inked_C < _MOST_FILLED * strip * height_C
    strip_C, height_C = strip_C[is_text], height_C[is_text]
    middle_C = (top_C + bottom_C)[is_text] / 2
    line_C = _linked(strip_C, middle_C, height_C, height)
    is_long = np.bincount(line_C)[line_C] >= _LEAST_CELLS if len(line_C) else line_C > 0
    lines, line_C = np.unique(line_C[is_long], return_inverse=True)
    return LineCells(
        x_C=(strip_C[is_long] + 0.5) * strip,
        y_C=middle_C[is_long],
        height_C=height_C[is_long].astype(np.float64),
        ems_C=strip / height_C[is_long],
        line_C=line_C,
        num_lines=len(lines),
    )


def _linked(
    strip_C: NDArray[np.intp],
    middle_C: NDArray[np.float64],
    height_C: NDArray[np.intp],
    page_height: int,
) -> NDArray[np.intp]:
    """int [C]: for each cell the first one of its line."""
    cells = np.arange(len(strip_C))
    before_C = cells
    far = 4.0 * page_height
    place_C = strip_C * far + middle_C
    for back in range(_REACH, 0, -1):
        above_C = np.searchsorted(place_C, place_C - back * far) - 1
        nearest_C, gap_C = before_C, np.full(len(cells), np.inf)
        for candidate_C in (above_C, above_C + 1):
            other_C = np.clip(candidate_C, 0, max(0, len(cells) - 1))
            gap = np.abs(middle_C[other_C] - middle_C)
            tall = np.maximum(height_C[other_C], height_C)
            fits = (strip_C[other_C] == strip_C - back) & (gap <= _STEP * tall) & (gap < gap_C)
            fits &= tall <= _UNLIKE * np.minimum(height_C[other_C], height_C)
            nearest_C, gap_C = np.where(fits, other_C, nearest_C), np.where(fits, gap, gap_C)
        before_C = nearest_C
    while not np.array_equal(first_C := before_C[before_C], before_C):
        before_C = first_C
    return before_C
