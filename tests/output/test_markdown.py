"""Pages to Markdown, read back with a CommonMark reader."""

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from ocria.document import Block, Generator, Page, PageFailure, Source
from ocria.output import open_writer, page_markdown

READER = MarkdownIt("commonmark", {"html": True}).enable(["table", "strikethrough"])


def page(*blocks: Block, number: int = 1) -> Page:
    return Page(number=number, width_pt=595, height_pt=842, status="ok", blocks=blocks)


def item(markdown: str, level: int) -> Block:
    return Block(id="p1-b1", type="list_item", text="", markdown=markdown, level=level)


def paragraph(markdown: str, kind: str = "paragraph") -> Block:
    return Block(id="p1-b1", type=kind, text="", markdown=markdown)  # type: ignore[arg-type]


def nesting(markdown: str) -> list[tuple[int, str]]:
    """(depth, text) of each list item as a Markdown reader sees it."""
    found, depth = [], 0
    for token in READER.parse(markdown):
        depth += (token.type == "list_item_open") - (token.type == "list_item_close")
        if token.type == "inline":
            found.append((depth, token.content))
    return found


def written(*pages: Page, source: Source, generator: Generator, **options: object) -> str:
    sink = io.StringIO()
    writer = open_writer("md", sink, source=source, generator=generator, **options)  # type: ignore[arg-type]
    for one in pages:
        writer.write(one)
    writer.close()
    return sink.getvalue()


@pytest.mark.parametrize(
    "items",
    [
        [("- a", 1), ("- b", 2), ("- c", 3), ("- d", 1)],
        [("10. a", 1), ("- b", 2), ("11. c", 1)],
        [("- a", 1), ("3. b", 2), ("4. c", 2), ("- d", 1), ("7) e", 2)],
    ],
)
def test_lists_nest_as_a_markdown_reader_sees_it(items: list[tuple[str, int]]) -> None:
    markdown = page_markdown(page(*(item(*one) for one in items)))
    assert nesting(markdown) == [(level, text.split(" ", 1)[1]) for text, level in items]


def test_a_level_without_parents_is_read_as_the_deepest_possible() -> None:
    assert nesting(page_markdown(page(item("- a", 4), item("- b", 6)))) == [(1, "a"), (2, "b")]


def test_siblings_stand_close_and_lists_apart_from_text() -> None:
    markdown = page_markdown(page(item("- a", 1), item("- b", 1), paragraph("c")))
    assert markdown == "- a\n- b\n\nc"


@pytest.mark.parametrize("kind", ["header", "footer", "page_number"])
def test_furniture_is_dropped_unless_kept(kind: str) -> None:
    both = page(paragraph("Running head", kind), paragraph("Text"))
    assert page_markdown(both) == "Text"
    assert page_markdown(both, furniture="keep") == "Running head\n\nText"


def test_pages_are_marked_on_request(source: Source, generator: Generator) -> None:
    pages = (page(paragraph("a")), page(number=2), page(paragraph("c"), number=3))
    plain = written(*pages, source=source, generator=generator)
    marked = written(*pages, source=source, generator=generator, page_markers=True)
    assert plain == "a\n\nc\n"
    assert marked == "<!-- page 1 -->\n\na\n\n<!-- page 2 -->\n\n<!-- page 3 -->\n\nc\n"


def test_a_document_without_text_is_one_newline(source: Source, generator: Generator) -> None:
    assert written(page(), source=source, generator=generator) == "\n"


@given(message=st.text(alphabet="->!< \n\tx\x00", max_size=30))
def test_a_failure_message_cannot_leave_its_comment(message: str) -> None:
    failed = Page(
        number=3,
        width_pt=0,
        height_pt=0,
        status="failed",
        error=PageFailure(code="timeout", message=message),
    )
    markdown = page_markdown(failed)
    assert re.fullmatch(r"<!-- page 3: failed: (?:(?!--|\n)[\s\S])* -->", markdown)


def test_a_page_leaves_as_soon_as_it_is_written(source: Source, generator: Generator) -> None:
    flushed: list[str] = []

    class Sink(io.StringIO):
        def flush(self) -> None:
            flushed.append(self.getvalue())

    writer = open_writer("md", Sink(), source=source, generator=generator)
    writer.write(page(paragraph("first")))
    assert flushed[-1] == "first\n"
    writer.write(page(paragraph("second")))
    assert flushed[-1] == "first\n\nsecond\n"


@given(
    texts=st.lists(st.text(alphabet="ab \t\n\r\x07\x0c\u2028\u00a0-#", max_size=40), max_size=8),
    markers=st.booleans(),
)
def test_the_shape_of_the_file_holds_for_any_text(texts: list[str], markers: bool) -> None:
    source = Source(name="x", sha256="", media_type="", num_pages=1)
    model = None
    pages = [page(paragraph(text), number=n) for n, text in enumerate(texts, 1)]
    markdown = written(*pages, source=source, generator=model, page_markers=markers)  # type: ignore[arg-type]
    assert markdown.endswith("\n") and not markdown.endswith("\n\n")
    assert not re.search(r"[^\S\n]$", markdown, re.MULTILINE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028]", markdown)
