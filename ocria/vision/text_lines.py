"""Where lines of print stand: the ink of a page made level, and its rows between two sides.

A scan's skew is taken out by moving columns up or down. Thresholds were set on self-made pages
only.

Shape suffixes: H, W pixels of the level ink; S slabs of columns; R, C rows and columns of a
window; N lines; M pieces of lines, parted by wide gaps.
"""

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from ocria.vision.ink import ink_maps
from ocria.vision.line_cells import LineCells, line_cells
from ocria.vision.regions import MEASURED_PIXELS
from ocria.vision.seams import without_rules

Box = tuple[float, float, float, float]

_RULE_LENGTH = 0.04
"""Of an upright rule, as a share of the page's long side."""

_SLAB_PX = 32
_MOST_SKEW = 0.06
"""Rise over run: 3.4 degrees."""
_COARSE, _FINE = 0.006, 0.001
_MUST_GAIN = 1.02
"""Contrast between rows: by so much a leaning page must be better told than a level one."""

_VALLEY = 0.25
"""Of the lower of two peaks of ink: a row with less between them parts two lines."""
_ONE_LINE = 1.2
"""What is no taller, by the page's lines, is not looked into."""
_VALLEY_OF_TALL, _TALL, _PEAK = 0.55, 1.6, 0.3
"""The same within what is taller than so many lines, and how much of the highest peak others are:
stems of tall letters are none."""
_LEAST_PX = 4
_MOST_TYPICAL = 1.5
"""Of the page's lines, by those of a column: where pictures stand in it, they are no measure."""
_SLIGHT, _NEAR = 0.4, 0.25
"""Of a line's height: what is lower than the one and nearer than the other belongs to the line
beside it, such as dots and accents."""
_MOST_JOINED = 1.3
"""Of a line's height, by a line with what was joined to it."""

_MARGIN, _REACH = 0.006, 0.03
"""How far beside the two sides lines are looked for, and how far they are followed from there, as
shares of the page's width."""
_DOT = 0.06
"""Of a line's height squared: three in a row with less ink lead to a number, and are no letters."""
_WIDE_GAP = 1.0
"""Between two pieces of a line, as a share of its height."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Lines:
    """Lines from top to bottom, each float [N], in pixels of the level ink.

    Attributes:
        top: first row with ink.
        bottom: the row behind the last one.
        left: first column with ink.
        right: the column behind the last one.
        width: from left to right, wide gaps left out.
    """

    top: NDArray[np.float64]
    bottom: NDArray[np.float64]
    left: NDArray[np.float64]
    right: NDArray[np.float64]
    width: NDArray[np.float64]

    def __len__(self) -> int:
        return len(self.top)


class PageLines:
    """The ink of uint8 [H, W, 3], or of its luma, with its lines of print made level.

    Attributes:
        height: of the ink map, in pixels.
        width: the same.
        slope: rows that lines sank from one column to the next.
        line_height: the usual one.
        ink_HW: bool, the page's ink map as others use it, not made level.
    """

    def __init__(self, pixels: NDArray[np.uint8]) -> None:
        self.ink_HW, pale_HW = ink_maps(pixels, MEASURED_PIXELS)
        # Pale, blurred print is wanted here; that something stands there is known.
        ink_HW = without_rules(pale_HW, _RULE_LENGTH)
        self.height, self.width = ink_HW.shape
        # Whole rows are added fast, so what is counted across stands upright in memory.
        ink_WH = np.ascontiguousarray(ink_HW.T)
        count_SH = _slab_counts(ink_WH)
        self.slope = _slope(count_SH, self.width)
        self._pad = math.ceil(abs(self.slope) * self.width / 2)
        self._level_WH = ink_WH
        if self._pad:
            self._level_WH = _levelled(ink_WH, self.slope, self._pad)
            ink_HW, count_SH = np.ascontiguousarray(self._level_WH.T), _slab_counts(self._level_WH)
        self.line_height = _line_height(count_SH > 0)
        # Ink above each row and left of each column: counts of any part are differences.
        self._above_HW = _running_sums(ink_HW)
        self._before_WH = _running_sums(self._level_WH)

    def cells(self) -> LineCells:
        """The cells of all lines of the page."""
        return line_cells(self._level_WH)

    def level(self, box: Box) -> Box:
        """A box in fractions of the page, in pixels of the level ink."""
        x0, x1 = box[0] * self.width, box[2] * self.width
        y0, y1 = (y * self.height + self._pad for y in (box[1], box[3]))
        sunk = self.slope * ((x0 + x1) / 2 - self.width / 2)
        # What is around a leaning block is taller than the block.
        excess = min(abs(self.slope) * (x1 - x0), 0.7 * (y1 - y0)) / 2
        return x0, y0 - sunk + excess, x1, y1 - sunk - excess

    def on_page(self, box: Box) -> Box:
        """The box around a box of the level ink, in fractions of the page."""
        x0, y0, x1, y1 = box
        sunk = [self.slope * (x - self.width / 2) - self._pad for x in (x0, x1)]
        ends = (x0, y0 + min(sunk), x1, y1 + max(sunk))
        sides = (self.width, self.height) * 2
        a, b, c, d = (min(1.0, max(0.0, end / side)) for end, side in zip(ends, sides, strict=True))
        return a, b, c, d

    def lines(self, box: Box, reach: float) -> Lines:
        """Lines between the left and the right side of a box, from `reach` above to below it.

        Args:
            box: in pixels of the level ink.
            reach: in the same.
        """
        margin, reach_px = self.width * _MARGIN, int(self.width * _REACH)
        x0, x1 = (
            min(self.width, max(0, int(side))) for side in (box[0] - margin, box[2] + margin + 1)
        )
        first = max(0, int(box[1] - reach))
        behind = max(first, int(box[3] + reach) + 1)
        count_R = self._before_WH[x1, first:behind] - self._before_WH[x0, first:behind]
        bands = _bands(count_R.astype(np.int32), self.line_height) + first
        if not len(bands):
            return Lines(**dict.fromkeys(("top", "bottom", "left", "right", "width"), np.empty(0)))
        left = max(0, x0 - reach_px)
        above_HC = self._above_HW[:, left : x1 + reach_px]
        count_NC = above_HC[bands[:, 1]] - above_HC[bands[:, 0]]
        lines = _lines(count_NC.astype(np.int32), bands, x0 - left, x1 - left)
        return Lines(
            top=lines[0],
            bottom=lines[1],
            left=lines[2] + left,
            right=lines[3] + left,
            width=lines[4],
        )


def _running_sums(ink: NDArray[np.bool_]) -> NDArray[np.uint16]:
    """Uint16 [rows + 1, columns]: ink in each column before each row."""
    sums = np.zeros((len(ink) + 1, ink.shape[1]), np.uint16)
    for row, before, after in zip(ink.view(np.uint8), sums, sums[1:], strict=False):
        np.add(before, row, out=after)
    return sums


def _slab_counts(ink_WH: NDArray[np.bool_]) -> NDArray[np.int16]:
    """Int16 [S, H]: ink in each row of each slab; the last one may be narrower."""
    width, height = ink_WH.shape
    whole = width // _SLAB_PX
    slabs = ink_WH[: whole * _SLAB_PX].reshape(whole, _SLAB_PX, height)
    count_SH = slabs.sum(axis=1, dtype=np.int16)
    rest = ink_WH[whole * _SLAB_PX :].sum(axis=0, dtype=np.int16)
    return np.vstack([count_SH, rest]) if width % _SLAB_PX else count_SH


def _slope(count_SH: NDArray[np.int16], width: int) -> float:
    """Rows a column that lines sink: where rows of ink are told best from the gaps between."""
    of_two_SH = np.add.reduceat(count_SH, np.arange(0, len(count_SH), 2), axis=0)
    slopes = np.arange(-_MOST_SKEW, _MOST_SKEW + 1e-9, _COARSE)
    coarse = _sharpest(of_two_SH, width, 2 * _SLAB_PX, slopes)
    fine = np.arange(coarse - _COARSE, coarse + _COARSE + 1e-9, _FINE)
    return _sharpest(count_SH, width, _SLAB_PX, np.append(0.0, fine))


def _sharpest(
    count_SH: NDArray[np.int16], width: int, slab_px: int, slopes: NDArray[np.float64]
) -> float:
    """The slope that makes rows differ most from their neighbours; 0 where none is much better."""
    height = count_SH.shape[1]
    edges = np.arange(0, width, slab_px)
    middles_S = (edges + np.append(edges[1:], width)) / 2 - width / 2
    pad = math.ceil(np.abs(slopes).max() * width / 2)

    def sharpness(slope: float) -> float:
        total = np.zeros(height + 2 * pad, np.int32)
        for count_H, middle in zip(count_SH, middles_S, strict=True):
            first = pad - round(slope * middle)
            total[first : first + height] += count_H
        return float((np.diff(total).astype(np.float64) ** 2).sum())

    best = float(max(slopes, key=sharpness))
    return best if sharpness(best) > _MUST_GAIN * sharpness(0.0) else 0.0


def _levelled(ink_WH: NDArray[np.bool_], slope: float, pad: int) -> NDArray[np.bool_]:
    width, height = ink_WH.shape
    sunk_W = np.round(slope * (np.arange(width) + 0.5 - width / 2)).astype(np.intp)
    level_WH = np.zeros((width, height + 2 * pad), np.bool_)
    for a, b in pairwise([0, *(np.flatnonzero(np.diff(sunk_W)) + 1).tolist(), width]):
        first = pad - int(sunk_W[a])
        level_WH[a:b, first : first + height] = ink_WH[a:b]
    return level_WH


def _line_height(inked_SH: NDArray[np.bool_]) -> float:
    """The median height of what stands in slabs, parted by rows without ink."""
    ends = np.flatnonzero(np.diff(np.pad(inked_SH, ((0, 0), (1, 1))).ravel().view(np.int8)))
    heights = ends[1::2] - ends[::2]
    heights = heights[heights >= _LEAST_PX]
    return float(np.median(heights)) if len(heights) else 0.0


def _bands(count_R: NDArray[np.int32], line_height: float) -> NDArray[np.intp]:
    """Rows of lines, int [N, 2], first and behind the last, from the ink in each row."""
    edges = np.flatnonzero(np.diff(np.pad(count_R > 0, 1).view(np.int8))).reshape(-1, 2).tolist()
    bands = [
        part
        for a, b in edges
        for part in (
            _parted(count_R, a, b, _VALLEY, _LEAST_PX)
            if b - a > _ONE_LINE * line_height
            else [(a, b)]
        )
    ]
    typical = min(_typical_height(bands), _MOST_TYPICAL * line_height)
    parts = [
        part
        for a, b in bands
        for part in (
            _parted(count_R, a, b, _VALLEY_OF_TALL, max(_LEAST_PX, int(0.6 * typical)), _PEAK)
            if b - a > _TALL * typical
            else [(a, b)]
        )
    ]
    return np.array(_joined(parts, typical), np.intp).reshape(-1, 2)


def _typical_height(bands: list[tuple[int, int]]) -> float:
    """The height that half of all rows with ink lie in bands of at most."""
    heights = np.sort([b - a for a, b in bands])
    if not len(heights):
        return 0.0
    rows = heights.cumsum()
    return float(heights[np.searchsorted(rows, rows[-1] / 2)])


def _parted(
    count_R: NDArray[np.int32], a: int, b: int, valley: float, least: int, least_peak: float = 0.0
) -> list[tuple[int, int]]:
    """Rows a..b cut where there is little ink between two peaks, no part lower than `least`.

    A peak is no less than `least_peak` of the highest one.
    """
    if b - a < 2 * least:
        return [(a, b)]
    part = count_R[a:b]
    before, after = np.maximum.accumulate(part), np.maximum.accumulate(part[::-1])[::-1]
    peak = np.minimum(before, after)
    depth = np.where(peak < least_peak * before[-1], 1.0, part / peak)
    depth = depth[least : len(part) - least + 1]
    cut = int(depth.argmin())
    if depth[cut] >= valley:
        return [(a, b)]
    cut += a + least
    return _parted(count_R, a, cut, valley, least, least_peak) + _parted(
        count_R, cut, b, valley, least, least_peak
    )


def _joined(bands: list[tuple[int, int]], typical: float) -> list[tuple[int, int]]:
    """Slight bands joined to the lines that they belong to."""
    joined: list[tuple[int, int]] = []
    for a, b in bands:
        top, bottom = joined[-1] if joined else (a, a)
        is_slight = min(b - a, bottom - top) < _SLIGHT * typical
        is_near = a - bottom <= _NEAR * typical and b - top < _MOST_JOINED * typical
        if joined and is_slight and is_near:
            joined[-1] = (top, b)
        else:
            joined.append((a, b))
    return [(a, b) for a, b in joined if b - a > 1]


def _lines(
    count_NC: NDArray[np.int32], bands: NDArray[np.intp], x0: int, x1: int
) -> NDArray[np.float64]:
    """Top, bottom, left, right and width of the bands' lines between columns x0 and x1: [5, N].

    A piece of a line whose middle lies between them is taken whole; a line without any such is
    another column's.
    """
    height_N = bands[:, 1] - bands[:, 0]
    padded = np.pad(count_NC, ((0, 0), (1, 1)))
    columns = padded.shape[1]
    ends = np.flatnonzero(np.diff((padded.ravel() > 0).view(np.int8))).reshape(-1, 2)
    area = np.add.reduceat(padded.ravel(), (ends + 1).ravel())[::2]
    line, starts, stops = ends[:, 0] // columns, ends[:, 0] % columns, ends[:, 1] % columns
    is_dot = area < _DOT * height_N[line] ** 2
    of_three = is_dot[:-2] & is_dot[1:-1] & is_dot[2:] & (line[:-2] == line[2:])
    is_leader = np.zeros(len(line), np.bool_)
    for shift in range(3):
        is_leader[shift : len(of_three) + shift] |= of_three
    is_new = np.ones(len(line), np.bool_)
    is_new[1:] = (np.diff(line) > 0) | (starts[1:] - stops[:-1] > _WIDE_GAP * height_N[line[1:]])
    first_M = np.flatnonzero(is_new)
    last_M = np.append(first_M[1:], len(line)) - 1
    line_M, left_M, right_M = line[first_M], starts[first_M], stops[last_M]
    middle_M = (left_M + right_M) / 2
    before = np.where(is_new, starts, np.append(0, stops[:-1]))
    width_M = right_M - left_M - np.add.reduceat(np.where(is_leader, stops - before, 0), first_M)
    inside = np.flatnonzero((middle_M > x0) & (middle_M < x1))
    if not len(inside):
        return np.empty((5, 0))
    line_M, left_M, right_M, width_M = (each[inside] for each in (line_M, left_M, right_M, width_M))
    first = np.flatnonzero(np.append(True, np.diff(line_M) > 0))
    last = np.append(first[1:], len(line_M)) - 1
    found = line_M[first]
    lines = np.stack(
        [
            bands[found, 0],
            bands[found, 1],
            left_M[first],
            right_M[last],
            np.add.reduceat(width_M, first),
        ]
    ).astype(np.float64)
    return lines
