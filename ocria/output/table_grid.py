"""A table as a rectangle of cells with spans, and its two written forms."""

from collections.abc import Sequence
from dataclasses import dataclass

from ocria.output.inline import inline_html, plain_text
from ocria.output.markdown_escape import escape_cell

# Padding ragged rows must not turn a few thousand tokens into millions of cells.
MAX_CELLS = 20_000


@dataclass(frozen=True, kw_only=True, slots=True)
class Cell:
    """One cell and how far it reaches. `text` is one line and may hold inline marks."""

    text: str = ""
    heading: bool = False
    rowspan: int = 1
    colspan: int = 1


@dataclass(frozen=True, kw_only=True, slots=True)
class TableGrid:
    """Rows of equal width. None is a place that a cell above or to the left covers."""

    rows: tuple[tuple[Cell | None, ...], ...]

    @property
    def has_spans(self) -> bool:
        """Whether a pipe table cannot show it."""
        return any(cell is None for row in self.rows for cell in row)

    def text(self) -> str:
        """Cells by tabs, rows by lines; covered places are empty."""
        return "\n".join(
            "\t".join(plain_text(cell.text) if cell else "" for cell in row) for row in self.rows
        )

    def markdown(self) -> str:
        """A GitHub pipe table, or HTML where cells span."""
        if self.has_spans:
            return self.html()
        lines = [
            "| " + " | ".join(escape_cell(cell.text) if cell else "" for cell in row) + " |"
            for row in self.rows
        ]
        lines.insert(1, "|" + " --- |" * len(self.rows[0]))
        return "\n".join(lines)

    def html(self) -> str:
        """An HTML table, a row a line, without blank lines (one would end it in Markdown)."""
        head = self._num_head_rows()
        lines = ["<table>"]
        for name, rows in (("thead", self.rows[:head]), ("tbody", self.rows[head:])):
            if rows:
                lines += [f"<{name}>", *(_row_html(row) for row in rows), f"</{name}>"]
        return "\n".join([*lines, "</table>"])

    def _num_head_rows(self) -> int:
        head = 0
        for row in self.rows:
            cells = [cell for cell in row if cell is not None]
            # The corner above the row names is often empty, and not marked as a heading.
            if not any(cell.heading for cell in cells) or any(
                cell.text and not cell.heading for cell in cells
            ):
                break
            head += 1
        # A browser cuts a span at the end of its row group.
        reach = max(
            (y + cell.rowspan for y, row in enumerate(self.rows[:head]) for cell in row if cell),
            default=0,
        )
        return head if reach <= head else 0


def _row_html(row: tuple[Cell | None, ...]) -> str:
    return "<tr>" + "".join(_cell_html(cell) for cell in row if cell is not None) + "</tr>"


def _cell_html(cell: Cell) -> str:
    tag = "th" if cell.heading else "td"
    spans = f' rowspan="{cell.rowspan}"' * (cell.rowspan > 1)
    spans += f' colspan="{cell.colspan}"' * (cell.colspan > 1)
    return f"<{tag}{spans}>{inline_html(cell.text)}</{tag}>"


def rectangular(rows: Sequence[Sequence[Cell]]) -> tuple[TableGrid, bool]:
    """A grid without spans from rows of any length; the flag says that a row was mended.

    Short rows are padded. Where that would take more than `MAX_CELLS`, the ends of long rows are
    joined into their last cell instead.
    """
    width = common_width([len(row) for row in rows])
    mended = tuple(_fit(row, width) for row in rows)
    return TableGrid(rows=mended), any(len(row) != width for row in rows)


def common_width(lengths: Sequence[int]) -> int:
    """Number of columns that rows of these lengths get."""
    return max(1, min(max(lengths, default=1), MAX_CELLS // max(len(lengths), 1)))


def _fit(row: Sequence[Cell], width: int) -> tuple[Cell, ...]:
    if len(row) <= width:
        return (*row, *(Cell() for _ in range(width - len(row))))
    rest = " ".join(cell.text for cell in row[width - 1 :] if cell.text)
    return (*row[: width - 1], Cell(text=rest, heading=row[width - 1].heading))
