"""Page generators: truth and ink agree, or the page is refused."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typst", reason="the page recipes need typst")
pytest.importorskip("faker", reason="the page recipes need faker")

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import is_held_out, split_passages
from ocria.models.recipes.pages.fonts import Family
from ocria.models.recipes.pages.inline import runs_of
from ocria.models.recipes.pages.latex import canonical
from ocria.models.recipes.pages.readback import UnfaithfulPageError, read_pages
from ocria.models.recipes.pages.scan import moved_box, scan, turned
from ocria.models.recipes.pages.typeset import Manuscript, Press, Sheet, Style

# A face that typst carries itself, so that no font folder is needed.
SERIF = Family(name="Libertinus Serif", category="serif", styles=frozenset("rbi"), vietnamese=True)
PROSE = "The organisation of international conferences demands considerable determination. "


@pytest.fixture(scope="module")
def press(tmp_path_factory):
    return Press(SimpleNamespace(folder=tmp_path_factory.mktemp("fonts")))


def manuscript(columns=1):
    margins = (40.0, 40.0, 40.0, 40.0)
    sheet = Sheet(width_px=400, height_px=544, scale=1.0, margins_pt=margins, columns=columns)
    return Manuscript(sheet=sheet, family=SERIF)


def paragraph(text):
    return Block(type="paragraph", runs=(Run(ink=text),), splittable=True)


def test_paragraph_split_over_columns_and_pages_is_all_there(press):
    document = manuscript(columns=2)
    texts = [f"Nr. {i} " + PROSE * 6 for i in range(8)]
    for text in texts:
        document.add(paragraph(text), Style(justify=True))
    pages = read_pages(press.print(document), document, 9)
    assert len(pages) > 1
    read = " ".join(p.block.content() for page in pages for p in page.placed)
    letters = "".join(read.replace("-", "").split())
    assert letters == "".join("".join(texts).replace("-", "").split())
    for page in pages:
        for placed in page.placed:
            assert placed.box[2] - placed.box[0] < 170, "one box never spans two columns"


def test_boxes_hold_the_ink(press):
    document = manuscript()
    document.add(paragraph(PROSE * 3), Style())
    (page,) = read_pages(press.print(document), document, 1)
    ys, xs = np.nonzero(page.pixels < 128)
    x0, y0, x1, y1 = page.placed[0].box
    np.testing.assert_allclose((xs.min(), ys.min(), xs.max(), ys.max()), (x0, y0, x1, y1), atol=2.5)


def test_text_over_text_is_refused(press):
    document = manuscript()
    for text in ("Two lines in", "one place here"):
        source = document.placed(paragraph(text), Style())
        document.raw(f"#place(top + left)[{source}]")
    with pytest.raises(UnfaithfulPageError, match="ink over ink"):
        read_pages(press.print(document), document, 1)


def test_ink_off_the_page_is_refused(press):
    document = manuscript()
    source = document.placed(paragraph("Half outside"), Style())
    document.raw(f"#place(top + left, dx: -70pt)[{source}]")
    with pytest.raises(UnfaithfulPageError, match="off the page"):
        read_pages(press.print(document), document, 1)


def test_table_markup_names_every_place():
    rows = (
        (Cell(text="A", header=True, columns=2), None, Cell(text="B", header=True)),
        (Cell(text="c", rows=2), Cell(), Cell(text="1")),
        (None, Cell(text="d"), Cell(text="2")),
    )
    table = Table(rows=rows, align=("left",) * 3)
    assert table.markup() == (
        "<|ched|>A<|lcel|><|ched|>B<|nl|><|fcel|>c<|ecel|><|fcel|>1<|nl|>"
        "<|ucel|><|fcel|>d<|fcel|>2<|nl|>"
    )


def test_part_keeps_marks_and_refuses_to_cut_a_formula():
    runs = (Run(ink="one "), Run(ink="two three", style="bold"))
    assert Block(type="paragraph", runs=runs).part(0, 6).content() == "one **two**"
    formula = (Run(ink="a "), Run(ink="x^2", style="math", truth="$x^{2}$"))
    with pytest.raises(ValueError, match="unsplittable"):
        Block(type="paragraph", runs=formula).part(0, 2)


def test_inline_marks_follow_the_fonts_at_hand():
    bold = runs_of("a **b** c", {}, styles=frozenset("rb"))
    plain = runs_of("a **b** c", {}, styles=frozenset("r"))
    assert bold is not None and plain is not None
    assert "".join(run.markup for run in bold) == "a **b** c"
    assert "".join(run.markup for run in plain) == "a b c"
    assert runs_of("unknown $q_9$", {}, styles=frozenset("r")) is None


@pytest.mark.parametrize(
    ("spelling", "wanted"),
    [
        (r"\left( x _ 1 \, \right)", "(x_{1})"),
        (r"\operatorname { l n } x", r"\ln x"),
        (r"a ^ { \prime }", "a'"),
        (r"{\frac { a } { b }}", r"\frac{a}{b}"),
        (r"x \rightarrow y", r"x\to y"),
        (r"\begin{array} a", None),
    ],
)
def test_canonical_latex(spelling, wanted):
    assert canonical(spelling) == wanted


def test_hold_out_is_about_an_eighth_and_stable():
    held = sum(is_held_out(f"document {i}") for i in range(4000))
    assert 400 < held < 600
    assert is_held_out("a") is False


def test_passages_of_markdown():
    found = split_passages("# Title\n\nSome *text* here.\n\n- one\n- two\n\n| a | b |\n|---|---|")
    assert [p.kind for p in found] == ["heading", "paragraph", "item", "item", "table"]


@pytest.mark.parametrize("degrees", [90, 180, 270])
def test_turned_boxes_follow_the_pixels(degrees):
    pixels = np.full((60, 100), 255, np.uint8)
    pixels[10:20, 30:70] = 0
    away = turned(pixels, degrees)
    x0, y0, x1, y1 = moved_box((30, 10, 70, 20), away.matrix)
    ys, xs = np.nonzero(away.pixels == 0)
    np.testing.assert_allclose((x0, y0, x1, y1), (xs.min(), ys.min(), xs.max() + 1, ys.max() + 1))


def test_scan_keeps_shape_and_strength_zero_keeps_pixels():
    pixels = np.full((96, 128), 230, np.uint8)
    pixels[40:50, 20:100] = 10
    for seed in range(20):
        result = scan(pixels, random.Random(seed))
        assert result.pixels.shape == pixels.shape
        assert result.pixels.dtype == np.uint8
    assert np.array_equal(scan(pixels, random.Random(0), strength=0.0).pixels, pixels)
