"""A table that was read in two parts, one above the other, made whole."""

from collections.abc import Sequence
from dataclasses import replace

from ocria.document import Block
from ocria.output.html_grid import grid_of
from ocria.output.html_lexemes import pieces
from ocria.output.html_tree import build_tree
from ocria.output.span_grid import grid_from_spans
from ocria.output.table_grid import Cell

_Rows = list[list[Cell]]


def joined_table(above: Block, below: Block) -> Block:
    """The rows of both tables, those of fewer columns filled up with empty cells.

    What heads the lower part goes on under the upper one's head: it heads nothing. Boxes are
    joined; the confidence is the mean by length of text.
    """
    rows = [*_rows(above), *([replace(c, heading=False) for c in row] for row in _rows(below))]
    grid, _ = grid_from_spans(rows)
    return replace(
        above,
        text=grid.text(),
        markdown=grid.markdown(),
        html=grid.html(),
        bbox=_around(above, below),
        confidence=_confidence(above, below),
    )


def _rows(block: Block) -> _Rows:
    root, _ = build_tree(pieces(block.html or ""))
    table = next((element for element in root.descendants() if element.name == "table"), None)
    grid = grid_of(table)[0] if table else None
    return [[cell for cell in row if cell] for row in grid.rows] if grid else []


def _around(*blocks: Block) -> tuple[float, float, float, float] | None:
    boxes = [block.bbox for block in blocks if block.bbox]
    if not boxes:
        return None
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def _confidence(*blocks: Block) -> float | None:
    told: Sequence[tuple[float, int]] = [
        (block.confidence, len(block.text)) for block in blocks if block.confidence is not None
    ]
    length = sum(weight for _, weight in told)
    return round(sum(value * weight for value, weight in told) / length, 4) if length else None
