"""Tables of Markdown and HTML, spans included."""

import pytest

from ocria.eval.tables import Table, tables_in


def texts(table: Table) -> list[list[str]]:
    return [[cell.text for cell in row] for row in table.rows]


def test_pipe_table() -> None:
    (table,) = tables_in("before\n\n| a | b |\n|---|:--|\n| 1 | 2 |\n| 3 |  |\n\nafter")
    assert texts(table) == [["a", "b"], ["1", "2"], ["3", ""]]
    assert [cell.heading for cell in table.cells] == [True, True, True, False, True, False]


def test_pipe_table_needs_its_rule_unless_told() -> None:
    lines = "a | b\n1 | 2\n"
    assert tables_in(lines) == ()
    assert texts(tables_in(lines, rule_needed=False)[0]) == [["a", "b"], ["1", "2"]]


def test_escaped_pipes_belong_to_the_cell() -> None:
    (table,) = tables_in("| a \\| b | c |\n|---|---|\n| x | y |")
    assert texts(table)[0] == ["a | b", "c"]


def test_html_spans_push_cells_aside() -> None:
    (table,) = tables_in(
        "<table><thead><tr><th rowspan=2>A</th><th colspan='2'>B</th></tr>"
        "<tr><th>b1</th><th>b2</th></tr></thead><tr><td>1</td><td>2</td><td>3</td></tr></table>"
    )
    places = {cell.text: (cell.row, cell.col) for cell in table.cells}
    assert places["b1"] == (1, 1)
    assert places["b2"] == (1, 2)
    assert table.grid()[(1, 0)].text == "A"
    assert table.grid()[(0, 2)].text == "B"
    assert {cell.text for cell in table.cells if cell.heading} == {"A", "B", "b1", "b2"}


@pytest.mark.parametrize("span", ["0", "-3", "x", "999999999", ""])
def test_impossible_spans_do_no_harm(span: str) -> None:
    (table,) = tables_in(f'<table><tr><td colspan="{span}">a</td><td>b</td></tr></table>')
    assert table.cells[0].colspan == 1


def test_a_huge_span_is_bounded() -> None:
    (table,) = tables_in('<table><tr><td rowspan="99999" colspan="99999">a</td></tr></table>')
    assert len(table.grid()) <= 200 * 200


def test_tables_come_in_reading_order_and_open_ones_count() -> None:
    markdown = (
        "| p |\n|---|\n| 1 |\n\n<table><tr><td>h<br>i</td></tr></table>\n\n<table><tr><td>open"
    )
    assert [texts(table)[0] for table in tables_in(markdown)] == [["p"], ["h i"], ["open"]]


def test_pipes_inside_html_tables_are_not_pipe_tables() -> None:
    assert (
        len(tables_in("<table>\n<tr><td>a | b</td></tr>\n<tr><td>--|--</td></tr>\n</table>")) == 1
    )


def test_no_table() -> None:
    assert tables_in("") == ()
    assert tables_in("<table></table> text") == ()


def test_short_rows_are_filled_and_an_empty_heading_row_is_none() -> None:
    (table,) = tables_in("|  |  |\n|---|---|\n| a | b |\n| c |")
    assert texts(table) == [["a", "b"], ["c", ""]]
    assert [cell.heading for cell in table.cells] == [True, False, True, False]
