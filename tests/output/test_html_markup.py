"""HTML layout blocks, as chandra-ocr and surya-ocr write them."""

import pytest

from ocria.output import MarkupStyle, PageGeometry, build_page_blocks

from .conftest import decode
from .foreign import BOX, PAGE, Case, b, check, formula, heading, item, table


def div(label: str, inside: str, bbox: str = "[100, 50, 900, 80]") -> str:
    return f'<div data-bbox="{bbox}" data-label="{label}">{inside}</div>'


CASES = [
    Case("paragraph", div("Text", "<p>Plain words.</p>"), (b("paragraph", "Plain words."),)),
    Case(
        "two-paragraphs-share-a-box",
        div("Text", "<p>One.</p>\n<p>Two.</p>"),
        (b("paragraph", "One."), b("paragraph", "Two.")),
    ),
    Case("bare-text", div("Text", "No element around."), (b("paragraph", "No element around."),)),
    Case(
        "inline-marks",
        div("Text", "<p>A <b>bold</b>, <i>slanted</i> x<sup>2</sup>, H<sub>2</sub>O.</p>"),
        (b("paragraph", "A bold, slanted x², H₂O.", "A **bold**, *slanted* x², H₂O."),),
    ),
    Case(
        "line-break-inside",
        div("Text", "<p>12 High Street<br/>Newtown</p>"),
        (b("paragraph", "12 High Street\nNewtown"),),
    ),
    Case(
        "headings",
        div("Section-Header", "<h1>Report</h1>") + div("Section-Header", "Bare"),
        (heading(1, "Report"), heading(2, "Bare")),
    ),
    Case(
        "furniture",
        div("Page-Header", "<p>ACME Ltd</p>") + div("Page-Footer", "<p>- 12 -</p>"),
        (b("header", "ACME Ltd"), b("page_number", "- 12 -", "\\- 12 -")),
    ),
    Case(
        "footnote-and-caption",
        div("Footnote", "<sup>1</sup> See above.") + div("Caption", "<p>Fig. 2: A map</p>"),
        (b("footnote", "¹ See above."), b("caption", "Fig. 2: A map")),
    ),
    Case(
        "bullets-nested",
        div("List-Group", "<ul><li>one<ul><li>deep</li></ul></li><li>two</li></ul>"),
        (item(1, "one", "- one"), item(2, "deep", "- deep"), item(1, "two", "- two")),
    ),
    Case(
        "numbers-and-printed-marks",
        div("List-Group", "<ol><li>first</li><li>second</li></ol><ul><li>7. seventh</li></ul>"),
        (
            item(1, "1. first", "1. first"),
            item(1, "2. second", "2. second"),
            item(1, "7. seventh", "7. seventh"),
        ),
    ),
    Case(
        "items-without-ends",
        div("List-Group", "<ul><li>one<li>two</ul>"),
        (item(1, "one", "- one"), item(1, "two", "- two")),
    ),
    Case(
        "table-with-head",
        div(
            "Table",
            "<table><thead><tr><th>Year</th><th>Sum</th></tr></thead>"
            "<tbody><tr><td>2024</td><td>1|2</td></tr></tbody></table>",
        ),
        (
            table(
                "<thead>\n<tr><th>Year</th><th>Sum</th></tr>\n</thead>\n"
                "<tbody>\n<tr><td>2024</td><td>1|2</td></tr>\n</tbody>",
                "Year\tSum\n2024\t1|2",
                "| Year | Sum |\n| --- | --- |\n| 2024 | 1\\|2 |",
            ),
        ),
    ),
    Case(
        "table-with-spans",
        div(
            "Table",
            '<table><tr><td rowspan="2">a</td><td colspan="2">b</td></tr>'
            "<tr><td>c</td><td>d</td></tr></table>",
        ),
        (
            table(
                '<tbody>\n<tr><td rowspan="2">a</td><td colspan="2">b</td></tr>\n'
                "<tr><td>c</td><td>d</td></tr>\n</tbody>",
                "a\tb\t\n\tc\td",
            ),
        ),
    ),
    Case(
        "table-inside-a-cell",
        div(
            "Table",
            '<table><tr><td colspan="2">x<table><tr><td>in</td><td rowspan="2">ner</td></tr>'
            "<tr><td>most</td></tr></table></td></tr><tr><td>y</td><td>z</td></tr></table>",
        ),
        (
            table(
                '<tbody>\n<tr><td colspan="2">x in ner most</td></tr>\n'
                "<tr><td>y</td><td>z</td></tr>\n</tbody>",
                "x in ner most\t\ny\tz",
            ),
        ),
    ),
    Case(
        "row-boxes-and-caption",
        div(
            "Table",
            "<table><caption>Table 1</caption>"
            '<tr data-bbox="[1, 2, 3, 4]"><td>a</td><td>b</td></tr></table>',
        ),
        (
            b("caption", "Table 1"),
            table(
                "<tbody>\n<tr><td>a</td><td>b</td></tr>\n</tbody>",
                "a\tb",
                "| a | b |\n| --- | --- |",
            ),
        ),
    ),
    Case(
        "span-over-the-edge",
        div("Table", '<table><tr><td rowspan="9">a</td><td>b</td></tr></table>'),
        (
            table(
                "<tbody>\n<tr><td>a</td><td>b</td></tr>\n</tbody>",
                "a\tb",
                "| a | b |\n| --- | --- |",
            ),
        ),
        True,
    ),
    Case(
        "short-row",
        div("Table", "<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>"),
        (
            table(
                "<tbody>\n<tr><td>a</td><td>b</td></tr>\n<tr><td>c</td><td></td></tr>\n</tbody>",
                "a\tb\nc\t",
                "| a | b |\n| --- | --- |\n| c |  |",
            ),
        ),
        True,
    ),
    Case(
        "display-formula",
        div("Equation-Block", '<math display="block">E = mc^2</math>'),
        (formula("E = mc^2"),),
    ),
    Case(
        "formula-with-its-number",
        div("Equation-Block", r'<math display="block">a &lt; b</math> (3)'),
        (formula(r"a < b \tag{3}"),),
    ),
    Case(
        "formula-in-a-sentence",
        div(
            "Text", '<p>If <math>x^2 &gt; 0</math> then<math display="block">x = 1</math>ends.</p>'
        ),
        (
            b("paragraph", "If x^2 > 0 then", "If $x^2 > 0$ then"),
            formula("x = 1"),
            b("paragraph", "ends."),
        ),
    ),
    Case(
        "code-keeps-its-lines",
        div("Code-Block", "<pre><code>if a &lt; b:\n    c()</code></pre>"),
        (b("code", "if a < b:\n    c()", "```\nif a < b:\n    c()\n```"),),
    ),
    Case(
        "picture-with-description",
        div("Image", '<img alt="A bridge at dusk"/>') + div("Figure", ""),
        (b("figure", "A bridge at dusk", "*A bridge at dusk*"), b("figure")),
    ),
    Case(
        "form-with-boxes",
        div("Form", '<p><input type="checkbox" checked/> yes <input type="checkbox"/> no</p>'),
        (b("form_field", "[x] yes [ ] no"),),
    ),
    Case(
        "contents-as-a-table",
        div("Table-Of-Contents", "<table><tr><td>Intro</td><td>3</td></tr></table>"),
        (
            table(
                "<tbody>\n<tr><td>Intro</td><td>3</td></tr>\n</tbody>",
                "Intro\t3",
                "| Intro | 3 |\n| --- | --- |",
            ),
        ),
    ),
    Case("blank-page", '<div data-bbox="0 0 1000 1000" data-label="Blank-Page"></div>', ()),
    Case("box-without-brackets", div("Text", "a", "100 50 900 80"), (b("paragraph", "a"),)),
    Case(
        "box-in-the-wrong-order",
        div("Text", "a", "[900, 80, 100, 50]"),
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "box-of-four-corners",
        div("Text", "a", "[[120, 50], [900, 55], [880, 80], [100, 75]]"),
        (b("paragraph", "a"),),
    ),
    Case(
        "box-beyond-the-page",
        div("Text", "a", "[-5, 0, 1200, 1000]"),
        (b("paragraph", "a", bbox=(0.0, 0.0, 500.0, 1000.0)),),
    ),
    Case("box-of-words", div("Text", "a", "left top"), (b("paragraph", "a", bbox=None),), True),
    Case("unknown-label", div("Sidebar", "<p>a</p>"), (b("other", "a"),), True),
    Case(
        "text-outside-of-blocks",
        f"lost {div('Text', 'a')}<p>after</p>",
        (
            b("paragraph", "lost", bbox=None),
            b("paragraph", "a"),
            b("paragraph", "after", bbox=None),
        ),
        True,
    ),
    Case(
        "cut-off-in-a-table",
        div("Text", "a") + '<div data-bbox="[100, 50, 900, 80]" data-label="Table">'
        "<table><tr><td>x</td><td>y</td></tr><tr><td>z",
        (
            b("paragraph", "a"),
            table(
                "<tbody>\n<tr><td>x</td><td>y</td></tr>\n<tr><td>z</td><td></td></tr>\n</tbody>",
                "x\ty\nz\t",
                "| x | y |\n| --- | --- |\n| z |  |",
            ),
        ),
        True,
    ),
    Case(
        "cut-off-in-a-tag",
        div("Text", "<p>whole</p>") + '<div data-bbox="[100, 5',
        (b("paragraph", "whole"),),
        True,
    ),
    Case(
        "cut-off-in-a-paragraph",
        '<div data-bbox="[100, 50, 900, 80]" data-label="Text"><p>half a sent',
        (b("paragraph", "half a sent"),),
        True,
    ),
    Case(
        "wrong-closing-tags",
        div("Text", "<p>a</b></i> c</p></table>"),
        (b("paragraph", "a c"),),
        True,
    ),
    Case(
        "crossed-tags",
        div("Text", "<p><b>bold <i>both</b> slanted</i></p>"),
        (b("paragraph", "bold both slanted", "bold *both* slanted"),),
        True,
    ),
    Case(
        "quotes-that-do-not-pair",
        '<div data-bbox="[100, 50, 900, 80] data-label="Text">a</div>',
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "script-in-the-text",
        div("Text", "<p>Run <script>alert('x')</script> &lt;script&gt; now</p>"),
        (
            b(
                "paragraph",
                "Run <script>alert('x')</script> <script> now",
                r"Run \<script>alert('x')\</script> \<script> now",
            ),
        ),
    ),
    Case(
        "handlers-and-addresses-go",
        div(
            "Text",
            '<p onclick="x()">A <a href="javascript:y()">link</a> <img src=q onerror=z()></p>',
        ),
        (b("paragraph", "A link"), b("figure")),
    ),
    Case(
        "less-than-is-no-tag",
        div("Text", "a < b and 3<5>2 &amp; <5 kg"),
        (b("paragraph", "a < b and 3<5>2 & <5 kg"),),
    ),
    Case(
        "fenced-answer",
        f"```html\n{div('Text', 'a')}\n```",
        (b("paragraph", "a"),),
    ),
    Case(
        "wrapped-blocks",
        f"<div>{div('Text', 'a')}{div('Text', 'b')}</div>",
        (b("paragraph", "a"), b("paragraph", "b")),
    ),
    Case(
        "block-inside-a-block",
        div("Complex-Block", div("Text", "a") + div("Caption", "c")),
        (b("paragraph", "a"), b("caption", "c")),
        True,
    ),
    Case("empty-block", div("Text", " "), (), True),
    Case("nothing-at-all", "", ()),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_html_blocks(case: Case) -> None:
    check(case, "html")


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 25


def test_boxes_of_a_page_that_was_turned_lie_on_the_upright_page() -> None:
    # The picture that the model saw was upright: 500 x 1000 points after a turn of 90 degrees.
    turned = PageGeometry(number=1, width_pt=500.0, height_pt=1000.0, rotation=90)
    check(Case("", div("Text", "a"), (b("paragraph", "a"),)), "html", turned)


def test_boxes_in_pixels_of_the_picture() -> None:
    style = MarkupStyle(name="html", last_coordinate=None)
    found = build_page_blocks(decode(div("Text", "a", "[256, 512, 512, 1024]")), PAGE, style)
    assert found.blocks[0].bbox == (125.0, 250.0, 250.0, 500.0) and not found.repaired


def test_confidence_is_that_of_the_block_s_own_tokens() -> None:
    text = div("Text", "sure") + div("Text", "unsure")
    sure = decode(text, logprob=0.0)
    place = text.index("unsure")
    logprobs = tuple(-1.0 if end > place else 0.0 for end in sure.token_ends)
    decoded = type(sure)(text=text, token_ends=sure.token_ends, token_logprobs=logprobs)
    found = build_page_blocks(decoded, PAGE, MarkupStyle(name="html"))
    assert [block.confidence for block in found.blocks] == [1.0, 0.37]


def test_deep_nesting_is_flat_and_flagged() -> None:
    text = div("Text", "<b>" * 5000 + "deep" + "</b>" * 5000)
    found = build_page_blocks(decode(text), PAGE, MarkupStyle(name="html"))
    assert found.repaired and found.blocks[0].text == "deep" and found.blocks[0].bbox == BOX
