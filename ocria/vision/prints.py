"""What a page's picture says of boxes on it: how much ink lies there, whether two look alike.

Thresholds of those who ask were set on self-made pages only.
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ocria.vision.ink import ink_map

Box = tuple[float, float, float, float]
"""x0, y0, x1, y1 in fractions of the page's width and height."""

_MEASURED_PIXELS = 1_500_000
_REACH = 0.02
"""How far a box may lie beside its ink, as a share of the page's long side."""
_MARGIN = 0.003
"""Taken around what is sought: a line's box may be as thin as it is misplaced."""


class PagePrint:
    """The ink of a page, uint8 [H, W, 3]."""

    def __init__(self, rgb: NDArray[np.uint8]) -> None:
        self._ink_HW = ink_map(rgb, _MEASURED_PIXELS)
        self._reach, self._margin = (
            round(max(self._ink_HW.shape) * share) for share in (_REACH, _MARGIN)
        )

    def ink(self, box: Box, without: Sequence[Box] = ()) -> int:
        """Pixels of ink in `box`, those in the boxes `without` left out."""
        return int(np.count_nonzero(self._part(box, without)))

    def likeness(self, one: Box, other: Box) -> float:
        """How much the ink in two boxes is the same print: 1 for a copy, near 0 for other text.

        The correlation of the smaller box's ink with the other's where it fits best. Means of rows
        are taken off, or lines of any text would be alike.
        """
        small, large = sorted((one, other), key=_area)
        # Between neighbours the one sought would be found where it stands.
        searched = _without_row_means(self._part(large, [small], self._reach))
        sought = _without_row_means(self._part(small, [], self._margin))
        sought = sought[: searched.shape[0], : searched.shape[1]]
        energy = float((sought**2).sum())
        if not energy:
            return 0.0
        shape = searched.shape
        spectrum = np.fft.rfft2(searched) * np.conj(np.fft.rfft2(sought, shape))
        rows, columns = (n - m + 1 for n, m in zip(shape, sought.shape, strict=True))
        products = np.fft.irfft2(spectrum, shape)[:rows, :columns]
        there = _window_sums(searched**2, (sought.shape[0], sought.shape[1]))
        # Where hardly any ink lies, a speck would correlate with anything.
        return float((products / np.sqrt(energy * np.maximum(there, energy / 4))).max())

    def _part(self, box: Box, without: Sequence[Box], more: int = 0) -> NDArray[np.bool_]:
        """Ink in `box` and `more` pixels around it, without that in other boxes."""
        rows, columns = self._pixels(box, more)
        part = self._ink_HW[rows, columns].copy()
        for other in without:
            y, x = self._pixels(other)
            part[
                max(0, y.start - rows.start) : max(0, y.stop - rows.start),
                max(0, x.start - columns.start) : max(0, x.stop - columns.start),
            ] = False
        return part

    def _pixels(self, box: Box, more: int = 0) -> tuple[slice, slice]:
        height, width = self._ink_HW.shape
        x0, y0, x1, y1 = box
        return (
            slice(max(0, round(y0 * height) - more), max(1, round(y1 * height) + more)),
            slice(max(0, round(x0 * width) - more), max(1, round(x1 * width) + more)),
        )


def _area(box: Box) -> float:
    return (box[2] - box[0]) * (box[3] - box[1])


def _without_row_means(ink_HW: NDArray[np.bool_]) -> NDArray[np.float32]:
    """Ink spread over its 3 x 3 neighbours, so that a shift by part of a pixel does no harm."""
    padded = np.pad(ink_HW.astype(np.float32), 1)
    across = padded[:, :-2] + padded[:, 1:-1] + padded[:, 2:]
    spread = across[:-2] + across[1:-1] + across[2:]
    return np.asarray(spread - spread.mean(axis=1, keepdims=True))


def _window_sums(values: NDArray[np.float32], size: tuple[int, int]) -> NDArray[np.float64]:
    """Sums over all windows of `size` rows and columns."""
    total = np.pad(values.cumsum(0, np.float64).cumsum(1), ((1, 0), (1, 0)))
    h, w = size
    return np.asarray(total[h:, w:] - total[:-h, w:] - total[h:, :-w] + total[:-h, :-w])
