"""Whatever a foreign model writes: nothing raises, text survives, and no report runs anything."""

import json
import time
from importlib.resources import files

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ocria.document import Document, Generator, ModelInfo, Page, Source
from ocria.output import DecodedText, MarkupName, MarkupStyle, build_page_blocks, render

from . import test_doctags, test_html_markup, test_json_layout, test_markdown_page
from .conftest import decode
from .foreign import LAST, PAGE, Case

VALIDATOR = Draft202012Validator(
    json.loads(
        files("ocria.output").joinpath("schema/document-1.schema.json").read_text(encoding="utf-8")
    )
)
CASES: dict[MarkupName, list[Case]] = {
    "html": test_html_markup.CASES,
    "doctags": test_doctags.CASES,
    "json": test_json_layout.CASES,
    "markdown": test_markdown_page.CASES,
}
PARTS = st.sampled_from(
    [
        *("<div", " data-bbox=", '"[1, 2, 3, 4]"', ' data-label="Table"', ">", "</div>", "<p>"),
        *(
            "<table>",
            "<tr>",
            '<td rowspan="0">',
            '<td colspan="9999">',
            "</td>",
            "</table>",
            "<li>",
        ),
        *(
            "<ul>",
            "</ul>",
            "<math display=block>",
            "</math>",
            "<script>",
            "</script>",
            "<img alt='",
        ),
        *(
            "<doctag>",
            "<text>",
            "<loc_7>",
            "</text>",
            "<otsl>",
            "<fcel>",
            "<lcel>",
            "<ucel>",
            "<nl>",
        ),
        *("</otsl>", "<list_item>", "<picture>", "<caption>", "</caption>", "<ordered_list>"),
        *('[{"bbox":', "[1,2,3,4]", ',"category":"table"', ',"text":"', '"}', "]", "{", "\\u00"),
        *(
            "```",
            "$$",
            "\\[",
            "| a |",
            "# b",
            "- c",
            "\n",
            "\n\n",
            "<",
            "&lt;",
            "<!--",
            "javascript:",
        ),
    ]
)
TEXTS = st.lists(PARTS | st.text(max_size=8), max_size=40).map("".join)
STYLES = st.sampled_from(list(CASES))


def document_of(text: str, name: MarkupName) -> Document:
    style = MarkupStyle(name=name, last_coordinate=LAST[name])
    found = build_page_blocks(decode(text), PAGE, style)
    page = Page(
        number=1,
        width_pt=found.width_pt,
        height_pt=found.height_pt,
        status="repaired" if found.repaired else "ok",
        blocks=found.blocks,
    )
    model = ModelInfo(name="m", digest="d", precision="bf16")
    return Document(
        source=Source(name="a.pdf", sha256="0" * 64, media_type="application/pdf", num_pages=1),
        generator=Generator(ocria="0", model=model),
        pages=(page,),
    )


def assert_inert(report: str) -> None:
    """No element or attribute of the model's own gets into the report."""
    body = report[report.index("<body>") :].lower()
    for forbidden in ("<script", "<img ", "<a ", "<iframe", "<svg", "<math", "<input"):
        assert forbidden not in body, forbidden


@settings(max_examples=300)
@given(text=TEXTS, name=STYLES)
def test_nothing_raises_and_the_promised_form_leaves(text: str, name: MarkupName) -> None:
    document = document_of(text, name)
    VALIDATOR.validate(json.loads(render(document, "json")))
    render(document, "md").encode()
    report = render(document, "html")
    assert "<script" not in report.lower()
    for block in document.pages[0].blocks:
        if block.bbox is not None:
            x0, y0, x1, y1 = block.bbox
            assert 0 <= x0 <= x1 <= PAGE.width_pt and 0 <= y0 <= y1 <= PAGE.height_pt


@settings(max_examples=200)
@given(data=st.data(), name=STYLES)
def test_every_tail_may_be_cut_off(data: st.DataObject, name: MarkupName) -> None:
    case = data.draw(st.sampled_from(CASES[name]))
    end = data.draw(st.integers(0, len(case.text)))
    document_of(case.text[:end], name)


@pytest.mark.parametrize("name", list(CASES))
def test_reports_of_every_case_are_inert(name: MarkupName) -> None:
    for case in CASES[name]:
        document = document_of(case.text, name)
        assert_inert(render(document, "html"))
        assert "<script" not in render(document, "md").replace(r"\<", "")


@pytest.mark.parametrize("name", list(CASES))
def test_a_long_hostile_page_costs_no_more_than_a_second_or_so(name: MarkupName) -> None:
    # The slowest takes 0.3 s; time that grows with the square of the length would take minutes.
    style = MarkupStyle(name=name)
    for part in ("<div ", '<p a="', "<table><tr><td>", '{"bbox": ', "<loc_1>", "$$ x\n\n", "```\n"):
        decoded = DecodedText(text=part * (30_000 // len(part)))
        started_s = time.process_time()
        build_page_blocks(decoded, PAGE, style)
        assert time.process_time() - started_s < 3
