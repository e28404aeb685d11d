"""Finds lines that the picture shows and no block's text accounts for: what was left out silently.

Boxes were snapped to the lines that their blocks mean, but one of ten still lies beside, so no line
is lost merely because no box covers it. Every block pays for lines with its letters: those under
its box, and with what it has to spare those of its column. Lines that nobody pays for are lost,
whether no box is there or one whose text is too short for it.
Thresholds were set on self-made pages only (docs/log.md).
"""

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Page
from ocria.vision import LineCells, PageLines

_DENSITY = 0.7, 1.1
"""Letters for each height of a line that it is wide: between these the page's own is believed. It
is 0.9 to 1.5 on nine of ten pages, but where it is high, part of the lines was not seen."""
_WINDOW = 400
"""Letters in a row over which density is measured: a box that is off matters little there."""
_SLACK, _SLACK_LETTERS = 1.1, 4
"""A block pays for more than it has: nine of ten paragraphs lie within 1.12 of the page's own."""
_NEAR = 0.04, 0.006
"""How far a block pays, as shares of the page's width and height. Snapped boxes end with the ink;
of those that are wrong most are off by lines."""
_REACHES = (0.0, 0.5, 1.0)
"""Nearest first, in shares of `_NEAR`."""
_SPARE = 0.95
"""Of a column some boxes stay off by lines, one pushing the next: a block that has spent less than
this share of its letters pays for the rest of its column."""
_TOWARDS_MIDDLE = 1e-3
"""Cells near the middle of a box are paid first."""
_AROUND_UNTOLD = 0.25
"""In shares of `_NEAR`: ink that close to a figure or formula belongs to it."""
_LEAST_CELLS, _LEAST_LETTERS = 5, 10
"""Of a line that is lost."""
_APART, _TOO_NEAR, _UNLIKE = 4.0, 0.5, 1.6
"""Heights between lines of one text, and how much taller one is at most."""
_LEAST_LOST, _LEAST_LINES, _LEAST_SHARE = 60, 3, 0.02
"""Letters, lines, and share of the page's letters from which on a page is doubtful."""


class Loss(NamedTuple):
    """Text that was left out.

    Attributes:
        num_lines: about how many lines, at least three if any.
        share: of the letters that the page shows.
    """

    num_lines: int
    share: float


NO_LOSS = Loss(0, 0.0)


def find_loss(page: Page, lines: PageLines) -> Loss:
    """What of the page's text lines stands in none of its blocks.

    Args:
        page: as it was read, its boxes snapped to the ink.
        lines: of its picture.
    """
    cells = lines.cells()
    blocks = _Blocks.of(page, lines)
    if not cells.num_lines or blocks is None:
        return NO_LOSS
    far_CB = _far(cells, blocks, lines)
    if len(blocks.letters_B):
        letters_C = cells.ems_C * _density(cells, blocks, far_CB)
        lost_C = _unpaid(letters_C, blocks, far_CB)
    else:
        letters_C, lost_C = cells.ems_C * _DENSITY[0], np.ones(len(cells.ems_C), np.bool_)
    lost = _of_one_text(cells, lost_C, letters_C)
    share = float(min(1.0, lost.sum() / letters_C.sum()))
    if lost.sum() < _LEAST_LOST or len(lost) < _LEAST_LINES or share < _LEAST_SHARE:
        return NO_LOSS
    return Loss(len(lost), share)


class _Blocks(NamedTuple):
    """Blocks with boxes.

    Attributes:
        box_B4: in pixels of the level ink.
        letters_B: how many each has, without blanks.
        is_untold_B: figures and formulas, whose ink no letters count.
    """

    box_B4: NDArray[np.float64]
    letters_B: NDArray[np.float64]
    is_untold_B: NDArray[np.bool_]

    @classmethod
    def of(cls, page: Page, lines: PageLines) -> "_Blocks | None":
        """None where the page has blocks, but nothing to tell where they stand."""
        boxed = [block for block in page.blocks if block.bbox]
        if (page.blocks and not boxed) or page.width_pt <= 0 or page.height_pt <= 0:
            return None
        size = (page.width_pt, page.height_pt) * 2
        boxes = np.array([block.bbox for block in boxed]).reshape(-1, 4) / size
        return cls(
            np.array([lines.level(tuple(box)) for box in boxes.tolist()]).reshape(-1, 4),
            np.array([float(len("".join(block.text.split()))) for block in boxed]),
            np.array([block.type in ("figure", "formula") for block in boxed]),
        )


def _far(cells: LineCells, blocks: _Blocks, lines: PageLines) -> NDArray[np.float64]:
    """float [C, B]: 0 in a block's box, 1 as far from it as it pays, infinite beside its column.

    Towards the box's middle it is less by up to a thousandth.
    """
    sides = lines.width, lines.height
    x0, y0, x1, y1 = (blocks.box_B4 / (sides * 2)).T
    x_C1, y_C1 = cells.x_C[:, None] / sides[0], cells.y_C[:, None] / sides[1]
    across = np.maximum(0.0, np.maximum(x0 - x_C1, x_C1 - x1)) / _NEAR[0]
    down = np.maximum(0.0, np.maximum(y0 - y_C1, y_C1 - y1)) / _NEAR[1]
    far_CB = np.maximum(across, down) + _TOWARDS_MIDDLE * np.abs(y_C1 - (y0 + y1) / 2)
    return np.where(across <= 1.0, far_CB, np.inf)


def _density(cells: LineCells, blocks: _Blocks, far_CB: NDArray[np.float64]) -> float:
    """Letters of the page for each height of a line that it is wide: the median of windows."""
    low, high = _DENSITY
    nearest_C = far_CB.argmin(axis=1)
    is_near_C = far_CB[np.arange(len(nearest_C)), nearest_C] <= 1.0
    ems_B = np.bincount(
        nearest_C[is_near_C], cells.ems_C[is_near_C], minlength=len(blocks.letters_B)
    )
    told = ~blocks.is_untold_B & (ems_B > 0)
    letters = np.cumsum(np.append(0.0, blocks.letters_B[told]))
    ems = np.cumsum(np.append(0.0, ems_B[told]))
    ends = np.searchsorted(letters, letters + _WINDOW)
    starts = np.flatnonzero(ends < len(letters))
    if not len(starts):
        return low
    ends = ends[starts]
    density = np.median((letters[ends] - letters[starts]) / (ems[ends] - ems[starts]))
    return float(np.clip(density, low, high))


def _unpaid(
    letters_C: NDArray[np.float64], blocks: _Blocks, far_CB: NDArray[np.float64]
) -> NDArray[np.bool_]:
    """bool [C]: cells for which no block has letters left."""
    open_C = np.asarray(np.all(far_CB[:, blocks.is_untold_B] > _AROUND_UNTOLD, axis=1))
    told_B = np.where(blocks.is_untold_B, 0.0, blocks.letters_B)
    usual_B, spare_B = told_B * _SLACK + _SLACK_LETTERS * (told_B > 0), told_B * _SPARE
    paid_B = np.zeros(len(told_B))
    for limit_B, reaches in ((usual_B, _REACHES), (spare_B, (math.inf,))):
        left_B = np.maximum(0.0, limit_B - paid_B)
        for reach in reaches:
            # A block that is full sends its cells on to the next one within reach.
            while (paid := _pay(letters_C, far_CB, reach, open_C, left_B)) is not None:
                paid_B += paid
    return open_C


def _pay(
    letters_C: NDArray[np.float64],
    far_CB: NDArray[np.float64],
    reach: float,
    open_C: NDArray[np.bool_],
    left_B: NDArray[np.float64],
) -> NDArray[np.float64] | None:
    """Each open cell asks the nearest block that has letters left, nearer cells before others.

    Changes `open_C` and `left_B`, in which full blocks become 0. Returns what each block has paid,
    [B]; None if no cell had one to ask.
    """
    cell_N = np.flatnonzero(open_C)
    can_pay_NB = (far_CB[cell_N] <= reach + _TOWARDS_MIDDLE) & (left_B > 0)
    far_NB = np.where(can_pay_NB, far_CB[cell_N], np.inf)
    block_N = far_NB.argmin(axis=1)
    far_N = far_NB[np.arange(len(cell_N)), block_N]
    order = np.lexsort((far_N, block_N))
    order = order[np.isfinite(far_N[order])]
    if not len(order):
        return None
    cell_N, block_N = cell_N[order], block_N[order]
    is_paid_N = _running(letters_C[cell_N], block_N) <= left_B[block_N]
    open_C[cell_N[is_paid_N]] = False
    paid_N = np.where(is_paid_N, letters_C[cell_N], 0.0)
    paid_B = np.bincount(block_N, paid_N, minlength=len(left_B)).astype(np.float64)
    left_B -= paid_B
    left_B[block_N[~is_paid_N]] = 0.0
    return paid_B


def _running(values_N: NDArray[np.float64], group_N: NDArray[np.intp]) -> NDArray[np.float64]:
    """Sums of values up to each one within its group; groups stand together."""
    total_N = np.cumsum(values_N)
    is_first_N = np.append(True, group_N[1:] != group_N[:-1])
    before_N = np.maximum.accumulate(np.where(is_first_N, total_N - values_N, 0.0))
    return np.asarray(total_N - before_N)


def _of_one_text(
    cells: LineCells, lost_C: NDArray[np.bool_], letters_C: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Letters of each lost line that has a like one above or below; words in drawings have none."""
    line_N, num_lines = cells.line_C[lost_C], cells.num_lines
    count_L = np.bincount(line_N, minlength=num_lines)
    letters_L = np.bincount(line_N, letters_C[lost_C], minlength=num_lines)
    lines = np.flatnonzero((count_L >= _LEAST_CELLS) & (letters_L >= _LEAST_LETTERS))
    y = np.bincount(line_N, cells.y_C[lost_C], minlength=num_lines)[lines] / count_L[lines]
    tall = np.bincount(line_N, cells.height_C[lost_C], minlength=num_lines)[lines] / count_L[lines]
    left_L, right_L = np.full(num_lines, np.inf), np.zeros(num_lines)
    np.minimum.at(left_L, line_N, cells.x_C[lost_C])
    np.maximum.at(right_L, line_N, cells.x_C[lost_C])
    left, right = left_L[lines], right_L[lines]
    taller = np.maximum(tall[:, None], tall)
    down = np.abs(y[:, None] - y)
    shared = np.minimum(right[:, None], right) - np.maximum(left[:, None], left)
    narrow = np.minimum((right - left)[:, None], right - left)
    is_like = (down < _APART * taller) & (down > _TOO_NEAR * taller)
    is_like &= (taller < _UNLIKE * np.minimum(tall[:, None], tall)) & (shared > 0.5 * narrow)
    return np.asarray(letters_L[lines][is_like.any(axis=1)])
