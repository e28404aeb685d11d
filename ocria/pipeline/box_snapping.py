"""The boxes of a page's blocks, moved to the lines of print that they mean.

A model that reads a page in one go copies left edges well and counts lines badly: down a column its
boxes drift away from what they are about, by a seventh of the page at times, while gaps between
blocks and heights of single lines stay right. The ink tells where lines are, the text how many a
block takes, and blocks come in reading order. So each block chooses a run of lines
(`box_places.py`), and all choose together: a block answers to the one above it in its column, or
beside it in its row, which makes trees, and the best choice for a tree is found from its ends to
its root.
"""

import logging
import math
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Page
from ocria.pipeline.box_places import Places, find_places, is_above, is_beside, pair_cost
from ocria.vision import PageLines

Box = tuple[float, float, float, float]

_log = logging.getLogger(__name__)

_SMALLEST_PX = 32
"""The short side of an ink map that is looked at."""
_MOST_BLOCKS = 600
"""More on one page are noise, and would take seconds."""
_LOOKED_BACK, _BESIDE = 40, 2
"""Blocks among which the one above is sought, and the one beside."""

_LETTER_WIDTH = math.log(0.5)
"""Of the height of a line of print; a page's own is measured in the first of two rounds."""
_SPREADS = (0.2, 0.06)
"""Of the logarithm of that: between pages, and within one."""
_OWN_WEIGHT, _MOST_WEIGHT, _FEWEST = 60.0, 200.0, 8.0
"""Letters that the usual width counts for against the page's, the most for one block, and those
from which on a block counts."""


def snapped(page: Page, lines: PageLines) -> Page:
    """The page with boxes around the ink of their blocks, where that is found.

    A block that fits no lines keeps its box, and so do all where anything goes wrong.

    Args:
        page: as it was read.
        lines: of the picture that it was read from, upright as the boxes are.
    """
    if not 0 < len(page.blocks) <= _MOST_BLOCKS or min(lines.height, lines.width) < _SMALLEST_PX:
        return page
    if page.width_pt <= 0 or page.height_pt <= 0:
        return page
    try:
        boxes = _snapped_boxes(page, lines)
    except Exception:
        # A page that was read is worth more than its boxes.
        _log.exception("the boxes of page %d were left as they are", page.number)
        return page
    blocks = [
        block if box is None else replace(block, bbox=_in_points(box, page))
        for block, box in zip(page.blocks, boxes, strict=True)
    ]
    return replace(page, blocks=tuple(blocks))


class _Node(NamedTuple):
    """A block with lines around it.

    Attributes:
        block: its index on the page.
        places: all of its places.
        parent: the node that it answers to; None for a root.
        is_first: it is the uppermost of its column.
        is_last: the lowest.
    """

    block: int
    places: Places
    parent: int | None
    is_first: bool
    is_last: bool


def _snapped_boxes(page: Page, lines: PageLines) -> list[Box | None]:
    """New boxes in fractions of the page, None for those to be kept."""
    nodes = _nodes(page, lines)
    letter_width = _LETTER_WIDTH
    weighed: list[Places] = []
    chosen: list[int] = []
    for spread in _SPREADS:
        weighed = [
            node.places.weighed(letter_width, spread, is_first=node.is_first, is_last=node.is_last)
            for node in nodes
        ]
        chosen = _chosen(weighed, [node.parent for node in nodes], lines.height)
        letter_width = _letter_width(weighed, chosen)
    boxes: list[Box | None] = [None] * len(page.blocks)
    for node, places, choice in zip(nodes, weighed, chosen, strict=True):
        runs = places.runs
        if not runs.is_empty[choice]:
            box = (runs.left, runs.top, runs.right, runs.bottom)
            x0, y0, x1, y1 = (float(edges[choice]) for edges in box)
            boxes[node.block] = lines.on_page((x0, y0, x1, y1))
    return boxes


def _nodes(page: Page, lines: PageLines) -> list[_Node]:
    found: list[tuple[int, Places]] = []
    for index, block in enumerate(page.blocks):
        if block.bbox is None:
            continue
        x0, y0, x1, y1 = block.bbox
        width, height = page.width_pt, page.height_pt
        box = lines.level((x0 / width, y0 / height, x1 / width, y1 / height))
        places = find_places(block, box, lines)
        if places is not None:
            found.append((index, places))
    boxes = [places.box for _, places in found]
    parents = [_parent(boxes, place) for place in range(len(boxes))]
    above = [
        parent if parent is not None and is_above(boxes[parent], box) else None
        for parent, box in zip(parents, boxes, strict=True)
    ]
    return [
        _Node(index, places, parents[place], above[place] is None, place not in above)
        for place, (index, places) in enumerate(found)
    ]


def _parent(boxes: Sequence[Box], place: int) -> int | None:
    """The nearest box before it that stands above, or beside."""
    for other in range(place - 1, max(-1, place - 1 - _LOOKED_BACK), -1):
        if is_above(boxes[other], boxes[place]):
            return other
        if place - other <= _BESIDE and is_beside(boxes[other], boxes[place]):
            return other
    return None


def _chosen(nodes: Sequence[Places], parents: Sequence[int | None], page_height: int) -> list[int]:
    """The place of each block such that all costs together are least."""
    costs = [places.runs.cost.copy() for places in nodes]
    best_of: list[NDArray[np.intp] | None] = [None] * len(nodes)
    for place in range(len(nodes) - 1, -1, -1):
        parent = parents[place]
        if parent is None:
            continue
        pairs = pair_cost(nodes[parent], nodes[place], page_height) + costs[place]
        best = pairs.argmin(axis=1)
        costs[parent] += np.take_along_axis(pairs, best[:, None], axis=1)[:, 0]
        best_of[place] = best
    chosen: list[int] = []
    for place, parent in enumerate(parents):
        best = best_of[place]
        if best is None or parent is None:
            chosen.append(int(costs[place].argmin()))
        else:
            chosen.append(int(best[chosen[parent]]))
    return chosen


def _letter_width(nodes: Sequence[Places], chosen: Sequence[int]) -> float:
    """The logarithm of the page's usual letter width over the height of its line: a median."""
    widths, weights = [_LETTER_WIDTH], [_OWN_WEIGHT]
    for places, choice in zip(nodes, chosen, strict=True):
        if places.num_letters >= _FEWEST and not places.runs.is_empty[choice]:
            widths.append(float(places.runs.letter_width[choice]))
            weights.append(min(places.num_letters, _MOST_WEIGHT))
    order = np.argsort(widths, kind="stable")
    below = np.array(weights)[order].cumsum()
    return widths[int(order[np.searchsorted(below, below[-1] / 2)])]


def _in_points(box: Box, page: Page) -> Box:
    x0, y0, x1, y1 = box
    width, height = page.width_pt, page.height_pt
    return round(x0 * width, 2), round(y0 * height, 2), round(x1 * width, 2), round(y1 * height, 2)
