"""Whatever a model writes: nothing raises, and what leaves has the promised form."""

import json
import math
import re
from importlib.resources import files

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from ocria.document import Document, Generator, ModelInfo, Page, Source
from ocria.output import DecodedText, PageGeometry, build_page_blocks, render

SCHEMA = json.loads(
    files("ocria.output").joinpath("schema/document-1.schema.json").read_text(encoding="utf-8")
)
VALIDATOR = Draft202012Validator(SCHEMA)
NAMES = (
    *("h1", "h6", "paragraph", "list_item", "table", "formula", "code", "figure", "caption"),
    *("footnote", "header", "footer", "page_number", "form_field", "other", "level2", "level6"),
    *("rot90", "rot180", "rot270", "fcel", "ecel", "ched", "lcel", "ucel", "xcel", "nl"),
    *("0", "17", "300", "511", "512", "sidebar", "image_pad", "mask"),
)
SPECIAL = st.sampled_from([f"<|{name}|>" for name in NAMES] + ["<eos>", "<pad>"])
TEXT = st.text(max_size=12) | st.sampled_from(
    ["# a", "- b", "\n", "\n\n", "| c |", "| --- |", "3. d", "|", "  - e", "```", "$x$", "\ud800"]
)


@st.composite
def decoded_texts(draw: st.DrawFn) -> DecodedText:
    """Tokens in any order. With `honest` unset, the spans and figures are wrong as well."""
    text, spans, ends = "", [], []
    for token in draw(st.lists(SPECIAL | TEXT, max_size=40)):
        if token.startswith("<"):
            spans.append((len(text), len(text) + len(token)))
        text += token
        ends.append(len(text))
    logprobs = draw(
        st.lists(st.floats(max_value=0) | st.just(math.nan), min_size=len(ends), max_size=len(ends))
    )
    if draw(st.booleans()):
        spans = draw(st.lists(st.tuples(st.integers(-3, 99), st.integers(-3, 99)), max_size=5))
        logprobs = logprobs[: draw(st.integers(0, 40))]
    return DecodedText(
        text=text,
        token_ends=tuple(ends),
        token_logprobs=tuple(logprobs),
        special_spans=tuple(spans),
    )


SIZES = st.floats(allow_nan=True, allow_infinity=True, width=32)


@settings(max_examples=150)
@given(
    decoded=decoded_texts(), width=SIZES, height=SIZES, rotation=st.sampled_from([0, 90, 180, 270])
)
def test_any_tokens_make_a_valid_document(
    decoded: DecodedText, width: float, height: float, rotation: int
) -> None:
    geometry = PageGeometry(number=7, width_pt=width, height_pt=height, rotation=rotation)  # type: ignore[arg-type]
    found = build_page_blocks(decoded, geometry)
    page = Page(
        number=7,
        width_pt=found.width_pt,
        height_pt=found.height_pt,
        rotation=found.rotation,
        status="repaired" if found.repaired else "ok",
        blocks=found.blocks,
        confidence=decoded.confidence(),
    )
    document = Document(
        source=Source(name="x", sha256="0" * 64, media_type="image/png", num_pages=9),
        generator=Generator(ocria="0", model=ModelInfo(name="m", digest="d", precision="p")),
        pages=(page, page),
    )
    VALIDATOR.validate(json.loads(render(document, "json")))
    for line in render(document, "jsonl").split("\n")[:-1]:
        assert isinstance(json.loads(line), dict)
    markdown = render(document, "md")
    assert markdown.endswith("\n") and (markdown == "\n" or not markdown.endswith("\n\n"))
    assert not re.search(r"[^\S\n]$", markdown, re.MULTILINE)
    assert not re.search(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]", markdown)
    for written in (markdown, render(document, "html")):
        written.encode("utf-8")


@given(decoded=decoded_texts())
def test_the_same_tokens_make_the_same_blocks(decoded: DecodedText) -> None:
    geometry = PageGeometry(number=1, width_pt=100, height_pt=100)
    first = build_page_blocks(decoded, geometry)
    assert build_page_blocks(decoded, geometry) == first
    assert [block.id for block in first.blocks] == [
        f"p1-b{n}" for n in range(1, len(first.blocks) + 1)
    ]


@given(words=st.lists(st.text(alphabet="abcé", min_size=1), min_size=1, max_size=20))
def test_no_word_is_lost_in_damage(words: list[str]) -> None:
    tokens, spans, text = list(SPECIAL_CYCLE), [], ""
    for index, word in enumerate(words):
        token = tokens[index * 7 % len(tokens)]
        spans.append((len(text), len(text) + len(token)))
        text += token + word
    decoded = DecodedText(text=text, special_spans=tuple(spans))
    found = build_page_blocks(decoded, PageGeometry(number=1, width_pt=1, height_pt=1))
    read = "".join("".join(block.text.split()) for block in found.blocks)
    assert read == "".join(words)


SPECIAL_CYCLE = [f"<|{name}|>" for name in NAMES]
