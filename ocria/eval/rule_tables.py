"""The table rule of olmOCR-bench: a cell, and what must stand next to it or head it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache

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
    return any(_holds_in(rule, grid) for grid in _grids(markdown, clean))


class _Grid:
    """The covered places of a table, how far they reach, and each cell's cleaned text."""

    def __init__(self, table: Table, clean: Callable[[str], str]) -> None:
        self.cells = table.cells
        self.places = table.grid()
        self.height = 1 + max((row for row, _ in self.places), default=0)
        self.width = 1 + max((col for _, col in self.places), default=0)
        self.text = {cell: clean(cell.text) for cell in table.cells}


@lru_cache(maxsize=2)
def _grids(markdown: str, clean: Callable[[str], str]) -> tuple[_Grid, ...]:
    """Kept for the next rule, which is mostly one of the same page."""
    return tuple(_Grid(table, clean) for table in tables_in(markdown, rule_needed=False))


def _holds_in(rule: CellRule, grid: _Grid) -> bool:
    return any(
        all(
            any(
                _alike(wanted, grid.text[cell], rule.max_diffs)
                for cell in _towards(grid, start, direction)
            )
            for direction, wanted in rule.neighbours
        )
        for start in grid.cells
        if _alike(rule.cell, grid.text[start], rule.max_diffs)
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
    if direction in ("up", "down"):
        way = range(rows.stop, grid.height) if direction == "down" else range(rows.start)[::-1]
        met = [_first(grid, ((row, col) for row in way)) for col in cols]
    else:
        way = range(cols.stop, grid.width) if direction == "right" else range(cols.start)[::-1]
        met = [_first(grid, ((row, col) for col in way)) for row in rows]
    return list(dict.fromkeys(cell for cell in met if cell is not None))


def _first(grid: _Grid, places: Iterable[tuple[int, int]]) -> Cell | None:
    return next((grid.places[place] for place in places if place in grid.places), None)


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
