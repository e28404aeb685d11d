"""Tables in Markdown and in HTML, with spans, as one grid type."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable
from dataclasses import dataclass

MAX_SPAN = 200
"""A larger span is a reading error, and would make the grid as large as the number says."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """One cell: text, its top left place in the grid (0-based), spans and whether it heads."""

    text: str
    row: int
    col: int
    rowspan: int = 1
    colspan: int = 1
    heading: bool = False


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells in source order; a cell that spans rows stands only in its first row."""

    rows: tuple[tuple[Cell, ...], ...]

    @property
    def cells(self) -> tuple[Cell, ...]:
        """All cells, row by row."""
        return tuple(cell for row in self.rows for cell in row)

    def grid(self) -> dict[tuple[int, int], Cell]:
        """Each covered place (row, column) and the cell that covers it."""
        return {
            (row, col): cell
            for cell in self.cells
            for row in range(cell.row, cell.row + cell.rowspan)
            for col in range(cell.col, cell.col + cell.colspan)
        }


@dataclass(frozen=True, kw_only=True)
class LooseCell:
    """A cell before its column is known: columns depend on the spans above."""

    text: str
    rowspan: int = 1
    colspan: int = 1
    heading: bool = False


def place_cells(rows: Iterable[Iterable[LooseCell]]) -> Table:
    """Give each cell its place, stepping over places that a span from above covers."""
    taken: set[tuple[int, int]] = set()
    placed: list[tuple[Cell, ...]] = []
    for row_index, row in enumerate(rows):
        col = 0
        cells: list[Cell] = []
        for loose in row:
            while (row_index, col) in taken:
                col += 1
            cells.append(
                Cell(
                    text=loose.text, row=row_index, col=col, rowspan=loose.rowspan,
                    colspan=loose.colspan, heading=loose.heading,
                )
            )  # fmt: skip
            if loose.rowspan > 1:
                taken.update(
                    (row_index + down, col + right)
                    for down in range(1, loose.rowspan)
                    for right in range(loose.colspan)
                )
            col += loose.colspan
        placed.append(tuple(cells))
    return Table(rows=tuple(placed))


def tables_in(markdown: str, *, rule_needed: bool = True) -> tuple[Table, ...]:
    """Every table of a page, in reading order: HTML tables and pipe tables.

    Without `rule_needed` two lines with pipes are a table even where the line of dashes that GitHub
    asks for is missing (olmOCR-bench reads them so).
    """
    found = [(start, table) for start, table in _html_tables(markdown)]
    without_html = _HTML_TABLE.sub(lambda match: re.sub(r"[^\n]", " ", match.group()), markdown)
    found.extend(_pipe_tables(without_html, rule_needed))
    return tuple(table for _, table in sorted(found, key=lambda pair: pair[0]))


_HTML_TABLE = re.compile(r"<table\b.*?(?:</table\s*>|\Z)", re.IGNORECASE | re.DOTALL)
_TABLE_TAG = re.compile(r"<(/?)(table|thead|tbody|tfoot|tr|td|th)\b([^<>]*)>", re.IGNORECASE)
_SPAN = re.compile(r"""\b(rowspan|colspan)\s*=\s*["']?\s*(-?\w+)""", re.IGNORECASE)
_BREAK = re.compile(r"<br\s*/?>", re.IGNORECASE)
_TAG = re.compile(r"</?[A-Za-z][^<>]*>")
_RULE = re.compile(r"^[ \t]*\|?(?:[ \t]*:?-+:?[ \t]*\|)*[ \t]*:?-+:?[ \t]*\|?[ \t]*$")
_PIPE = re.compile(r"(?<!\\)\|")


def _html_tables(markdown: str) -> list[tuple[int, Table]]:
    found = []
    for match in _HTML_TABLE.finditer(markdown):
        found.append((match.start(), place_cells(_html_rows(match.group()))))
    return [(start, table) for start, table in found if table.cells]


def _html_rows(markup: str) -> list[list[LooseCell]]:
    """Rows of cells. Tags of other kinds are dropped; a cell may be left open, as HTML allows.

    Not html.parser: it takes quadratic time over tags that never end.
    """
    rows: list[list[LooseCell]] = []
    head = False
    tags = list(_TABLE_TAG.finditer(markup))
    ends = [*(tag.start() for tag in tags[1:]), len(markup)]
    for tag, end in zip(tags, ends if tags else (), strict=True):
        closes, name = bool(tag.group(1)), tag.group(2).lower()
        if name in ("thead", "tbody"):
            head = name == "thead" and not closes
        elif name == "tr" and not closes:
            rows.append([])
        elif name in ("td", "th") and not closes:
            rows = rows or [[]]
            text = markup[tag.end() : end]
            rows[-1].append(_html_cell(text, tag.group(3), head or name == "th"))
    return rows


def _html_cell(markup: str, attributes: str, heading: bool) -> LooseCell:
    spans = {name.lower(): value for name, value in _SPAN.findall(attributes)}
    text = _TAG.sub("", _BREAK.sub(" ", markup))
    return LooseCell(
        text=" ".join(html.unescape(text).split()),
        rowspan=_span(spans.get("rowspan")),
        colspan=_span(spans.get("colspan")),
        heading=heading,
    )


def _span(value: str | None) -> int:
    digits = (value or "").strip()
    return min(max(int(digits), 1), MAX_SPAN) if digits.isdecimal() and len(digits) < 6 else 1


def _pipe_tables(markdown: str, rule_needed: bool) -> list[tuple[int, Table]]:
    found: list[tuple[int, Table]] = []
    block: list[str] = []
    start = offset = 0
    for line in [*markdown.split("\n"), ""]:
        if "|" in line:
            start = start if block else offset
            block.append(line)
        elif block:
            found.extend((start, table) for table in _table_from_lines(block, rule_needed))
            block = []
        offset += len(line) + 1
    return found


def _table_from_lines(lines: list[str], rule_needed: bool) -> list[Table]:
    rule = next((index for index, line in enumerate(lines) if _RULE.match(line)), None)
    if len(lines) < 2 or (rule is None and rule_needed):
        return []
    rows = [_split_row(line) for index, line in enumerate(lines) if index != rule]
    head = max(rule or 1, 1)
    if head == 1 and len(rows) > 1 and not any(rows[0]):
        # Pipe tables cannot go without a heading row; an empty one says that there is none.
        rows, head = rows[1:], 0
    width = len(rows[0]) if rows else 0
    loose = [
        [
            LooseCell(text=text, heading=index < head or col == 0)
            for col, text in enumerate([*row, *[""] * (width - len(row))])
        ]
        for index, row in enumerate(rows)
    ]
    table = place_cells(loose)
    return [table] if table.cells else []


def _split_row(line: str) -> list[str]:
    parts = _PIPE.split(line.strip())
    if parts and not parts[0].strip():
        parts = parts[1:]
    if parts and not parts[-1].strip():
        parts = parts[:-1]
    return [html.unescape(re.sub(r"<br\s*/?>", " ", p.replace("\\|", "|"))).strip() for p in parts]
