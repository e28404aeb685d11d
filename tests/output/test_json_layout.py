"""Layout lists in JSON, as dots.ocr, MinerU and Infinity-Parser write them."""

import json
from typing import Any

import pytest

from ocria.output import MarkupStyle, build_page_blocks

from .conftest import decode
from .foreign import PAGE, Case, b, check, formula, heading, item, table

CORNERS = [100, 50, 900, 80]


def el(category: str, text: Any = None, **fields: Any) -> dict[str, Any]:
    element = {"bbox": CORNERS, "category": category}
    return {**element, **({} if text is None else {"text": text}), **fields}


def page(*elements: dict[str, Any]) -> str:
    return json.dumps(list(elements), ensure_ascii=False)


AB = ("<tbody>\n<tr><td>a</td><td>b</td></tr>\n</tbody>", "a\tb", "| a | b |\n| --- | --- |")
CASES = [
    Case("text", page(el("text", "Plain words.")), (b("paragraph", "Plain words."),)),
    Case(
        "titles",
        page(el("Title", "# Report"), el("Section-header", "## Part"), el("title", "Bare")),
        (heading(1, "Report"), heading(2, "Part"), heading(1, "Bare")),
    ),
    Case(
        "furniture",
        page(el("Page-header", "ACME"), el("Page-footer", "Confidential"), el("page_number", "7")),
        (b("header", "ACME"), b("footer", "Confidential"), b("page_number", "7")),
    ),
    Case(
        "notes-and-captions",
        page(el("figure_caption", "Fig. 1"), el("page_footnote", "* See."), el("Footnote", "1 x")),
        (b("caption", "Fig. 1"), b("footnote", "* See.", r"\* See."), b("footnote", "1 x")),
    ),
    Case(
        "list-items",
        page(el("List-item", "- one\n- two\n  - deep")),
        (item(1, "one", "- one"), item(1, "two", "- two"), item(2, "deep", "- deep")),
    ),
    Case("list-item-without-mark", page(el("List-item", "one")), (item(1, "one", "- one"),)),
    Case(
        "table-as-html",
        page(el("table", "<table><tr><td>a</td><td>b</td></tr></table>")),
        (table(*AB),),
    ),
    Case(
        "table-as-pipes",
        page(el("table", "| a | b |\n| --- | --- |\n| c | d |")),
        (
            table(
                "<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n"
                "<tbody>\n<tr><td>c</td><td>d</td></tr>\n</tbody>",
                "a\tb\nc\td",
                "| a | b |\n| --- | --- |\n| c | d |",
            ),
        ),
    ),
    Case(
        "table-with-spans-and-a-table-inside",
        page(
            el(
                "table",
                '<table><tr><td rowspan="2">a</td><td>b<table><tr><td>in</td></tr></table></td>'
                "</tr><tr><td>c</td></tr></table>",
            )
        ),
        (
            table(
                '<tbody>\n<tr><td rowspan="2">a</td><td>b in</td></tr>\n'
                "<tr><td>c</td></tr>\n</tbody>",
                "a\tb in\n\tc",
            ),
        ),
    ),
    Case("table-without-a-table", page(el("table", "a b")), (b("paragraph", "a b"),), True),
    Case("formula-bare", page(el("formula", r"\frac{a}{b}")), (formula(r"\frac{a}{b}"),)),
    Case("formula-in-dollars", page(el("equation", "$$\nx < y\n$$")), (formula("x < y"),)),
    Case("formula-in-brackets", page(el("interline_equation", r"\[ x \]")), (formula("x"),)),
    Case(
        "formula-in-a-sentence",
        page(el("text", r"If \(x > 0\) then $y$.")),
        (b("paragraph", "If x > 0 then y.", "If $x > 0$ then $y$."),),
    ),
    Case(
        "code-in-its-fence",
        page(el("code", "```python\nif a:\n    b()\n```")),
        (b("code", "if a:\n    b()", "```\nif a:\n    b()\n```"),),
    ),
    Case("figure-without-text", page(el("Picture")), (b("figure"),)),
    Case("figure-with-empty-text", page(el("figure", "")), (b("figure"),)),
    Case(
        "other-key-names",
        '[{"type": "text", "bbox_2d": [100, 50, 900, 80], "content": "a", "angle": 0}]',
        (b("paragraph", "a"),),
    ),
    Case(
        "box-as-text",
        page({"label": "text", "box": "100 50 900 80", "content": "a"}),
        (b("paragraph", "a"),),
    ),
    Case(
        "box-of-four-corners",
        page(el("text", "a", bbox=[[100, 55], [890, 50], [900, 75], [110, 80]])),
        (b("paragraph", "a"),),
    ),
    Case(
        "box-in-the-wrong-order",
        page(el("text", "a", bbox=[900, 80, 100, 50])),
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "box-missing",
        page({"category": "text", "text": "a"}),
        (b("paragraph", "a", bbox=None),),
        True,
    ),
    Case(
        "box-of-nonsense",
        page(el("text", "a", bbox=[1, "x", None, {}])),
        (b("paragraph", "a", bbox=None),),
        True,
    ),
    Case(
        "box-beyond-the-page",
        page(el("text", "a", bbox=[-9, 0, 1e9, 1000])),
        (b("paragraph", "a", bbox=(0.0, 0.0, 500.0, 1000.0)),),
    ),
    Case("unknown-category", page(el("sidebar", "a")), (b("other", "a"),), True),
    Case("category-missing", page({"bbox": CORNERS, "text": "a"}), (b("other", "a"),), True),
    Case("text-as-lines", page(el("text", ["a", "b"])), (b("paragraph", "a\nb"),)),
    Case("text-as-a-number", page(el("text", 7)), (), True),
    Case("empty-text", page(el("text", "")), (), True),
    Case("fenced-answer", f"```json\n{page(el('text', 'a'))}\n```", (b("paragraph", "a"),)),
    Case(
        "list-below-a-key",
        '{"layout": [' + json.dumps(el("text", "a")) + "]}",
        (b("paragraph", "a"),),
    ),
    Case(
        "one-object-a-line",
        json.dumps(el("text", "a")) + "\n" + json.dumps(el("text", "b")),
        (b("paragraph", "a"), b("paragraph", "b")),
    ),
    Case(
        "cut-off-in-a-text",
        page(el("text", "a"))[:-1]
        + ', {"bbox": [100, 50, 900, 80], "category": "text", "text": "half a \\u00',
        (b("paragraph", "a"), b("paragraph", "half a")),
        True,
    ),
    Case(
        "cut-off-in-a-box",
        page(el("text", "a"))[:-1] + ', {"bbox": [100, 5',
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "cut-off-in-a-table",
        page()[:-1]
        + '{"bbox": [100, 50, 900, 80], "category": "table", '
        + '"text": "<table><tr><td>a</td><td>b',
        (table(*AB),),
        True,
    ),
    Case(
        "quote-not-escaped",
        '[{"bbox": [100, 50, 900, 80], "category": "text", "text": "a "b" c"}, '
        + page(el("text", "d"))[1:],
        (b("paragraph", 'a "b" c'), b("paragraph", "d")),
        True,
    ),
    Case(
        "line-break-not-escaped",
        '[{"bbox": [100, 50, 900, 80], "category": "text", "text": "a\nb"}]',
        (b("paragraph", "a\nb"),),
    ),
    Case(
        "script-in-the-text",
        page(el("text", "<script>x()</script>")),
        (b("paragraph", "<script>x()</script>", r"\<script>x()\</script>"),),
    ),
    Case(
        "words-around-the-list",
        f"Here it is: {page(el('text', 'a'))}",
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "no-json-at-all",
        "# Title\n\nwords",
        (heading(1, "Title", bbox=None), b("paragraph", "words", bbox=None)),
        True,
    ),
    Case("empty-list", "[]", ()),
    Case("nothing-at-all", "", (), True),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_json_layout(case: Case) -> None:
    check(case, "json")


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 25


def test_boxes_in_pixels_of_the_picture() -> None:
    style = MarkupStyle(name="json", last_coordinate=None)
    text = page(el("text", "a", bbox=[256, 512, 512, 1024]))
    found = build_page_blocks(decode(text), PAGE, style)
    assert found.blocks[0].bbox == (125.0, 250.0, 250.0, 500.0) and not found.repaired


def test_boxes_in_parts_of_the_page() -> None:
    style = MarkupStyle(name="json", last_coordinate=1)
    text = page(el("text", "a", bbox=[0.1, 0.05, 0.9, 0.08]))
    found = build_page_blocks(decode(text), PAGE, style)
    assert found.blocks[0].bbox == (50.0, 50.0, 450.0, 80.0) and not found.repaired
