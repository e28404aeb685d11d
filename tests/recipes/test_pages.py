"""Page generators: truth and ink agree, or the page is refused."""

import random
from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("typst", reason="the page recipes need typst")
pytest.importorskip("faker", reason="the page recipes need faker")

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import (
    Passage,
    Story,
    is_drawable,
    is_held_out,
    split_passages,
)
from ocria.models.recipes.pages.fonts import Family
from ocria.models.recipes.pages.inline import runs_of
from ocria.models.recipes.pages.kinds import KINDS, WEIGHTS
from ocria.models.recipes.pages.kinds.forms import tick_box
from ocria.models.recipes.pages.latex import canonical
from ocria.models.recipes.pages.readback import UnfaithfulPageError, read_pages
from ocria.models.recipes.pages.salt import salted
from ocria.models.recipes.pages.scan import _threshold, moved_box, scan, turned
from ocria.models.recipes.pages.typeset import Manuscript, Press, Sheet, Style
from ocria.models.recipes.pages.wear import DIGITAL, FINE, OFFICE, OLD, THERMAL

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
        (r"{ \bf C } _ { \rm out }", r"\mathbf{C}_{\mathrm{out}}"),
        (r"x ^ { a _ { 1 } } _ j", r"x_{j}^{a_{1}}"),
        (r"\frac 1 { 2 } { a b }", r"\frac{1}{2}ab"),
        (r"\epsilon \not = \hat \alpha", r"\epsilon\neq\hat{\alpha}"),
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


def test_leaders_are_ink_but_no_text(press):
    document = manuscript()
    runs = (Run(ink="2.1 Title"), Run(ink="", style="leaders", truth=" "), Run(ink=" 14"))
    document.add(Block(type="paragraph", runs=runs), Style())
    cells = ((Cell(text="Cash", leaders=True), Cell(text="1,200")),)
    table = Table(rows=cells, align=("left", "right"), widths=("1fr", "auto"))
    document.add(Block(type="table", table=table), Style())
    (page,) = read_pages(press.print(document), document, 1)
    assert [p.block.content() for p in page.placed] == [
        "2.1 Title 14",
        "<|fcel|>Cash<|fcel|>1,200<|nl|>",
    ]
    x0, _, x1, _ = page.placed[0].box
    between = page.pixels[38:60, int(x0) + 80 : int(x1) - 40]
    assert (between < 160).any(), "the dots are printed"


def test_check_boxes_and_rules_to_write_on(press):
    document = manuscript()
    rng = random.Random(3)
    runs = (Run(ink="Sex: "), tick_box(rng, True, 8), Run(ink="F "), tick_box(rng, False, 8))
    rule = Run(ink="#box(width: 1fr, stroke: (bottom: 0.5pt))", style="drawn")
    for line in ((*runs, Run(ink="M")), (Run(ink="Name: "), rule)):
        document.add(Block(type="form_field", runs=line), Style())
    (page,) = read_pages(press.print(document), document, 1)
    assert [p.block.content() for p in page.placed] == ["Sex: [x] F [ ] M", "Name:"]


def test_raised_marks_and_part_rules_of_a_table(press):
    document = manuscript()
    rows = (
        (Cell(text="Arm", header=True, columns=2, align="left"), None),
        (Cell(text="1.5 ± 0.2", mark="a"), Cell(mark="*")),
    )
    table = Table(rows=rows, align=("left", "right"), rules="head", part_lines=((1, 0, 1),))
    document.add(Block(type="table", table=table), Style())
    (page,) = read_pages(press.print(document), document, 1)
    wanted = "<|ched|>Arm<|lcel|><|nl|><|fcel|>1.5 ± 0.2a<|fcel|>*<|nl|>"
    assert page.placed[0].block.content() == wanted


def test_fax_threshold_keeps_fine_print():
    """Type six pixels high, grey from its small size, below a black bar."""
    import cv2

    pixels = np.full((400, 640), 250, np.uint8)
    pixels[10:30, 20:620] = 10
    for y in range(50, 390, 12):
        cv2.putText(pixels, PROSE, (20, y), cv2.FONT_HERSHEY_SIMPLEX, 0.3, 30, 1, cv2.LINE_AA)
    strokes = pixels < 130
    strokes[:40] = False
    for seed in range(20):
        kept = (_threshold(pixels, random.Random(seed))[strokes] < 160).mean()
        assert kept > 0.75, f"seed {seed}: {kept:.2f} of the strokes are left"


def test_salted_prose_keeps_its_marks_and_mostly_its_words():
    text = "The seller shall deliver the goods before noon. " * 8
    formula = Passage(kind="paragraph", text="where $x^{2}$ is **bold** " * 20)
    story = Story(
        lang="en", genre="legal", passages=(Passage(kind="paragraph", text=text), formula)
    )
    changed = 0
    for seed in range(60):
        salted_story = salted(story, random.Random(seed))
        assert salted_story.passages[1] == formula
        words = salted_story.passages[0].text.split()
        changed += words != text.split()
        same = sum(w in text for w in words) / len(words)
        assert same > 0.6
        assert is_drawable(salted_story.passages[0].text)
    assert 3 < changed < 35


def test_fax_threshold_leaves_no_black_where_a_shadow_lies():
    pixels = np.tile(np.linspace(140, 250, 512).astype(np.uint8), (256, 1))
    ink = np.zeros_like(pixels, bool)
    ink[100:110, 20:490:4] = True
    pixels[ink] = (pixels[ink] * 0.2).astype(np.uint8)
    for seed in range(5):
        out = _threshold(pixels, random.Random(seed))
        assert (out[~ink] > 200).mean() > 0.97
        assert (out[ink] < 128).mean() > 0.9


@pytest.mark.parametrize("wear", [DIGITAL, OFFICE, FINE, OLD, THERMAL])
def test_every_wear_keeps_shape_and_moves_boxes_with_the_ink(wear):
    pixels = np.full((320, 256), 235, np.uint8)
    pixels[100:140, 60:200] = 15
    for seed in range(25):
        result = scan(pixels, random.Random(seed), wear=wear)
        assert result.pixels.shape == pixels.shape and result.pixels.dtype == np.uint8
        x0, y0, x1, y1 = (round(v) for v in moved_box((60, 100, 200, 140), result.matrix))
        inside = result.pixels[y0 + 12 : y1 - 12, x0 + 12 : x1 - 12].astype(float)
        around = result.pixels[max(y0 - 14, 0) : y0 - 6, x0:x1].astype(float)
        assert abs(inside.mean() - around.mean()) > 15


def test_condensed_print_keeps_its_boxes(press):
    margins = (40.0, 40.0, 40.0, 40.0)
    sheet = Sheet(width_px=300, height_px=544, scale=1.0, margins_pt=margins, condense=0.75)
    document = Manuscript(sheet=sheet, family=SERIF)
    document.add(paragraph(PROSE * 3), Style())
    (page,) = read_pages(press.print(document), document, 1)
    assert page.pixels.shape == (544, 300)
    ys, xs = np.nonzero(page.pixels < 128)
    x0, y0, x1, y1 = page.placed[0].box
    wanted = (x0 * 0.75, y0, x1 * 0.75, y1)
    np.testing.assert_allclose((xs.min(), ys.min(), xs.max(), ys.max()), wanted, atol=2.5)


def test_spaces_that_a_till_pads_with_are_one_space_in_the_truth():
    block = Block(type="form_field", runs=(Run(ink="Date\u00a0\u00a0\u00a0:\u00a01/2/2020"),))
    assert block.content() == "Date : 1/2/2020"


def test_kinds_that_are_drawn_exist():
    assert {kind for kinds in WEIGHTS.values() for kind in kinds} <= set(KINDS)


def test_a_bilevel_scan_breaks_letters_only_where_asked(press):
    document = manuscript()
    document.add(paragraph(PROSE * 12), Style(size_pt=9))
    (page,) = read_pages(press.print(document), document, 1)
    kept = [
        float((_threshold(page.pixels, random.Random(1), (share, share)) < 128).mean())
        for share in (0.8, 1.0, 1.6)
    ]
    assert kept == sorted(kept)
    assert kept[0] < kept[2]
