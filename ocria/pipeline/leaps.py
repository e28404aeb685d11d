"""Finds text that was read across columns: a line of the left one, then one of the right one.

Either every line is a block, and blocks leap from column to column and back; or blocks hold lines
of both, and their boxes span the gutter. The picture says where columns of prose are: in forms and
tables, which are read across rightly, none are found. Thresholds were set on self-made pages only
(docs/log.md).
"""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ocria.document import Block, Page
from ocria.pipeline.repeats import text_share
from ocria.vision import column_boxes

Box = tuple[float, float, float, float]
Placed = tuple[int, Box]
"""A block's index among the page's blocks, and its box in fractions of the page."""

_LEAST_LEAPS = 4
"""From a column into one beside it and straight back; self-made pages have 3 at most."""
_SPANNED = 0.5
"""Of the width of both columns."""
_LEAST_SPANNING = 0.35
"""Of the page's letters, in blocks that span a gutter."""
_BESIDE = 0.1
"""Height that two columns share, as a share of the page's: less may be a river in a paragraph."""
_EDGE, _EDGE_PART = 0.04, 0.25
"""Off a column's ends, as shares of the page's height and of its own: boxes are not exact."""
_GAP = 0.01
"""What the boxes of two columns may overlap."""
_FURNITURE = frozenset({"figure", "table", "header", "footer", "page_number"})


def find_leaps(page: Page, ink_HW: NDArray[np.bool_]) -> frozenset[int]:
    """Indices of the page's blocks that were read across columns; none if they are few.

    Args:
        page: as it was read.
        ink_HW: its ink map, upright as the boxes are.
    """
    if page.width_pt <= 0 or page.height_pt <= 0:
        return frozenset()
    columns = column_boxes(
        ink_HW, [_box(b, page) for b in page.blocks if b.type == "table" and b.bbox]
    )
    if len(columns) < 2:
        return frozenset()
    beside = _beside(columns)
    prose = [
        (index, _box(block, page))
        for index, block in enumerate(page.blocks)
        if block.bbox and block.type not in _FURNITURE
    ]
    leaping = set(_leaping(prose, columns, beside))
    spanning = {index for index, box in prose if _spans(box, columns, beside)}
    found = leaping if len(leaping) >= _LEAST_LEAPS else set()
    if text_share(page, spanning) > _LEAST_SPANNING:
        found |= spanning
    return frozenset(found)


def _box(block: Block, page: Page) -> Box:
    assert block.bbox is not None, "blocks without a box are left out"
    x0, y0, x1, y1 = block.bbox
    return x0 / page.width_pt, y0 / page.height_pt, x1 / page.width_pt, y1 / page.height_pt


def _beside(columns_K4: NDArray[np.float64]) -> NDArray[np.bool_]:
    """bool [K, K]: whether one column stands to the left of the other."""
    x0, y0, x1, y1 = columns_K4.T
    shared = np.minimum(y1[:, None], y1) - np.maximum(y0[:, None], y0)
    return np.asarray((x1[:, None] <= x0 + _GAP) & (shared >= _BESIDE))


def _leaping(
    prose: Sequence[Placed], columns_K4: NDArray[np.float64], beside_KK: NDArray[np.bool_]
) -> Iterator[int]:
    """Blocks between two of one other column."""
    columns = [_column(box, columns_K4) for _, box in prose]
    triples = zip(columns, columns[1:], columns[2:], strict=False)
    for (index, _), (before, here, after) in zip(prose[1:], triples, strict=False):
        if before is None or here is None or before != after or before == here:
            continue
        if beside_KK[before, here] or beside_KK[here, before]:
            yield index


def _column(box: Box, columns_K4: NDArray[np.float64]) -> int | None:
    """The column that most of a box lies in."""
    x0, y0, x1, y1 = columns_K4.T
    across = np.minimum(x1, box[2]) - np.maximum(x0, box[0])
    down = np.minimum(y1, box[3]) - np.maximum(y0, box[1])
    shared = np.maximum(across, 0.0) * np.maximum(down, 0.0)
    best = int(shared.argmax())
    return best if shared[best] > 0 else None


def _spans(box: Box, columns_K4: NDArray[np.float64], beside_KK: NDArray[np.bool_]) -> bool:
    """Whether the box reaches over two columns that stand beside each other at its height."""
    x0, y0, x1, y1 = columns_K4.T
    middle = (box[1] + box[3]) / 2
    edge = np.minimum(_EDGE, _EDGE_PART * (y1 - y0))
    under = (middle > y0 + edge) & (middle < y1 - edge)
    under &= np.minimum(x1, box[2]) - np.maximum(x0, box[0]) > _SPANNED * (x1 - x0)
    return bool(beside_KK[np.ix_(under, under)].any())
