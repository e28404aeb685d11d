"""A `table` element to a grid. A table inside a cell becomes text of that cell."""

import re
from collections.abc import Iterator

from ocria.output.html_inline import one_line
from ocria.output.html_lexemes import Piece
from ocria.output.html_tree import Element
from ocria.output.span_grid import MAX_SPAN, grid_from_spans
from ocria.output.table_grid import Cell, TableGrid

_PARTS = frozenset({"thead", "tbody", "tfoot"})
_NUMBER = re.compile(r"[0-9]{1,6}")


def grid_of(table: Element) -> tuple[TableGrid | None, bool]:
    """The grid, None for a table without cells, and whether something was mended.

    Mended is text or a cell outside a row: text becomes a row of its own.
    """
    rows: list[list[Cell]] = []
    mended = _collect(table, rows, in_head=False)
    rows = [row for row in rows if row]
    if not rows:
        return None, True
    num_rows = len(rows)
    fitted = [[_within(cell, num_rows - y) for cell in row] for y, row in enumerate(rows)]
    grid, uneven = grid_from_spans(fitted)
    return grid, mended or uneven


def captions_of(table: Element) -> Iterator[str]:
    """Texts of the table's own captions."""
    for child in table.elements():
        if child.name == "caption" and one_line(child):
            yield one_line(child)


def _collect(parent: Element, rows: list[list[Cell]], *, in_head: bool) -> bool:
    mended, loose = False, False
    for child in parent.children:
        if isinstance(child, Piece):
            if child.value.strip():
                rows.append([Cell(text=" ".join(child.value.split()))])
                mended = True
        elif child.name in _PARTS:
            mended |= _collect(child, rows, in_head=child.name == "thead")
        elif child.name == "tr":
            cells = [_cell(c, in_head) for c in child.elements() if c.name in ("td", "th")]
            stray = [c for c in child.children if _is_stray(c)]
            cells += [Cell(text=_stray_text(c)) for c in stray]
            mended |= bool(stray)
            rows.append(cells)
        elif child.name in ("td", "th"):
            # Cells that lost their row share one.
            if not loose:
                rows.append([])
            rows[-1].append(_cell(child, in_head))
            mended = loose = True
            continue
        elif child.name != "caption" and one_line(child):
            rows.append([Cell(text=one_line(child))])
            mended = True
        loose = False
    return mended


def _is_stray(node: Element | Piece) -> bool:
    if isinstance(node, Piece):
        return bool(node.value.strip())
    return node.name not in ("td", "th") and bool(one_line(node))


def _stray_text(node: Element | Piece) -> str:
    return " ".join(node.value.split()) if isinstance(node, Piece) else one_line(node)


def _cell(element: Element, in_head: bool) -> Cell:
    return Cell(
        text=one_line(element),
        heading=in_head or element.name == "th",
        rowspan=_span(element.attributes.get("rowspan", "1"), of_zero=MAX_SPAN),
        colspan=_span(element.attributes.get("colspan", "1"), of_zero=1),
    )


def _span(value: str, *, of_zero: int) -> int:
    """A span as HTML counts it: 0 rows reach to the end of the table, nonsense is 1."""
    if not _NUMBER.fullmatch(value.strip()):
        return 1
    number = int(value)
    return min(number, MAX_SPAN) if number else of_zero


def _within(cell: Cell, rows_left: int) -> Cell:
    """A cell that says "to the end" reaches exactly there."""
    if cell.rowspan < MAX_SPAN:
        return cell
    return Cell(text=cell.text, heading=cell.heading, rowspan=rows_left, colspan=cell.colspan)
