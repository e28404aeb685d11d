"""DocTags, as granite-docling writes them."""

import re

import pytest

from ocria.output import DecodedText, MarkupStyle, build_page_blocks

from .foreign import PAGE, Case, b, check, fields_of, formula, heading, item, table

LOC = "<loc_50><loc_25><loc_450><loc_40>"
STYLE = MarkupStyle(name="doctags", last_coordinate=500)


def tag(name: str, inside: str, loc: str = LOC) -> str:
    return f"<{name}>{loc}{inside}</{name}>"


def page(*blocks: str) -> str:
    return "<doctag>" + "\n".join(blocks) + "\n</doctag>"


AB_CD = (
    "<tbody>\n<tr><td>a</td><td>b</td></tr>\n<tr><td>c</td><td>d</td></tr>\n</tbody>",
    "a\tb\nc\td",
    "| a | b |\n| --- | --- |\n| c | d |",
)
CASES = [
    Case("paragraph", page(tag("text", "Plain words.")), (b("paragraph", "Plain words."),)),
    Case(
        "title-and-headings",
        page(
            tag("title", "Report"),
            tag("section_header_level_1", "Part"),
            tag("section_header_level_3", "Detail"),
        ),
        (heading(1, "Report"), heading(2, "Part"), heading(4, "Detail")),
    ),
    Case(
        "furniture",
        page(tag("page_header", "ACME"), tag("page_footer", "12"), tag("footnote", "1 See.")),
        (b("header", "ACME"), b("page_number", "12"), b("footnote", "1 See.")),
    ),
    Case(
        "bullets",
        page(
            "<unordered_list>"
            + tag("list_item", "one")
            + tag("list_item", "• two")
            + "</unordered_list>"
        ),
        (item(1, "one", "- one"), item(1, "two", "- two")),
    ),
    Case(
        "numbers",
        page(
            "<ordered_list>" + tag("list_item", "one") + tag("list_item", "two") + "</ordered_list>"
        ),
        (item(1, "1. one", "1. one"), item(1, "2. two", "2. two")),
    ),
    Case(
        "nested-lists",
        page(
            "<unordered_list>"
            + tag("list_item", "one")
            + "<ordered_list>"
            + tag("list_item", "deep")
            + "</ordered_list>"
            + tag("list_item", "two")
            + "</unordered_list>"
        ),
        (item(1, "one", "- one"), item(2, "1. deep", "1. deep"), item(1, "two", "- two")),
    ),
    Case(
        "table",
        page(tag("otsl", "<fcel>a<fcel>b<nl><fcel>c<fcel>d<nl>")),
        (table(*AB_CD),),
    ),
    Case(
        "table-with-head-and-caption",
        page(
            tag("otsl", f"<caption>{LOC}Table 1</caption><ched>Y<ched>S<nl><rhed>2024<fcel>1<nl>")
        ),
        (
            b("caption", "Table 1"),
            table(
                "<thead>\n<tr><th>Y</th><th>S</th></tr>\n</thead>\n"
                "<tbody>\n<tr><th>2024</th><td>1</td></tr>\n</tbody>",
                "Y\tS\n2024\t1",
                "| Y | S |\n| --- | --- |\n| 2024 | 1 |",
            ),
        ),
    ),
    Case(
        "table-with-spans",
        page(tag("otsl", "<fcel>a<fcel>b<lcel><nl><ucel><fcel>c<ecel><nl>")),
        (
            table(
                '<tbody>\n<tr><td rowspan="2">a</td><td colspan="2">b</td></tr>\n'
                "<tr><td>c</td><td></td></tr>\n</tbody>",
                "a\tb\t\n\tc\t",
            ),
        ),
    ),
    Case(
        "span-both-ways",
        page(tag("otsl", "<fcel>a<lcel><fcel>b<nl><ucel><xcel><fcel>c<nl>")),
        (
            table(
                '<tbody>\n<tr><td rowspan="2" colspan="2">a</td><td>b</td></tr>\n'
                "<tr><td>c</td></tr>\n</tbody>",
                "a\t\tb\n\t\tc",
            ),
        ),
    ),
    Case(
        "short-row",
        page(tag("otsl", "<fcel>a<fcel>b<nl><fcel>c<nl>")),
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
        "span-without-a-cell",
        page(tag("otsl", "<lcel><fcel>b<nl>")),
        (
            table(
                "<tbody>\n<tr><td></td><td>b</td></tr>\n</tbody>",
                "\tb",
                "|  | b |\n| --- | --- |",
            ),
        ),
        True,
    ),
    Case(
        "index-as-a-table",
        page(tag("document_index", "<fcel>a<fcel>b<nl><fcel>c<fcel>d<nl>")),
        (table(*AB_CD),),
    ),
    Case("formula", page(tag("formula", r"\frac{a}{b} < c")), (formula(r"\frac{a}{b} < c"),)),
    Case(
        "code-with-language",
        page(tag("code", "<_Python_>if a < b:\n    c()")),
        (b("code", "if a < b:\n    c()", "```\nif a < b:\n    c()\n```"),),
    ),
    Case(
        "picture-with-caption",
        page(tag("picture", f"<caption>{LOC}Figure 1</caption>")),
        (b("caption", "Figure 1"), b("figure")),
    ),
    Case(
        "chart-with-numbers",
        page(tag("chart", "<fcel>a<fcel>b<nl><fcel>c<fcel>d<nl>")),
        (table(*AB_CD),),
    ),
    Case(
        "checkboxes",
        page(tag("checkbox_selected", "yes"), tag("checkbox_unselected", "no")),
        (b("form_field", "[x] yes"), b("form_field", "[ ] no")),
    ),
    Case(
        "script-in-the-text",
        page(tag("text", "<script>x()</script> and <b>")),
        (b("paragraph", "<script>x()</script> and <b>", r"\<script>x()\</script> and \<b>"),),
    ),
    Case(
        "box-in-the-wrong-order",
        page(tag("text", "a", "<loc_450><loc_40><loc_50><loc_25>")),
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "box-of-three",
        page(tag("text", "a", "<loc_1><loc_2><loc_3>")),
        (b("paragraph", "a", bbox=None),),
        True,
    ),
    Case(
        "box-of-five",
        page(tag("text", "a", LOC + "<loc_9>")),
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "box-beyond-the-page",
        page(tag("text", "a", "<loc_0><loc_0><loc_512><loc_500>")),
        (b("paragraph", "a", bbox=(0.0, 0.0, 500.0, 1000.0)),),
    ),
    Case(
        "unclosed-block",
        page(f"<text>{LOC}a", tag("text", "b")),
        (b("paragraph", "a"), b("paragraph", "b")),
        True,
    ),
    Case(
        "cut-off-in-a-table",
        f"<doctag>{tag('text', 'a')}<otsl>{LOC}<fcel>x<fcel>y<nl><fcel>z",
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
    Case("cut-off-after-a-block", f"<doctag>{tag('text', 'a')}", (b("paragraph", "a"),), True),
    Case(
        "wrong-closing-tag",
        page(f"<text>{LOC}a</footnote></text>"),
        (b("paragraph", "a"),),
        True,
    ),
    Case(
        "item-outside-of-a-list",
        page(tag("list_item", "a")),
        (item(1, "a", "- a"),),
        True,
    ),
    Case(
        "cells-in-a-paragraph",
        page(tag("text", "a<fcel>b<nl>c")),
        (b("paragraph", "a b c"),),
        True,
    ),
    Case(
        "text-outside-of-blocks",
        page("lost", tag("text", "a")),
        (b("paragraph", "lost", bbox=None), b("paragraph", "a")),
        True,
    ),
    Case(
        "list-that-never-ends",
        page("<unordered_list>" + tag("list_item", "a")),
        (item(1, "a", "- a"),),
        True,
    ),
    Case("empty-block", page(tag("text", " ")), (), True),
    Case(
        "page-breaks-mean-nothing", page(tag("text", "a") + "<page_break>"), (b("paragraph", "a"),)
    ),
    Case("empty-page", page(), ()),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_doctags(case: Case) -> None:
    check(case, "doctags")


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 25


def special(text: str, tags: str) -> DecodedText:
    """The text with the tags that match `tags`, and the end, as special tokens."""
    spans = tuple(match.span() for match in re.finditer(f"(?:{tags})|<eos>", text))
    return DecodedText(text=text, special_spans=spans)


@pytest.mark.parametrize("case", [case for case in CASES if "lost" not in case.text], ids=str)
def test_the_same_with_tags_as_special_tokens(case: Case) -> None:
    known = r"</?(?!script|b>)[a-z_]+[a-z0-9_]*>|<_Python_>"
    found = build_page_blocks(special(case.text + "<eos>", known), PAGE, STYLE)
    assert [fields_of(block) for block in found.blocks] == list(case.blocks)
    assert found.repaired == case.repaired


def test_only_special_tokens_are_tags_where_there_are_some() -> None:
    text = page(tag("text", "shown: <title>x</title>"))
    decoded = special(text, r"</?doctag>|</?text>|<loc_\d+>")
    found = build_page_blocks(decoded, PAGE, STYLE)
    assert [block.text for block in found.blocks] == ["shown: <title>x</title>"]
    assert not found.repaired
