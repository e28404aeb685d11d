"""Whatever stands on a page, a Markdown reader shows it as text."""

import html
import re

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ocria.output.inline import inline_html, plain_text
from ocria.output.markdown_escape import (
    code_block,
    escape_cell,
    escape_heading,
    escape_line,
    escape_paragraph,
    formula_block,
)

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])
# Everything that means something to Markdown, and a few words; dollars mean nothing to the reader.
HOSTILE = st.text(alphabet="ab1 .)(#->+*_~`|=:<>/!&;\\[]\n\u00e9", max_size=40)
TOKENS = [
    *("<b>", "</b>", "<!--x-->", "&lt;", "[a](b)", "![a](b)", "[a]:", "```", "`", "``", "1."),
    *("---", "===", "**a**", "*b*", "_c_", "~~d~~", "\\", "|", "x", "-", "#", " ", "\n", "\n"),
]
PIECES = st.lists(st.sampled_from(TOKENS), max_size=14).map("".join)
TEXT = HOSTILE | PIECES


def shown(markdown: str) -> str:
    """What a reader shows; every tag of the rendering is dropped, white space is one space."""
    rendered = READER.render(markdown)
    return words(html.unescape(re.sub(r"<[^<>]*>", "", rendered)))


def words(text: str) -> str:
    return " ".join(text.split())


def untick(text: str) -> str:
    """A fence that opens a paragraph becomes text, so its backticks show: they are not compared."""
    return words(text.replace("`", ""))


def tags(markdown: str) -> set[str]:
    return set(re.findall(r"<[a-z!/?][^>]*>", READER.render(markdown), re.IGNORECASE))


INLINE = {f"<{slash}{tag}>" for slash in ("", "/") for tag in ("strong", "em", "code", "p")}


@settings(max_examples=400)
@given(text=TEXT)
@example("- a")
@example("1986. A year")
@example("```\n<script>\n```")
@example("\\`x` <b> `y`")
@example("*:*")
@example("**Note**s x**2 + y**2 **a.**b")
@example("[`]:()`")
@example("[1\n]:1")
@example("```**1**\n```")
@example("`\n<!--x-->`")
@example("`\n```\n<b>`")
@example("a ```\n```\n<b> ```")
@example("`a\n# b`")
@example("a | b\n--- | ---")
@example("![x](address)")
@example("[1]: address")
@example("    indented")
@example("2*3*4 snake_case __init__ 5~6~7")
def test_a_paragraph_shows_what_stood_on_the_page(text: str) -> None:
    lines = "\n".join(line.strip() for line in text.split("\n") if line.strip())
    markdown = escape_paragraph(text)
    assert tags(markdown) <= INLINE
    assert untick(shown(markdown)) == untick(plain_text(lines))


@settings(max_examples=200)
@given(text=TEXT)
@example("###")
@example("C #")
def test_a_heading_shows_what_stood_on_the_page(text: str) -> None:
    line = words(text)
    markdown = "## " + escape_heading(line)
    assert tags(markdown) <= INLINE | {"<h2>", "</h2>"}
    assert shown(markdown) == words(plain_text(line))


@settings(max_examples=200)
@given(text=TEXT)
@example("- a")
@example("# a")
def test_a_list_item_shows_what_stood_on_the_page(text: str) -> None:
    line = words(text)
    markdown = "- " + escape_line(line)
    assert tags(markdown) <= INLINE | {"<ul>", "</ul>", "<li>", "</li>"}
    assert untick(shown(markdown)) == untick(plain_text(line))


@settings(max_examples=200)
@given(text=TEXT.filter(lambda text: not ("`" in text and "|" in text)))
@example("a\\|b")
@example("|")
def test_a_cell_stays_one_cell(text: str) -> None:
    line = words(text)
    rendered = READER.render(f"| h | i |\n| --- | --- |\n| {escape_cell(line)} | end |")
    cells = re.findall(r"<td>(.*?)</td>", rendered)
    assert len(cells) == 2 and cells[1] == "end"
    assert words(html.unescape(re.sub(r"<[^<>]*>", "", cells[0]))) == words(plain_text(line))


@settings(max_examples=300)
@given(text=st.text(alphabet="ab *`$<>_\\1.#", max_size=30))
def test_html_is_the_same_from_the_text_and_from_its_markdown(text: str) -> None:
    line = words(text)
    if "$" in line and "<" in line:
        return  # a formula may gain a space
    assert inline_html("x" + line) == inline_html(escape_line("x" + line), escapes=True)


def test_code_spans_keep_their_characters() -> None:
    assert escape_paragraph("use `<div>` here") == "use `<div>` here"


@given(code=st.text(alphabet="`~ab\n ", max_size=30).filter(str.strip))
def test_a_code_block_cannot_be_ended_from_inside(code: str) -> None:
    tokens = READER.parse(code_block(code) + "\n\nafter")
    assert [token.type for token in tokens][:2] == ["fence", "paragraph_open"]
    assert tokens[0].content == code + "\n"


@pytest.mark.parametrize(
    ("tex", "markdown"),
    [
        ("E = mc^2", "$$E = mc^2$$"),
        ("a\n\nb  ", "$$\na\nb\n$$"),
        ("x$$ <script>$$", "$$x$ < script>$$"),
    ],
)
def test_a_formula_stays_in_its_block(tex: str, markdown: str) -> None:
    assert formula_block(tex) == markdown


def test_prices_are_not_formulas() -> None:
    assert plain_text("costs $5 and $6 or $7-$8") == "costs $5 and $6 or $7-$8"
    assert plain_text("where $x_1$ is") == "where x_1 is"
