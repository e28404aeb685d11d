"""A page cut into regions that can be read one by one: columns apart, long text in two.

Regions come in reading order. No cut crosses ink, so no line and no row of a table is cut; a page
that has no such place stays whole. A table that is most of a page is cut between its rows.
Thresholds were set on self-made pages only.

Shape suffixes: H, W pixels of the ink map.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ocria.vision.gutters import find_columns
from ocria.vision.ink import ink_map
from ocria.vision.seams import cheapest_seam, without_rules

Box = tuple[float, float, float, float]

MEASURED_PIXELS = 4_000_000
"""A4 at 200 dpi: at half of that the gap between two lines of small print is gone."""

_MARGIN = 0.02
"""Paper left around a region's ink, as a share of the page's long side."""

_LARGEST = 0.55
"""Of the page's area; larger regions are cut in two between lines."""
_TALLEST = 1.8
"""Height over width; the shapes of pages that models are trained on end about there."""
_REACH = 0.14
"""How far from its middle a region may be cut, as a share of its height."""
_PART_OF_TABLE = 0.04
"""Of a table's height that a region must hold to be a part of it: more than a margin."""
_MOST = 40
_SMALLEST_PX = 128
"""The short side of a picture that is worth cutting."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Region:
    """A part of a page.

    Attributes:
        rgb: uint8 [H, W, 3]; paper where other regions reach into the rectangle.
        box: x0, y0, x1, y1 in fractions of the page's width and height.
        goes_on: it begins within a table that the region before it has begun.
    """

    rgb: NDArray[np.uint8]
    box: Box
    goes_on: bool = False


def page_regions(rgb: NDArray[np.uint8], uncut: Sequence[Box] = ()) -> tuple[Region, ...]:
    """Cuts uint8 [H, W, 3] into 2 to 40 regions in reading order; none if it cannot be cut.

    Args:
        rgb: the page.
        uncut: boxes that no cut may cross, such as tables, in fractions of width and height. One
            that is most of what stands on the page is cut between lines, but not into columns.
    """
    if min(rgb.shape[:2]) < _SMALLEST_PX:
        return ()
    ink_HW = ink_map(rgb, MEASURED_PIXELS)
    whole = _whole(ink_HW, uncut)
    pieces, large = _by_columns(whole), [box for box in uncut if _is_large(box, whole)]
    if large:
        lines = _whole(ink_HW, [box for box in uncut if box not in large])
        again = (lines.again(piece) for piece in pieces)
        pieces = [piece for piece in again if piece.box]
    if len(pieces) == 1:
        pieces = _halves(pieces[0])
    pieces = [part for piece in pieces for part in _by_size(piece, ink_HW.size)]
    if not 2 <= len(pieces) <= _MOST:
        return ()
    goes_on = [False, *(any(_share_table(*two, box) for box in large) for two in pairwise(pieces))]
    return tuple(_region(rgb, *both) for both in zip(pieces, goes_on, strict=True))


def column_boxes(ink_HW: NDArray[np.bool_], uncut: Sequence[Box] = ()) -> NDArray[np.float64]:
    """Where columns of text stand, and what is above and below them: [K, 4], in reading order.

    Args:
        ink_HW: a page's ink map.
        uncut: as for `page_regions`.

    Returns:
        Boxes in fractions of width and height; none where the page has one column.
    """
    pieces = _by_columns(_whole(ink_HW, uncut))
    height, width = ink_HW.shape
    boxes = [piece.box for piece in pieces if piece.box] if len(pieces) > 1 else []
    rows = [(x0 / width, y0 / height, x1 / width, y1 / height) for y0, y1, x0, x1 in boxes]
    return np.array(rows, np.float64).reshape(-1, 4)


class _Cut:
    """A piece of the page. All maps are bool and of the whole page.

    Attributes:
        ink_HW: the piece's ink.
        body_HW: the same without upright rules, made when it is asked for.
        own_HW: pixels that are the piece's own.
        box: rows and columns with ink, as y0, y1, x0, x1; None without ink.
        is_whole: not to be cut between lines: that would go through columns side by side.
    """

    def __init__(
        self, ink_HW: NDArray[np.bool_], body_HW: NDArray[np.bool_], own_HW: NDArray[np.bool_]
    ) -> None:
        self.ink_HW, self.own_HW, self._body_HW = ink_HW & own_HW, own_HW, body_HW
        rows, columns = (np.flatnonzero(self.ink_HW.any(axis=axis)) for axis in (1, 0))
        self.box = (
            (int(rows[0]), int(rows[-1]) + 1, int(columns[0]), int(columns[-1]) + 1)
            if len(rows)
            else None
        )
        self.is_whole = False

    @cached_property
    def body_HW(self) -> NDArray[np.bool_]:
        return np.asarray(self._body_HW & self.own_HW)

    def above_and_below(self, low: int, high: int) -> "tuple[_Cut, _Cut] | None":
        """Cut along a seam between rows `low` and `high`.

        None if every seam crosses ink, or leaves a side without.
        """
        seam_W = cheapest_seam(self.body_HW, low, high)
        if seam_W is None:
            return None
        rows = np.arange(len(self.ink_HW), dtype=np.uint16)
        return self._parted(rows[:, None] < seam_W.astype(np.uint16))

    def left_and_right(self, low: int, high: int) -> "tuple[_Cut, _Cut] | None":
        """Cut along a seam between columns `low` and `high`."""
        seam_H = cheapest_seam(self.body_HW.T, low, high)
        if seam_H is None:
            return None
        columns = np.arange(self.ink_HW.shape[1], dtype=np.uint16)
        return self._parted(columns < seam_H.astype(np.uint16)[:, None])

    def again(self, piece: "_Cut") -> "_Cut":
        """What is a piece's own, cut anew out of this one."""
        same = self._part(piece.own_HW)
        same.is_whole = piece.is_whole
        return same

    def _parted(self, first_HW: NDArray[np.bool_]) -> "tuple[_Cut, _Cut] | None":
        parts = self._part(first_HW), self._part(~first_HW)
        return parts if parts[0].box and parts[1].box else None

    def _part(self, part_HW: NDArray[np.bool_]) -> "_Cut":
        return _Cut(self.ink_HW, self.body_HW, self.own_HW & part_HW)


def _whole(ink_HW: NDArray[np.bool_], uncut: Sequence[Box]) -> _Cut:
    """The page; what no cut may cross counts as inked."""
    height, width = ink_HW.shape
    if uncut:
        ink_HW = ink_HW.copy()
    for x0, y0, x1, y1 in uncut:
        rows = slice(round(y0 * height), round(y1 * height))
        ink_HW[rows, round(x0 * width) : round(x1 * width)] = True
    return _Cut(ink_HW, without_rules(ink_HW), np.ones_like(ink_HW))


def _is_large(box: Box, page: _Cut) -> bool:
    """Whether a box has most of the page's inked part, so that around it there is little to cut."""
    if page.box is None:
        return False
    y0, y1, x0, x1 = page.box
    height, width = page.ink_HW.shape
    area = (box[2] - box[0]) * (box[3] - box[1]) * height * width
    return area > _LARGEST * (y1 - y0) * (x1 - x0)


def _share_table(above: _Cut, below: _Cut, table: Box) -> bool:
    """Whether each of two pieces holds a part of a table, the one over the other."""
    if above.box is None or below.box is None:
        return False
    height, width = above.ink_HW.shape
    left, top, right, bottom = (
        v * side for v, side in zip(table, (width, height) * 2, strict=True)
    )
    least = _PART_OF_TABLE * (bottom - top)
    for y0, y1, x0, x1 in (above.box, below.box):
        if min(y1, bottom) - max(y0, top) < least or min(x1, right) <= max(x0, left):
            return False
    return above.box[0] < below.box[0]


def _by_columns(piece: _Cut) -> list[_Cut]:
    """Columns of text apart, and what stands above and below them."""
    if piece.box is None:
        return []
    y0, y1, *_ = piece.box
    width = piece.ink_HW.shape[1]
    found = find_columns(piece.body_HW[y0:y1], width)
    if found is None:
        return [piece]
    near = max(4, len(piece.ink_HW) // 40)
    columns = piece
    before = after = None
    # Where no seam parts them, what stands above or below is taken for the end of a column.
    if parts := columns.above_and_below(y0 + found.top - near, y0 + found.top + near):
        before, columns = parts
    if parts := columns.above_and_below(y0 + found.bottom - near, y0 + found.bottom + near):
        columns, after = parts
    read = []
    for low, high in found.gutters:
        parts = columns.left_and_right(low, high)
        if parts is None:
            piece.is_whole = True
            return [piece]
        read.append(parts[0])
        columns = parts[1]
    parts_read = [before, *read, columns, after]
    return [part for piece in parts_read if piece for part in _by_columns(piece)]


def _by_size(piece: _Cut, page_area: int) -> list[_Cut]:
    """Cut between lines until it is small enough, and not too tall."""
    assert piece.box is not None, "pieces without ink are left out"
    y0, y1, x0, x1 = piece.box
    height, width = y1 - y0, x1 - x0
    is_tall = height > _TALLEST * width and height * width > 0.1 * page_area
    if height * width <= _LARGEST * page_area and not is_tall:
        return [piece]
    halves = _halves(piece)
    return halves if len(halves) < 2 else [p for half in halves for p in _by_size(half, page_area)]


def _halves(piece: _Cut) -> list[_Cut]:
    """Cut once between lines; the piece itself where that would cut ink."""
    assert piece.box is not None, "pieces without ink are left out"
    if piece.is_whole:
        return [piece]
    y0, y1, *_ = piece.box
    reach = round((y1 - y0) * _REACH)
    parts = piece.above_and_below((y0 + y1) // 2 - reach, (y0 + y1) // 2 + reach)
    return list(parts) if parts else [piece]


def _region(rgb: NDArray[np.uint8], piece: _Cut, goes_on: bool) -> Region:
    assert piece.box is not None, "pieces without ink are left out"
    own_HW = piece.own_HW
    scale = round(rgb.shape[0] / own_HW.shape[0])
    margin = round(max(own_HW.shape) * _MARGIN)
    y0, y1, x0, x1 = piece.box
    y0, x0 = max(0, y0 - margin), max(0, x0 - margin)
    y1, x1 = min(own_HW.shape[0], y1 + margin), min(own_HW.shape[1], x1 + margin)
    shown = rgb[y0 * scale : y1 * scale, x0 * scale : x1 * scale]
    own = own_HW[y0:y1, x0:x1]
    mask = Image.fromarray((~own).view(np.uint8) * np.uint8(255))
    measured = shown[::scale, ::scale][: len(own), : own.shape[1]]
    # Most of a page is paper, whatever its colour.
    level = _median_level(measured, own)
    cut = Image.fromarray(np.ascontiguousarray(shown))
    cut.paste(level, mask=mask.resize(cut.size, Image.Resampling.NEAREST))
    height, width = rgb.shape[:2]
    return Region(
        rgb=np.asarray(cut),
        box=(
            x0 * scale / width,
            y0 * scale / height,
            min(x1 * scale, width) / width,
            min(y1 * scale, height) / height,
        ),
        goes_on=goes_on,
    )


def _median_level(rgb: NDArray[np.uint8], own_HW: NDArray[np.bool_]) -> tuple[int, int, int]:
    """The median of each channel where a piece's own pixels are."""
    image, mask = Image.fromarray(np.ascontiguousarray(rgb)), Image.fromarray(own_HW.view(np.uint8))
    below = np.cumsum(np.reshape(image.histogram(mask), (3, 256)), axis=1)
    count = int(below[0, -1])
    middle = ((count - 1) // 2, count // 2)
    red, green, blue = (
        int(np.searchsorted(channel, middle, side="right").sum()) // 2 for channel in below
    )
    return red, green, blue
