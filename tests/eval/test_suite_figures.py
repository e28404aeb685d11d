"""Figures of the frozen suites: by name, over the right pages, in the line, table and page."""

import io
import json
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria.eval import EvalOptions, evaluate
from ocria.eval.html_report import write_html
from ocria.eval.items import Item, Truth
from ocria.eval.predictions import PagePrediction, Prediction, ReadBlock
from ocria.eval.score import ItemScore, score_item
from ocria.eval.suite_figures import suite_figures
from ocria.eval.terminal import print_report

WORDS = [f"word{number}" for number in range(300)]
PAGE = " ".join(WORDS)
SWAPPED = " ".join(WORDS[150:] + WORDS[:150])


def score(
    kind: str, truth: str, read: str, *, confidence: float | None = None, origin: Any = "exact"
) -> ItemScore:
    blank = kind.startswith(("blank", "figure"))
    item = Item(
        name=kind, path=Path(kind), pages=None, group="g", kind=kind, lang="",
        metric="blank" if blank else "text", truth_origin=origin, truth=Truth(text=truth),
    )  # fmt: skip
    blocks = () if confidence is None else (ReadBlock(text=read, confidence=confidence),)
    page = PagePrediction(number=1, markdown=read, blocks=blocks)
    return score_item(item, Prediction(pages=(page,)))


def value(name: str, *scores: ItemScore) -> tuple[float, int] | None:
    found = {figure.name: (figure.value, figure.n) for figure in suite_figures(scores)}
    return found.get(name)


def test_order_is_right_or_not_by_page() -> None:
    right, wrong = score("columns/2", PAGE, PAGE), score("columns/2", PAGE, SWAPPED)
    unread = score("columns/2", PAGE, "")
    other = score("columns/3", PAGE, SWAPPED)
    assert value("two_column_pages_in_order", right, right, wrong, unread, other) == (0.5, 4)
    assert value("three_column_pages_in_order", right, other) == (0.0, 1)


def test_a_line_that_moved_is_no_right_order_and_a_chance_word_is() -> None:
    moved_line = " ".join(WORDS[8:] + WORDS[:8])
    one_word = " ".join(WORDS[1:] + WORDS[:1])
    assert value("two_column_pages_in_order", score("columns/2", PAGE, moved_line)) == (0.0, 1)
    assert value("two_column_pages_in_order", score("columns/2", PAGE, one_word)) == (1.0, 1)


def test_verbatim_characters_are_counted_over_all_pages() -> None:
    long, short = score("random strings", "a" * 90, "a" * 90), score("random strings", "b" * 10, "")
    assert value("verbatim_chars", long, short) == (pytest.approx(0.9), 2)


def test_what_is_invented_on_empty_pages_is_summed() -> None:
    pages = (
        score("blank/white", "", ""),
        score("figure/curve", "", "a b"),
        score("blank/x", "", "c"),
    )
    assert value("empty_pages_invented_chars", *pages) == (3, 3)


def test_loops_are_a_share_of_all_suite_pages() -> None:
    loop = score("repetition", "short", "again and again " * 40)
    fine = score("vietnamese", "short", "short")
    other = score("receipt", "short", "again and again " * 40)
    assert value("suite_loop_share", loop, fine, fine, fine, other) == (0.25, 4)


def test_unknown_scripts_ask_for_low_confidence_and_no_words_of_their_own() -> None:
    honest = score("unknown script/el", "άλφα βήτα", "", confidence=None)
    sure = score("unknown script/ru", "слово дело", "slovo delo", confidence=0.9)
    unsure = score("unknown script/ja", "日本語", "kanji", confidence=0.2)
    known = score("vietnamese", "chữ", "chữ", confidence=0.8)
    pages = honest, sure, unsure, known
    assert value("unknown_script_doubtful_pages", *pages) == (pytest.approx(2 / 3), 3)
    assert value("unknown_script_confidence", *pages) == (pytest.approx(0.55), 2)
    assert value("unknown_script_invented_words", *pages) == (pytest.approx(2 / 3), 3)
    assert value("unknown_script_confidence_auroc", *pages) == (0.5, 3)
    assert value("vietnamese_word_f1", *pages) == (1.0, 1)


def test_engines_without_confidence_have_no_such_figure() -> None:
    page = score("unknown script/ru", "слово", "слово")
    assert value("unknown_script_doubtful_pages", page) is None
    assert value("unknown_script_confidence_auroc", page, score("vietnamese", "a", "a")) is None


def test_other_data_sets_have_none_of_them() -> None:
    assert suite_figures([score("receipt", "a", "a"), score("scan", "b", "c")]) == ()
    assert suite_figures([score("columns/2", PAGE, PAGE, origin="human")]) == ()


def test_one_run_gives_them_by_name_everywhere(tmp_path: Path) -> None:
    pred = tmp_path / "pred"
    pred.mkdir()
    rows = []
    pages = (
        ("a", "columns/2", PAGE, PAGE),
        ("b", "blank/white", None, "!"),
        ("c", "vietnamese", "x", "x"),
    )
    for name, kind, truth, read in pages:
        Image.new("RGB", (30, 20), "white").save(tmp_path / f"{name}.png")
        (pred / f"{name}.png.md").write_text(read)
        (tmp_path / f"{name}.txt").write_text(truth or "")
        rows.append({"file": f"{name}.png", "truth": truth and f"{name}.txt", "kind": kind,
                     "metric": "text" if truth else "blank", "truth_origin": "exact"})  # fmt: skip
    (tmp_path / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    report = evaluate(EvalOptions(dataset=tmp_path, pred=pred))
    line = json.loads(report.as_json_line())
    assert line["two_column_pages_in_order"] == 1.0
    assert (line["empty_pages_invented_chars"], line["empty_pages_invented_chars_n"]) == (1, 1)
    assert line["vietnamese_word_f1_ci95"] == [1.0, 1.0]
    terminal = io.StringIO()
    print_report(report, terminal)
    write_html(report, tmp_path / "page.html")
    for shown in (terminal.getvalue(), (tmp_path / "page.html").read_text()):
        assert "two columns: pages read in order" in shown
