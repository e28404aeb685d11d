"""Rows of cells with spans, as HTML writes them, to a grid.

Source: HTML standard, "forming a table", without its allowance for overlapping cells: a place
belongs to the first cell that covers it.
"""

from collections.abc import Sequence

from ocria.output.table_grid import MAX_CELLS, Cell, TableGrid

MAX_SPAN = 1000


def grid_from_spans(rows: Sequence[Sequence[Cell]]) -> tuple[TableGrid, bool]:
    """The grid, and whether something had to be mended: a short row, a span over the edge or over
    another cell, more columns than a grid may have.

    `rows` must hold at least one cell.
    """
    num_rows = len(rows)
    most = max(1, MAX_CELLS // num_rows)
    placed: dict[tuple[int, int], Cell | None] = {}
    mended = False
    for y, row in enumerate(rows):
        x = 0
        for cell in row:
            while (y, x) in placed:
                x += 1
            if x >= most:
                mended = True
                break
            fitted = _fitted(placed, cell, y, x, num_rows, most)
            mended |= (fitted.rowspan, fitted.colspan) != (cell.rowspan, cell.colspan)
            for down in range(fitted.rowspan):
                for across in range(fitted.colspan):
                    placed[y + down, x + across] = None
            placed[y, x] = fitted
            x += fitted.colspan
    width = 1 + max((x for _, x in placed), default=0)
    mended |= len(placed) != width * num_rows
    grid = tuple(tuple(placed.get((y, x), Cell()) for x in range(width)) for y in range(num_rows))
    return TableGrid(rows=grid), mended


def _fitted(
    placed: dict[tuple[int, int], Cell | None], cell: Cell, y: int, x: int, num_rows: int, most: int
) -> Cell:
    """`cell` with spans that reach free places only."""
    colspan = 1
    while colspan < min(cell.colspan, most - x) and (y, x + colspan) not in placed:
        colspan += 1
    rowspan = 1
    while rowspan < min(cell.rowspan, num_rows - y) and not any(
        (y + rowspan, x + across) in placed for across in range(colspan)
    ):
        rowspan += 1
    return Cell(text=cell.text, heading=cell.heading, rowspan=rowspan, colspan=colspan)
