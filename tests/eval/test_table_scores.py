"""TEDS: known distances, spans, and big tables."""

import random

import pytest

from ocria.eval import table_scores
from ocria.eval.table_scores import score_tables, table_distance, teds, teds_of_page
from ocria.eval.tables import LooseCell, Table, place_cells, tables_in


def table(*rows: str) -> Table:
    return place_cells([LooseCell(text=text) for text in row.split()] for row in rows)


def test_the_same_table_is_one_whatever_its_markup() -> None:
    (markdown,) = tables_in("| a | **b** |\n|---|---|\n| 1 | 2 |")
    (markup,) = tables_in("<table><tr><th>a</th><th>b</th></tr><tr><td>1<td>2</tr></table>")
    assert teds(markdown, markup) == 1.0


def test_a_missing_row_costs_its_nodes() -> None:
    # 1 table, 3 rows, 6 cells = 10 nodes; a row and two cells are missing.
    assert teds(table("a b", "c d", "e f"), table("a b", "e f")) == pytest.approx(0.7)


def test_a_misread_cell_costs_its_share_and_no_structure() -> None:
    truth, found = table("abcd x"), table("abcx x")
    assert teds(truth, found) == pytest.approx(1 - 0.25 / 4)
    assert teds(truth, found, structure_only=True) == 1.0


def test_a_wrong_span_costs_one() -> None:
    (truth,) = tables_in("<table><tr><td colspan=2>a</td></tr><tr><td>b<td>c</tr></table>")
    (found,) = tables_in("<table><tr><td>a</td></tr><tr><td>b<td>c</tr></table>")
    assert table_distance(truth, found) == 1.0
    assert teds(truth, found, structure_only=True) == pytest.approx(1 - 1 / 6)


def test_missed_tables_count_nothing_and_pairs_are_the_best() -> None:
    first, second = table("a b", "c d"), table("1 2", "3 4")
    assert score_tables((first, second), (second,)).teds == pytest.approx(0.5)
    assert score_tables((first, second), (second, first)).teds == 1.0
    assert score_tables((first,), ()).teds == 0.0


def test_big_tables_use_row_alignment_which_is_never_below(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    truth = table("a b c", "d e f", "g h i", "j k l")
    found = table("a b x", "g h i", "j l", "m n o")
    exact = table_distance(truth, found)
    monkeypatch.setattr(table_scores, "MAX_EXACT_PAIRS", -1)
    assert exact <= table_distance(truth, found) <= exact + 2
    assert table_distance(truth, truth) == 0.0


def test_exact_distance_is_bounded_to_small_tables(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*trees: object) -> None:
        raise AssertionError("the exact distance must not run on a page-long table")

    monkeypatch.setattr(table_scores, "APTED", refuse)
    long = place_cells([LooseCell(text=f"{r}-{c}") for c in range(8)] for r in range(900))
    assert teds(long, long) == 1.0


def test_tables_of_a_page_as_one_tree() -> None:
    first, second = table("a b", "c d"), table("1 2", "3 4")
    assert teds_of_page((first, second), (first, second)) == 1.0
    assert teds_of_page((first, second), (first,)) == pytest.approx(0.5)
    assert teds_of_page((first,), ()) == 0.0


def test_equal_rows_at_both_ends_change_no_distance(monkeypatch: pytest.MonkeyPatch) -> None:
    source = random.Random(4)
    for _ in range(60):
        truth = [" ".join(source.choices("abcd", k=source.randint(1, 4))) for _ in range(5)]
        found = [row for row in truth if source.random() < 0.7] + source.choices(truth, k=1)
        tables = table(*truth), table(*found)
        for structure_only in (False, True):
            trimmed = table_distance(*tables, structure_only=structure_only)
            with monkeypatch.context() as patch:
                patch.setattr(table_scores, "_drop_equal_ends", lambda left, right: None)
                assert table_distance(*tables, structure_only=structure_only) == trimmed


def test_tables_that_differ_in_a_row_are_compared_there_alone(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sizes: list[int] = []
    run = table_scores.APTED
    monkeypatch.setattr(
        table_scores, "APTED", lambda *pair: sizes.append(len(pair[0].children)) or run(*pair)
    )
    rows = [f"{row}a {row}b" for row in range(900)]
    changed = [*rows[:450], "450x 450b", *rows[451:]]
    assert table_distance(table(*rows), table(*changed)) == pytest.approx(0.25)
    assert sizes == [1]
