"""OTSL, the table language of the model's markup, to a grid.

Lysak and others, "Optimized Table Tokenization for Table Structure Recognition", 2023: every row
of a table is a row of tokens, and a place that a span covers points left (`lcel`), up (`ucel`) or
both ways (`xcel`) to its cell. What breaks these rules is read as an empty cell.
"""

from collections.abc import Sequence
from typing import Literal, NamedTuple

from ocria.output.table_grid import Cell, TableGrid, common_width

CellKind = Literal["fcel", "ecel", "ched", "lcel", "ucel", "xcel"]
# From a covered place to the place that it continues: (rows, columns).
_STEP = {"lcel": (0, -1), "ucel": (-1, 0), "xcel": (-1, -1)}


class OtslCell(NamedTuple):
    """One token of a row with the text after it (one line)."""

    kind: CellKind
    text: str


def grid_from_otsl(rows: Sequence[Sequence[OtslCell]]) -> tuple[TableGrid, bool]:
    """The grid, and whether something had to be mended: a short row, or a span that has no cell.

    `rows` must hold at least one cell.
    """
    width = common_width([len(row) for row in rows])
    owners, mended = _owners(rows, width)
    reach = [[(1, 1)] * width for _ in rows]
    covered = [[False] * width for _ in rows]
    for y, row in enumerate(owners):
        for x, owner in enumerate(row):
            if owner == (y, x) and not covered[y][x]:
                reach[y][x] = _cover(owners, covered, y, x)
    grid = tuple(
        tuple(None if covered[y][x] else _cell(row, x, width, reach[y][x]) for x in range(width))
        for y, row in enumerate(rows)
    )
    # A place that points to a cell but lies outside its rectangle has become a cell of its own.
    loose = any(
        owners[y][x] != (y, x) and not covered[y][x] for y in range(len(rows)) for x in range(width)
    )
    return TableGrid(rows=grid), mended or loose or any(len(row) != width for row in rows)


def _owners(
    rows: Sequence[Sequence[OtslCell]], width: int
) -> tuple[list[list[tuple[int, int]]], bool]:
    """For each place the (row, column) of the cell it belongs to, and whether a pointer was bad."""
    owners: list[list[tuple[int, int]]] = []
    bad = False
    for y, row in enumerate(rows):
        owners.append([])
        for x in range(width):
            step = _STEP.get(row[x].kind) if x < len(row) else None
            target = (y, x)
            if step is not None:
                up, left = y + step[0], x + step[1]
                if up >= 0 and left >= 0:
                    target = owners[up][left]
                else:
                    bad = True
            owners[y].append(target)
    return owners, bad


def _cover(
    owners: list[list[tuple[int, int]]], covered: list[list[bool]], y: int, x: int
) -> tuple[int, int]:
    """Marks the rectangle of the cell at (y, x) as covered; returns its (rowspan, colspan)."""
    colspan = rowspan = 1
    while x + colspan < len(owners[y]) and owners[y][x + colspan] == (y, x):
        colspan += 1
    while y + rowspan < len(owners) and all(
        owner == (y, x) for owner in owners[y + rowspan][x : x + colspan]
    ):
        rowspan += 1
    for row in covered[y : y + rowspan]:
        row[x : x + colspan] = [True] * colspan
    covered[y][x] = False
    return rowspan, colspan


def _cell(row: Sequence[OtslCell], x: int, width: int, reach: tuple[int, int]) -> Cell:
    if x >= len(row):
        return Cell()
    # Where a row is longer than the table may be wide, its end is joined into the last cell.
    texts = [cell.text for cell in (row[x:] if x == width - 1 else row[x : x + 1])]
    return Cell(
        text=" ".join(text for text in texts if text),
        heading=row[x].kind == "ched",
        rowspan=reach[0],
        colspan=reach[1],
    )
