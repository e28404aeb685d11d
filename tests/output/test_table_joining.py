"""Two parts of a table, read apart, made whole."""

from ocria.document import Block
from ocria.output import joined_table
from ocria.output.table_grid import Cell, TableGrid


def block(*rows: str, confidence: float | None = 0.5) -> Block:
    """A table; cells by bars, '!' ends a heading and '+' a wide one."""
    cells: list[tuple[Cell | None, ...]] = []
    for row in rows:
        line: list[Cell | None] = []
        for text in row.split("|"):
            line.append(Cell(text=text.rstrip("!+"), heading=text.endswith("!"),
                             colspan=2 if text.endswith("+") else 1))  # fmt: skip
            line += [None] * text.endswith("+")
        cells.append(tuple(line))
    grid = TableGrid(rows=tuple(cells))
    return Block(
        id="p1-b1", type="table", text=grid.text(), markdown=grid.markdown(), html=grid.html(),
        bbox=(10.0, 20.0, 90.0, 50.0), confidence=confidence,
    )  # fmt: skip


def test_rows_follow_and_the_lower_head_heads_nothing() -> None:
    above, below = block("Ship!|Tons!", "Ada|12"), block("Eva!|9!", "Ida|**31**")
    whole = joined_table(above, below)
    assert whole.text == "Ship\tTons\nAda\t12\nEva\t9\nIda\t31"
    assert whole.html is not None and whole.html.count("<thead>") == 1
    assert "<td>Eva</td>" in whole.html and "<strong>31</strong>" in whole.html
    assert whole.markdown.splitlines()[-1] == "| Ida | **31** |"


def test_fewer_columns_are_filled_up_and_spans_stay() -> None:
    whole = joined_table(block("Both+|c", "1|2|3"), block("4|5"))
    assert whole.text == "Both\t\tc\n1\t2\t3\n4\t5\t"
    assert whole.html is not None and 'colspan="2"' in whole.html and whole.markdown == whole.html


def test_boxes_and_confidence_are_of_both() -> None:
    above, below = block("aaaa", confidence=1.0), block("bb", confidence=0.4)
    whole = joined_table(above, below)
    assert whole.bbox == (10.0, 20.0, 90.0, 50.0) and whole.confidence == 0.8
    assert joined_table(block("a", confidence=None), block("b", confidence=None)).confidence is None
