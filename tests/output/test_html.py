"""The HTML file: self-contained, inert, and faithful."""

import base64
import hashlib
import io
import re
from html.parser import HTMLParser

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from ocria.document import Block, BlockType, Document, Generator, ModelInfo, Page, Source
from ocria.output import open_writer, render
from ocria.output.html_table import safe_table

ALLOWED = frozenset(
    (
        *("html", "head", "meta", "title", "style", "body", "header", "section", "div", "span"),
        *("h1", "h2", "h3", "h4", "h5", "h6", "p", "ul", "li", "pre", "figure", "strong", "em"),
        *("code", "table", "thead", "tbody", "tr", "th", "td", "img", "svg", "a", "rect"),
    )
)
TYPES: tuple[BlockType, ...] = (
    *("heading", "paragraph", "list_item", "table", "formula", "code", "figure", "caption"),
    *("footnote", "header", "footer", "page_number", "form_field", "other"),
)
ATTACK = st.lists(
    st.sampled_from(
        (
            *("<script>", "</script>", "<img src=x onerror=alert(1)>", '"', "'", ">", "<", "&"),
            *("&lt;", "</div>", "</style>", "-->", "<!--", "javascript:", "`", "**", "\\", "x"),
            *(" ", "\n", "</table>", '<td onclick="x">', "<svg/onload=x>", "]]>", "\x00", "$"),
        )
    ),
    max_size=10,
).map("".join)


class Elements(HTMLParser):
    """Every element with its attributes, and the text outside the style sheet."""

    def __init__(self, markup: str) -> None:
        super().__init__()
        self.found: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.unbalanced: list[str] = []
        self.text = ""
        self.feed(markup)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))
        if tag not in ("meta", "img", "rect"):
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.found.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.unbalanced.append(tag)

    def handle_data(self, data: str) -> None:
        if "style" not in self.open:
            self.text += data


def written(*pages: Page, name: str = "a.pdf", image: np.ndarray | None = None) -> str:
    sink = io.StringIO()
    source = Source(name=name, sha256="ab" * 32, media_type="application/pdf", num_pages=1)
    model = ModelInfo(name="m", digest="d", precision="bf16")
    writer = open_writer(
        "html",
        sink,
        source=source,
        generator=Generator(ocria="0", model=model),
        furniture="keep",
    )
    for page in pages:
        writer.write(page, image)
    writer.close()
    return sink.getvalue()


def page_with(*blocks: Block) -> Page:
    return Page(number=1, width_pt=100, height_pt=200, status="ok", blocks=blocks)


@given(attack=ATTACK, kind=st.sampled_from(TYPES))
def test_no_text_of_a_page_becomes_an_element(attack: str, kind: BlockType) -> None:
    block = Block(
        id=attack,
        type=kind,
        text=attack,
        markdown=attack,
        html=attack,
        latex=attack,
        bbox=(1, 2, 3, 4),
    )
    page = page_with(block)
    elements = Elements(written(page, name=attack, image=np.zeros((4, 4, 3), np.uint8)))
    assert {tag for tag, _ in elements.found} <= ALLOWED | {"title"}
    assert not elements.unbalanced and not elements.open
    for _, attributes in elements.found:
        assert not any(name.startswith("on") or name == "style" for name in attributes)
        assert (attributes.get("src") or "data:image/jpeg").startswith("data:image/jpeg")
        assert (attributes.get("href") or "#").startswith("#")


@given(attack=ATTACK)
def test_the_text_of_a_page_is_shown_whole(attack: str) -> None:
    block = Block(id="p1-b1", type="code", text=attack, markdown="")
    assert attack.replace("\x00", "") in Elements(written(page_with(block))).text


def test_the_policy_allows_the_style_sheet_and_nothing_else() -> None:
    markup = written(page_with())
    policy = re.search(r'Content-Security-Policy" content="([^"]*)"', markup)
    style = re.search(r"<style>(.*?)</style>", markup, re.DOTALL)
    assert policy and style
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    assert policy[1] == (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style[1] and "@import" not in style[1]


def test_a_style_sheet_for_the_dark_and_for_paper() -> None:
    markup = written(page_with())
    assert "prefers-color-scheme: dark" in markup and "@media print" in markup


def test_the_image_stands_beside_with_a_link_over_each_box() -> None:
    block = Block(
        id="p1-b1", type="paragraph", text="a", markdown="a", bbox=(10.0, 20.0, 30.5, 60.0)
    )
    image = np.zeros((40, 20, 3), np.uint8)
    image[:20] = 255
    elements = Elements(written(page_with(block), image=image)).found
    picture = dict(elements)["img"]["src"] or ""
    decoded = Image.open(io.BytesIO(base64.b64decode(picture.partition(",")[2])))
    assert decoded.size == (20, 40) and decoded.getpixel((10, 5)) == (255, 255, 255)
    assert dict(elements)["svg"]["viewbox"] == "0 0 100.00 200.00"
    assert dict(elements)["rect"] == {
        "x": "10.00",
        "y": "20.00",
        "width": "20.50",
        "height": "40.00",
    }
    assert dict(elements)["a"]["href"] == "#p1-b1"


def test_a_large_image_is_made_smaller() -> None:
    image = np.full((6000, 3000, 3), 255, np.uint8)
    picture = dict(Elements(written(page_with(), image=image)).found)["img"]
    assert (picture["width"], picture["height"]) == ("1000", "2000")


def test_marks_and_lists_are_shown(example_documents: dict[str, Document]) -> None:
    markup = render(example_documents["markup"], "html")
    assert '<h1 id="p1-b1">Annual <em>report</em></h1>' in markup
    assert '<li class="level2" id="p1-b5"><span class="mark">3.</span>' in markup
    assert "Sales &lt;rose&gt; by 5 % &amp; more." in markup
    assert '<th colspan="2">Year</th>' in markup
    assert "Page head" not in markup


@pytest.mark.parametrize(
    ("markup", "safe"),
    [
        (
            '<table><tr><td rowspan="2" onclick="x">a',
            '<table><tr><td rowspan="2">a</td></tr></table>',
        ),
        ("<table><tr><td>a</table></div>b", "<table><tr><td>a</td></tr></table>b"),
        ("<iframe>x</iframe>", "x"),
        ('<td colspan="99999">', '<td colspan="1000"></td>'),
        ('<td colspan="99999999">', "<td></td>"),
        ("<td>&lt;b&gt;</td>", "<td>&lt;b&gt;</td>"),
    ],
)
def test_tables_are_rebuilt_from_what_is_allowed(markup: str, safe: str) -> None:
    assert safe_table(markup) == safe
