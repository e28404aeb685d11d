"""Is there anything on the page? Measured from ink, before the model could imagine some.

The two mistakes do not weigh the same: a blank page taken for a written one costs time, a written
page taken for a blank one loses text. Every doubt is therefore decided for ink. Thresholds were
set on self-made pages only.

Grid legend: C cells of 16 pixels, within which paper is taken to be even; T tiles of 8 pixels.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view
from numpy.typing import NDArray
from PIL import Image

from ocria.vision.patches import luma

_MEASURED_PIXELS = 2_500_000
"""Larger pages are averaged down first: about 150 dpi on A4, where a stroke is 1 to 3 pixels."""

_CELL_PX = 16
_TILE_PX = 8

_MIN_CONTRAST = 45
"""Grey levels between ink and paper. Print that shines through stays below, pale text above."""

_NOISE_DEVIATIONS = 5.0

_MARK_PIXELS = 6
_MARK_EXTENT_PX = 6
"""The smallest thing worth reading: the digit 1 at 7 pt. Dust is smaller, or rounder."""

_BORDER_SHARE = 0.08
"""How far a scanner's dark border may reach into the page, as a share of its side."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Ink:
    """What is on a page.

    Attributes:
        fraction: share of pixels that stand out from the paper around them.
        marks: places, 16 pixels square and half overlapping, that hold at least a small digit.
    """

    fraction: float
    marks: int

    @property
    def is_blank(self) -> bool:
        """Nothing that could be read."""
        return self.marks == 0


def measure_ink(pixels: NDArray[np.uint8]) -> Ink:
    """Measures uint8 [H, W, 3], or its luma [H, W], against its own paper: off-white, stained,
    unevenly lit or dark.

    Scanner noise, single specks, print shining through from the back and a dark border at the
    page's edge are not ink.
    """
    grey = _measured_grey(pixels, _MEASURED_PIXELS)
    paper = _paper(grey)
    (ink,) = _inks(grey, paper, (_MIN_CONTRAST,))
    marks = _mark_map(ink)
    if marks.any() and (border := _border_pixels(grey, paper)) is not None:
        ink &= ~border
        marks = _mark_map(ink)
    return Ink(fraction=float(ink.mean()), marks=int(marks.sum()))


def ink_map(pixels: NDArray[np.uint8], most_pixels: int) -> NDArray[np.bool_]:
    """Which pixels stand out from the paper around them, a scanner's dark border left out.

    Returns bool [H, W] of uint8 [H, W, 3], or its luma, averaged down by the smallest whole number
    that leaves at most `most_pixels`; the last row and column of such squares may be incomplete.
    """
    return ink_maps(pixels, most_pixels, (_MIN_CONTRAST,))[0]


def ink_maps(
    pixels: NDArray[np.uint8], most_pixels: int, contrasts: Sequence[int] = (_MIN_CONTRAST, 25)
) -> list[NDArray[np.bool_]]:
    """As `ink_map`, one for each least contrast in grey levels: the usual one, and pale print."""
    height, width = pixels.shape[:2]
    factor = _factor(height * width, most_pixels)
    grey = _measured_grey(pixels, most_pixels)
    paper = _paper(grey)
    inks = _inks(grey, paper, contrasts)
    border = _border_pixels(grey, paper)
    if border is not None:
        inks = [ink & ~border for ink in inks]
    rows, columns = -(-height // factor), -(-width // factor)
    return [ink[:rows, :columns] for ink in inks]


def _inks(
    grey: NDArray[np.uint8], paper: NDArray[np.uint8], contrasts: Sequence[int]
) -> list[NDArray[np.bool_]]:
    """Pixels that stand out by each least contrast, single ones left out."""
    contrast = np.maximum(grey, paper) - np.minimum(grey, paper)
    noise = 1.4826 * float(np.median(contrast[::4, ::4]))
    inks = [contrast > min(255, int(max(least, _NOISE_DEVIATIONS * noise))) for least in contrasts]
    return [ink & _has_neighbours(ink) for ink in inks]


def _factor(pixels: int, most_pixels: int) -> int:
    return max(1, math.ceil(math.sqrt(pixels / most_pixels)))


def _measured_grey(pixels: NDArray[np.uint8], most_pixels: int) -> NDArray[np.uint8]:
    """Luma [H, W], sides padded to whole cells with the edge's own values."""
    grey = luma(pixels)
    factor = _factor(grey.size, most_pixels)
    if factor > 1:
        grey = np.asarray(Image.fromarray(grey).reduce(factor))
    height, width = grey.shape
    pad = ((0, -height % _CELL_PX), (0, -width % _CELL_PX))
    return np.pad(grey, pad, mode="edge") if any(p[1] for p in pad) else grey


def _paper(grey: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """The level of the empty page at every pixel: medians of cells, then of 5x5 cells."""
    rows, columns = grey.shape[0] // _CELL_PX, grey.shape[1] // _CELL_PX
    # Every fourth pixel is enough for a median, and 16 times cheaper.
    samples = grey[2::4, 2::4].reshape(rows, 4, columns, 4).transpose(0, 2, 1, 3)
    cells = np.median(samples.reshape(rows, columns, 16), axis=2)
    around = sliding_window_view(np.pad(cells, 2, mode="symmetric"), (5, 5))
    level = np.median(around.reshape(rows, columns, 25), axis=2).astype(np.uint8)
    size = (grey.shape[1], grey.shape[0])
    return np.asarray(Image.fromarray(level).resize(size, Image.Resampling.BILINEAR))


def _has_neighbours(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """True where at least 2 of the 8 pixels around are ink: strokes have them, specks do not."""
    padded = np.pad(ink.view(np.uint8), 1)
    across = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    return np.asarray(across[:-2] + across[1:-1] + across[2:] - ink >= 2)


def _mark_map(ink: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """bool [T-1, T-1]: windows of 2x2 tiles with enough ink, spread far enough."""
    # The 8 pixels across a tile as one word: [T, 8, T], a tenth of the time of sums over bytes.
    words = np.ascontiguousarray(ink).view(np.uint64)
    tiles = words.reshape(-1, _TILE_PX, words.shape[1])
    count = _ones(tiles).sum(axis=1)
    count = count[:-1] + count[1:]
    count = count[:, :-1] + count[:, 1:]
    inked_rows = tiles != 0
    tall = np.sum(inked_rows[:, :, :-1] | inked_rows[:, :, 1:], axis=1)
    inked_columns = np.bitwise_or.reduce(tiles, axis=1)
    wide = _ones(inked_columns[:-1] | inked_columns[1:])
    extent = np.maximum(tall[:-1] + tall[1:], wide[:, :-1] + wide[:, 1:])
    return np.asarray((count >= _MARK_PIXELS) & (extent >= _MARK_EXTENT_PX))


def _ones(words: NDArray[np.uint64]) -> NDArray[np.int64]:
    """How many of the 8 bytes of each word are 1: the product gathers their sum in the top byte."""
    return ((words * np.uint64(0x0101010101010101)) >> np.uint64(56)).astype(np.int64)


def _border_pixels(grey: NDArray[np.uint8], paper: NDArray[np.uint8]) -> NDArray[np.bool_] | None:
    """bool [H, W]: pixels that stand out only because of a scanner's dark border, if there is one.

    White writing within a dark band along the edge is writing, and stays out of the mask.
    """
    level = _tile_level(grey)
    border = _border(level)
    if not border.any():
        return None
    # The level of the paper is blurred: beside a border, good paper is bright against it.
    around = _grown(_grown(_grown(border)))
    shadow = _to_pixels(_grown(border)) | (_to_pixels(around) & (grey > paper))
    inside = _to_pixels(~_grown(~border))
    writing = inside & (grey > int(np.median(level[border]) + _MIN_CONTRAST))
    return np.asarray(shadow & ~writing)


def _border(level: NDArray[np.float64]) -> NDArray[np.bool_]:
    """bool [T, T]: dark tiles that hang together with the page's edge, and what they enclose."""
    rows, columns = level.shape
    dark = level < np.median(level) - _MIN_CONTRAST
    deep_rows, deep_columns = int(rows * _BORDER_SHARE) + 1, int(columns * _BORDER_SHARE) + 1
    middle = np.zeros_like(dark)
    middle[deep_rows : rows - deep_rows, deep_columns : columns - deep_columns] = True
    edge = np.ones_like(dark)
    edge[1:-1, 1:-1] = False
    border = _flood(edge, dark & ~middle)
    if not border.any():
        return border
    return ~_flood((middle | edge) & ~border, ~border)


def _tile_level(grey: NDArray[np.uint8]) -> NDArray[np.float64]:
    rows, columns = grey.shape[0] // _TILE_PX, grey.shape[1] // _TILE_PX
    # Down first: whole rows are added at once, which a sum over both axes does not.
    sums = grey.reshape(rows, _TILE_PX, -1).sum(axis=1, dtype=np.uint16)
    return np.asarray(sums.reshape(rows, columns, _TILE_PX).sum(axis=2) / _TILE_PX**2)


def _flood(seed: NDArray[np.bool_], allowed: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What can be reached from `seed` through `allowed`, in the four directions."""
    reached = seed & allowed
    count = 0
    while (total := int(reached.sum())) != count:
        count = total
        reached = _grown(reached) & allowed
    return reached


def _grown(mask: NDArray[np.bool_]) -> NDArray[np.bool_]:
    padded = np.pad(mask, 1)
    across = padded[1:-1, :-2] | padded[1:-1, 2:]
    return np.asarray(mask | across | padded[:-2, 1:-1] | padded[2:, 1:-1])


def _to_pixels(tiles: NDArray[np.bool_]) -> NDArray[np.bool_]:
    return tiles.repeat(_TILE_PX, axis=0).repeat(_TILE_PX, axis=1)
