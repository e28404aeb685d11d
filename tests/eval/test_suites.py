"""The suite builder on a tiny corpus of its own."""

import json
import random
from pathlib import Path

import pytest

pytest.importorskip("typst")

from ocria.eval.honesty import visible_chars
from ocria.eval.tables import tables_in
from ocria.models.recipes.pages.corpus import is_held_out
from ocria.models.recipes.suites.build import Press
from ocria.models.recipes.suites.empty import empty_sheets
from ocria.models.recipes.suites.sheet import fitting_sheets
from ocria.models.recipes.suites.sources import Sources, clean_paragraphs
from ocria.models.recipes.suites.tables import table_sheets
from ocria.models.recipes.suites.verbatim import loop_sheets, string_sheets

EMBEDDED = "Libertinus Serif"
"""Comes with typst, so no font folder is needed."""
WORDS = "apple brick candle dragon ember forest garden harbour island jungle kettle lantern"


@pytest.fixture
def sources(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Sources:
    ids = {held: next(i for i in map(str, range(99)) if is_held_out(i) == held) for held in (0, 1)}
    rows = [
        {"id": ids[1], "lang": "en", "text": WORDS},
        {"id": ids[0], "lang": "en", "text": "trained " * 50},
    ]
    (tmp_path / "en_books.jsonl").write_text("\n".join(map(json.dumps, rows)))
    monkeypatch.setattr(Sources, "family", lambda *args, **kwargs: EMBEDDED)
    return Sources(corpus=tmp_path, fonts=tmp_path)


def test_words_come_from_held_out_documents_alone(sources: Sources) -> None:
    words = sources.words(random.Random(0), count=200)
    assert set(words) <= set(WORDS.split())


def test_tables_say_in_html_what_typst_sets(sources: Sources) -> None:
    press = Press(sources.fonts)
    for sheet in table_sheets(sources, random.Random(1), 4):
        pdf, truth = press.print(sheet)
        (table,) = tables_in(truth)
        widths = {sum(1 for r, _ in table.grid() if r == row) for row in range(len(table.rows))}
        assert pdf.startswith(b"%PDF")
        assert len(widths) == 1, "every row of the grid is as wide as the table"
        assert ("spans" in sheet.kind) == any(c.colspan * c.rowspan > 1 for c in table.cells)


def test_the_same_seed_gives_the_same_pages(sources: Sources) -> None:
    for maker in (string_sheets, loop_sheets, table_sheets):
        first = list(maker(sources, random.Random("x"), 6))
        assert first == list(maker(sources, random.Random("x"), 6))


def test_text_with_marks_is_set_as_it_stands(sources: Sources) -> None:
    import pypdfium2 as pdfium

    text = 'a "b" \\ #c $d$ _e_ *f* <g> @h'
    sheet = fitting_sheets([text], kind="k", lang="en", font=EMBEDDED)
    pdf, truth = Press(sources.fonts).print(sheet)
    with pdfium.PdfDocument(pdf) as document:
        found = document[0].get_textpage().get_text_range()
    assert found.strip() == truth == text


def test_a_page_is_cut_to_fit_and_its_truth_with_it(sources: Sources) -> None:
    paragraphs = [f"{number} " + "word " * 300 for number in range(12)]
    sheet = fitting_sheets(paragraphs, kind="k", lang="en", font=EMBEDDED)
    _, truth = Press(sources.fonts).print(sheet)
    assert 1 <= truth.count("word") // 300 < 12


def test_empty_pages_have_no_truth_and_are_all_different(sources: Sources) -> None:
    sheets = list(empty_sheets(sources, random.Random(2), 16))
    assert {sheet.metric for sheet in sheets} == {"blank"}
    pixels = {sheet.picture.tobytes() for sheet in sheets if sheet.picture is not None}
    assert len(pixels) >= 14
    assert visible_chars("") == 0


def test_paragraphs_with_mark_up_are_left_out() -> None:
    good = "A clean paragraph of more than forty characters stands here."
    text = (
        f"# Head\n\n{good}\n\n- an item that is long enough to be taken for text\n\nsee `code` " * 2
    )
    assert clean_paragraphs(text, lang="en", longest=200) == [good, good]
    assert clean_paragraphs(good, lang="vi", longest=200) == []
