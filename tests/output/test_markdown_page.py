"""Markdown with HTML tables, formulas and code, as general models write it."""

import pytest

from ocria.output import MarkupStyle, build_page_blocks

from .conftest import decode
from .foreign import PAGE, Case, b, check, formula, heading, item, table

NONE = {"bbox": None}
AB = ("<tbody>\n<tr><td>a</td><td>b</td></tr>\n</tbody>", "a\tb", "| a | b |\n| --- | --- |")
CASES = [
    Case(
        "paragraphs",
        "One.\n\nTwo.",
        (b("paragraph", "One.", **NONE), b("paragraph", "Two.", **NONE)),
    ),
    Case("headings", "# A\n\n### B", (heading(1, "A", **NONE), heading(3, "B", **NONE))),
    Case(
        "lists",
        "- a\n  - b\n- c\n\n1. d",
        (
            item(1, "a", "- a", **NONE),
            item(2, "b", "- b", **NONE),
            item(1, "c", "- c", **NONE),
            item(1, "1. d", "1. d", **NONE),
        ),
    ),
    Case(
        "pipe-table",
        "| a | b |\n| --- | --- |\n| c | d |",
        (
            table(
                "<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n"
                "<tbody>\n<tr><td>c</td><td>d</td></tr>\n</tbody>",
                "a\tb\nc\td",
                "| a | b |\n| --- | --- |\n| c | d |",
                **NONE,
            ),
        ),
    ),
    Case(
        "html-table-between-text",
        "Before\n<table><tr><td>a</td><td>b</td></tr></table>\nAfter",
        (b("paragraph", "Before", **NONE), table(*AB, **NONE), b("paragraph", "After", **NONE)),
    ),
    Case(
        "html-table-with-spans",
        '<table>\n<tr><td colspan="2">a</td></tr>\n\n<tr><td>b</td><td>c</td></tr>\n</table>',
        (
            table(
                '<tbody>\n<tr><td colspan="2">a</td></tr>\n<tr><td>b</td><td>c</td></tr>\n</tbody>',
                "a\t\nb\tc",
                **NONE,
            ),
        ),
    ),
    Case(
        "html-table-inside-a-cell",
        "<table><tr><td>a<table><tr><td>in</td></tr></table></td><td>b</td></tr></table>\nx",
        (
            table(
                "<tbody>\n<tr><td>a in</td><td>b</td></tr>\n</tbody>",
                "a in\tb",
                "| a in | b |\n| --- | --- |",
                **NONE,
            ),
            b("paragraph", "x", **NONE),
        ),
    ),
    Case(
        "html-table-cut-off",
        "<table><tr><td>a</td><td>b",
        (table(*AB, **NONE),),
        True,
    ),
    Case("formula-on-one-line", "$$E = mc^2$$", (formula("E = mc^2", **NONE),)),
    Case(
        "formula-over-lines",
        "So\n$$\na < b\nc\n$$\nthen",
        (
            b("paragraph", "So", **NONE),
            b("formula", "a < b\nc", "$$\na < b\nc\n$$", latex="a < b\nc", **NONE),
            b("paragraph", "then", **NONE),
        ),
    ),
    Case("formula-in-brackets", "\\[ x^2 \\]", (formula("x^2", **NONE),)),
    Case(
        "formula-never-closed",
        "$$ x = 1\n\nText goes on.",
        (formula("x = 1", **NONE), b("paragraph", "Text goes on.", **NONE)),
        True,
    ),
    Case(
        "formula-in-a-sentence",
        r"If \( a > 0 \) and $b$ hold.",
        (b("paragraph", "If a > 0 and b hold.", "If $a > 0$ and $b$ hold.", **NONE),),
    ),
    Case(
        "code",
        "```python\nif a:\n    # b\n```\nx",
        (
            b("code", "if a:\n    # b", "```\nif a:\n    # b\n```", **NONE),
            b("paragraph", "x", **NONE),
        ),
    ),
    Case(
        "code-never-closed",
        "```\na | b\n# c",
        (b("code", "a | b\n# c", "```\na | b\n# c\n```", **NONE),),
        True,
    ),
    Case(
        "code-with-longer-fence",
        "````\n```\nin\n```\n````",
        (b("code", "```\nin\n```", "````\n```\nin\n```\n````", **NONE),),
    ),
    Case(
        "fenced-answer",
        "```markdown\n# A\n\nb\n```",
        (heading(1, "A", **NONE), b("paragraph", "b", **NONE)),
    ),
    Case("fenced-answer-cut-off", "```markdown\n# A", (heading(1, "A", **NONE),)),
    Case(
        "pictures",
        "![A map](image.png)\n![](x.png)",
        (b("figure", "A map", "*A map*", **NONE), b("figure", **NONE)),
    ),
    Case(
        "figure-element",
        "<figure>A bar chart</figure>\n\nText",
        (b("figure", "A bar chart", "*A bar chart*", **NONE), b("paragraph", "Text", **NONE)),
    ),
    Case(
        "img-element",
        '<img alt="A seal" src="x"/>\nText',
        (b("figure", "A seal", "*A seal*", **NONE), b("paragraph", "Text", **NONE)),
    ),
    Case("comment-is-dropped", "<!-- page 2 -->\nText", (b("paragraph", "Text", **NONE),)),
    Case("comment-never-closed", "Text\n<!-- page", (b("paragraph", "Text", **NONE),), True),
    Case(
        "escaped-signs",
        r"It costs \$5, 3\. place, snake\_case.",
        (b("paragraph", "It costs $5, 3. place, snake_case.", **NONE),),
    ),
    Case(
        "script-in-the-text",
        "<script>x()</script>\n\n<b onclick=x()>a</b>",
        (
            b("paragraph", "<script>x()</script>", r"\<script>x()\</script>", **NONE),
            b("paragraph", "<b onclick=x()>a</b>", r"\<b onclick=x()>a\</b>", **NONE),
        ),
    ),
    Case(
        "layout-blocks-in-the-wrong-preset",
        '<div data-bbox="[1,2,3,4]" data-label="Text"><p>a</p></div>',
        (b("paragraph", "a", **NONE),),
    ),
    Case(
        "broken-pipe-table",
        "| a | b |\n| c |",
        (
            table(
                "<thead>\n<tr><th>a</th><th>b</th></tr>\n</thead>\n"
                "<tbody>\n<tr><td>c</td><td></td></tr>\n</tbody>",
                "a\tb\nc\t",
                "| a | b |\n| --- | --- |\n| c |  |",
                **NONE,
            ),
        ),
        True,
    ),
    Case("nothing-at-all", "", ()),
]


@pytest.mark.parametrize("case", CASES, ids=str)
def test_markdown_page(case: Case) -> None:
    check(case, "markdown")


def test_there_are_enough_cases() -> None:
    assert len({case.name for case in CASES}) == len(CASES) >= 25


def test_confidence_is_that_of_the_segment_s_own_tokens() -> None:
    text = "sure\n\n$$x$$\n\nunsure"
    sure = decode(text, logprob=0.0)
    place = text.index("unsure")
    logprobs = tuple(-1.0 if end > place else 0.0 for end in sure.token_ends)
    decoded = type(sure)(text=text, token_ends=sure.token_ends, token_logprobs=logprobs)
    found = build_page_blocks(decoded, PAGE, MarkupStyle(name="markdown"))
    assert [block.confidence for block in found.blocks] == [1.0, 1.0, 0.37]
