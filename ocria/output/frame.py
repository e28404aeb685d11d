"""From the coordinates that a model writes to points of the upright page."""

import math
from collections.abc import Sequence

from ocria.document import Rotation
from ocria.output.decoded import PageGeometry
from ocria.output.markup_style import MarkupStyle

Box = tuple[float, float, float, float]

LAST_COORDINATE = 511
"""Coordinates run from 0 (left, top) to this (right, bottom) of the image the model saw."""


def quarter_turns(degrees: int) -> Rotation:
    """`degrees` brought to 0, 90, 180 or 270."""
    turns: tuple[Rotation, ...] = (0, 90, 180, 270)
    return turns[degrees // 90 % 4]


def upright_size(geometry: PageGeometry, turn: Rotation) -> tuple[float, float]:
    """(width, height) in points after a clockwise turn of the page that the model saw."""
    size = (_length(geometry.width_pt), _length(geometry.height_pt))
    return size if turn in (0, 180) else (size[1], size[0])


def upright_box(
    coordinates: tuple[int, int, int, int], geometry: PageGeometry, turn: Rotation
) -> Box:
    """(x0, y0, x1, y1) in points, origin top left, after a clockwise turn; two decimals.

    `coordinates` are x0, y0, x1, y1 in 0..511 of the page that the model saw; a pair in the
    wrong order is exchanged.
    """
    width, height = _length(geometry.width_pt), _length(geometry.height_pt)
    xs = sorted(width * c / LAST_COORDINATE for c in coordinates[0::2])
    ys = sorted(height * c / LAST_COORDINATE for c in coordinates[1::2])
    turned = {
        0: (xs[0], ys[0], xs[1], ys[1]),
        90: (height - ys[1], xs[0], height - ys[0], xs[1]),
        180: (width - xs[1], height - ys[1], width - xs[0], height - ys[0]),
        270: (ys[0], width - xs[1], ys[1], width - xs[0]),
    }[turn]
    x0, y0, x1, y1 = (round(abs(value), 2) for value in turned)
    return x0, y0, x1, y1


def styled_box(
    coordinates: Sequence[float], geometry: PageGeometry, style: MarkupStyle
) -> Box | None:
    """A foreign model's box in points of the page it saw, two decimals; None for an unusable one.

    `coordinates` are x0, y0, x1, y1, or x and y of four corners or more, which are enclosed. What
    lies outside the page ends at its edge; a pair in the wrong order is exchanged.
    """
    last = style.last_coordinate
    last_x, last_y = (last, last) if last is not None else geometry.read_px or (0, 0)
    paired = len(coordinates) >= 4 and len(coordinates) % 2 == 0
    if not paired or not all(map(math.isfinite, coordinates)) or min(last_x, last_y) <= 0:
        return None
    width, height = _length(geometry.width_pt), _length(geometry.height_pt)
    xs = [min(max(x / last_x, 0.0), 1.0) * width for x in coordinates[0::2]]
    ys = [min(max(y / last_y, 0.0), 1.0) * height for y in coordinates[1::2]]
    x0, y0, x1, y1 = (round(value, 2) for value in (min(xs), min(ys), max(xs), max(ys)))
    return x0, y0, x1, y1


def _length(value: float) -> float:
    return value if math.isfinite(value) and value > 0 else 0.0
