"""Tables in LaTeX, as pdf-parse-bench states them."""

from ocria.eval.latex_tables import latex_tables


def test_rules_marks_and_signs_go() -> None:
    (table,) = latex_tables(
        r"\begin{tabular}{@{}lc{2cm}@{}}\toprule \textbf{Size} & Cost \% \\ \midrule"
        "\n% a comment\n"
        r"16$\times$16 & 14.2s ($x^2$) \\[2pt] \cmidrule(lr){1-2} a\_b & \\ \bottomrule"
        r"\end{tabular}"
    )
    assert [[cell.text for cell in row] for row in table.rows] == [
        ["Size", "Cost %"],
        ["16×16", "14.2s ($x^2$)"],
        ["a_b", ""],
    ]


def test_spans_leave_no_empty_cells_below() -> None:
    (table,) = latex_tables(
        r"\begin{tabular}{lcc}\multirow{2}{*}{Name} & \multicolumn{2}{c}{\textit{Both}} \\"
        r" & x & y \\ \hline one & 1 & 2 \\ \end{tabular}"
    )
    places = {cell.text: (cell.row, cell.col, cell.rowspan, cell.colspan) for cell in table.cells}
    assert places == {
        "Name": (0, 0, 2, 1),
        "Both": (0, 1, 1, 2),
        "x": (1, 1, 1, 1),
        "y": (1, 2, 1, 1),
        "one": (2, 0, 1, 1),
        "1": (2, 1, 1, 1),
        "2": (2, 2, 1, 1),
    }


def test_cells_of_several_lines_stay_one_row() -> None:
    (table,) = latex_tables(r"\begin{tabular}{cc}\makecell{a\\b} & c \\ \end{tabular}")
    assert [cell.text for cell in table.cells] == ["a b", "c"]


def test_commands_and_tables_inside_cells_are_read_as_their_text() -> None:
    (table,) = latex_tables(
        r"\begin{tabular}{ll}\textbf{F1 ($\uparrow$)} & \begin{tabular}[c]{@{}c@{}}Number\\of"
        r"\end{tabular} \\ \(x_2\) & \textless a\textgreater\textsuperscript{4} \\ \end{tabular}"
    )
    assert [cell.text for cell in table.cells] == ["F1 (↑)", "Number of", "$x_2$", "<a>4"]


def test_no_table_and_an_open_one() -> None:
    assert latex_tables("text") == ()
    assert latex_tables(r"\begin{tabular}{c} a") == ()
