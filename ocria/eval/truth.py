"""Truth files of each kind as one typed Truth. Every reader raises TruthError with a reason."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from ocria.eval.formulas import formulas_in
from ocria.eval.items import Truth
from ocria.eval.latex_tables import latex_tables
from ocria.eval.rules import RuleError, read_rule, with_baseline
from ocria.eval.tables import Cell, Table, tables_in


class TruthError(ValueError):
    """A truth file that is missing or cannot be read."""


def read_text(path: Path) -> str:
    """UTF-8 text of a truth file. Raises TruthError."""
    try:
        return path.read_text(encoding="utf-8-sig")
    except FileNotFoundError as error:
        raise TruthError(f"truth is missing: {path.name}") from error
    except (OSError, UnicodeDecodeError) as error:
        raise TruthError(f"truth cannot be read: {path.name}: {error}") from error


def read_json(path: Path) -> Any:
    """Decoded JSON of a truth file. Raises TruthError."""
    try:
        return json.loads(read_text(path))
    except json.JSONDecodeError as error:
        raise TruthError(f"truth is not JSON: {path.name}: {error}") from error


def plain_truth(path: Path) -> Truth:
    """Lines of text in reading order; a form feed parts pages."""
    return Truth(text=read_text(path).replace("\f", "\n"))


def markdown_truth(path: Path) -> Truth:
    """Markdown with tables and formulas in place."""
    return truth_from_markdown(read_text(path))


def truth_from_markdown(markdown: str) -> Truth:
    """Text, tables and formulas of Markdown; an element that does not occur is not scored."""
    return Truth(
        text=markdown,
        is_markdown=True,
        tables=tables_in(markdown) or None,
        formulas=formulas_in(markdown) or None,
    )


def html_table_truth(path: Path) -> Truth:
    """HTML of one table."""
    tables = tables_in(read_text(path))
    if not tables:
        raise TruthError(f"truth holds no table: {path.name}")
    return Truth(tables=tables)


def rules_truth(path: Path) -> Truth:
    """A JSON list, or JSON lines, of olmOCR-bench rules."""
    text = read_text(path)
    try:
        rows = json.loads(text) if text.lstrip().startswith("[") else _json_lines(text)
        rules = [read_rule(row) for row in rows]
    except (json.JSONDecodeError, RuleError, AttributeError) as error:
        raise TruthError(f"{path.name}: {error}") from error
    return Truth(rules=with_baseline(rules))


def _json_lines(text: str) -> list[Any]:
    return [json.loads(line) for line in text.split("\n") if line.strip()]


def blocks_truth(path: Path) -> Truth:
    """pdf-parse-bench: a JSON list of blocks {type, data} of text, formulas and tables."""
    blocks = read_json(path)
    try:
        parts = [str(block["data"]) for block in blocks]
        kinds = [str(block["type"]) for block in blocks]
    except (TypeError, KeyError) as error:
        raise TruthError(f"{path.name}: not a list of blocks with type and data") from error
    formulas: list[str] = []
    tables: list[Table] = []
    for index, kind in enumerate(kinds):
        if kind.endswith("formula"):
            formulas.append(parts[index])
        elif kind == "table":
            found = latex_tables(parts[index]) or tables_in(parts[index])
            tables.extend(found)
            parts[index] = "\n".join(_table_text(table) for table in found)
    return Truth(
        text="\n\n".join(parts),
        is_markdown=True,
        tables=tuple(tables) or None,
        formulas=tuple(formulas) or None,
    )


def _table_text(table: Table) -> str:
    return "\n".join(" ".join(cell.text for cell in row) for row in table.rows)


def icdar2013_truth(path: Path) -> Truth:
    """ICDAR 2013 table competition, structure XML: cells with first and last row and column.

    A table that goes on over several regions has them stacked by their row increments.
    """
    try:
        root = ElementTree.fromstring(read_text(path))
        tables = tuple(_icdar_table(table) for table in root.iter("table"))
    except (ElementTree.ParseError, KeyError, ValueError) as error:
        raise TruthError(f"truth is not table XML: {path.name}: {error}") from error
    if not any(table.cells for table in tables):
        raise TruthError(f"truth holds no table: {path.name}")
    return Truth(tables=tables)


def _icdar_table(table: ElementTree.Element) -> Table:
    cells: list[Cell] = []
    for region in table.iter("region"):
        down = int(region.get("row-increment", "0"))
        right = int(region.get("col-increment", "0"))
        cells.extend(_icdar_cell(cell, down, right) for cell in region.iter("cell"))
    rows: dict[int, list[Cell]] = {}
    for cell in sorted(cells, key=lambda cell: (cell.row, cell.col)):
        rows.setdefault(cell.row, []).append(cell)
    return Table(rows=tuple(tuple(rows[index]) for index in sorted(rows)))


def _icdar_cell(cell: ElementTree.Element, down: int, right: int) -> Cell:
    row, col = int(cell.attrib["start-row"]), int(cell.attrib["start-col"])
    return Cell(
        text=" ".join((cell.findtext("content") or "").split()),
        row=row + down,
        col=col + right,
        rowspan=int(cell.get("end-row", row)) - row + 1,
        colspan=int(cell.get("end-col", col)) - col + 1,
    )


def boxes_truth(path: Path) -> Truth:
    """SROIE: lines `x1,y1,...,x4,y4,text`; the text may hold commas."""
    lines = [line.split(",", 8) for line in read_text(path).splitlines() if line.strip()]
    if any(len(line) < 9 for line in lines):
        raise TruthError(f"{path.name}: a line has fewer than eight numbers before its text")
    return Truth(text="\n".join(line[8].strip() for line in lines))


TRUTH_READERS: dict[str, Callable[[Path], Truth]] = {
    "text": plain_truth,
    "markdown": markdown_truth,
    "html-table": html_table_truth,
    "rules": rules_truth,
    "blocks": blocks_truth,
    "icdar2013": icdar2013_truth,
    "sroie-boxes": boxes_truth,
}
