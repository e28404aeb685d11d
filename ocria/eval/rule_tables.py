"""The table rule of olmOCR-bench: a cell, and what must stand next to it or head it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rapidfuzz import fuzz

from ocria.eval.tables import Cell, Table, tables_in

MIN_SIMILARITY = 0.5


@dataclass(frozen=True, kw_only=True)
class CellRule:
    """A cell's text, and the (direction, text) pairs that must hold for one cell like it.

    Directions: up, down, left, right, top_heading, left_heading. Texts are cleaned.
    """

    cell: str
    neighbours: tuple[tuple[str, str], ...]
    max_diffs: int


def cell_rule_holds(rule: CellRule, markdown: str, *, clean: Callable[[str], str]) -> bool:
    """Whether some table of the page has such a cell with all such neighbours."""
    return any(_holds_in(rule, table, clean) for table in tables_in(markdown, rule_needed=False))


class _Grid:
    """The covered places of a table and how far they reach."""

    def __init__(self, table: Table) -> None:
        self.places = table.grid()
        self.height = 1 + max((row for row, _ in self.places), default=0)
        self.width = 1 + max((col for _, col in self.places), default=0)


def _holds_in(rule: CellRule, table: Table, clean: Callable[[str], str]) -> bool:
    grid = _Grid(table)
    return any(
        all(
            any(_alike(wanted, clean(cell.text), rule.max_diffs) for cell in near)
            for wanted, near in (
                (text, _towards(grid, start, direction)) for direction, text in rule.neighbours
            )
        )
        for start in table.cells
        if _alike(rule.cell, clean(start.text), rule.max_diffs)
    )


def _alike(wanted: str, found: str, max_diffs: int) -> bool:
    threshold = max(MIN_SIMILARITY, 1.0 - max_diffs / len(wanted))
    return fuzz.ratio(wanted, found) / 100.0 >= threshold


def _towards(grid: _Grid, start: Cell, direction: str) -> list[Cell]:
    if direction == "top_heading":
        return _headings(grid, start, "up")
    if direction == "left_heading":
        return _headings(grid, start, "left")
    return _next_cells(grid, start, direction)


def _next_cells(grid: _Grid, start: Cell, direction: str) -> list[Cell]:
    """The first cells met in a direction from each place that `start` covers on that side."""
    rows = range(start.row, start.row + start.rowspan)
    cols = range(start.col, start.col + start.colspan)
    lines: dict[str, list[list[tuple[int, int]]]] = {
        "up": [[(r, c) for r in range(start.row - 1, -1, -1)] for c in cols],
        "down": [[(r, c) for r in range(rows.stop, grid.height)] for c in cols],
        "left": [[(r, c) for c in range(start.col - 1, -1, -1)] for r in rows],
        "right": [[(r, c) for c in range(cols.stop, grid.width)] for r in rows],
    }
    met = (
        next((grid.places[p] for p in line if p in grid.places), None) for line in lines[direction]
    )
    return list(dict.fromkeys(cell for cell in met if cell is not None))


def _headings(grid: _Grid, start: Cell, direction: str) -> list[Cell]:
    """All headings on the way to the edge or, where none is marked, the cells at the edge."""
    marked: list[Cell] = []
    at_edge: list[Cell] = []
    seen: set[Cell] = set()
    waiting = [start]
    while waiting:
        cell = waiting.pop()
        if cell in seen:
            continue
        seen.add(cell)
        onward = _next_cells(grid, cell, direction)
        waiting.extend(onward)
        if cell is start:
            continue
        if cell.heading:
            marked.append(cell)
        if not onward:
            at_edge.append(cell)
    return marked or at_edge
