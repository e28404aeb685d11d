"""Decoded texts and documents to write, for the tests of the output room."""

import re
from collections.abc import Callable

import pytest
from hypothesis import settings

from ocria.document import (
    Decoding,
    Document,
    Generator,
    ModelInfo,
    Page,
    PageFailure,
    PageSeconds,
    PageStats,
    Source,
)
from ocria.output import DecodedText, PageGeometry, build_page_blocks

# A slow or busy machine is no reason to fail, and a failure must come again.
settings.register_profile("ocria", deadline=None, derandomize=True)
settings.load_profile("ocria")

SPECIAL = re.compile(r"<\|\w+\|>|<eos>")
A4 = PageGeometry(number=1, width_pt=595.0, height_pt=842.0)
BOX = "<|51|><|102|><|460|><|153|>"
MARKUP = (
    f"<|h1|>{BOX}Annual *report*<|header|>{BOX}Page head"
    f"<|paragraph|>{BOX}Sales <rose> by 5 % & more."
    f"<|list_item|>{BOX}- first<|list_item|>{BOX}<|level2|>3. second"
    f"<|table|>{BOX}<|ched|>Year<|lcel|><|nl|><|fcel|>2024<|fcel|>1|2<|nl|>"
    f"<|formula|>{BOX}E = mc^2<|code|>{BOX}for x in y:\n    print(x)<|figure|>{BOX}"
    f"<|caption|>{BOX}Figure 1<|footnote|>{BOX}1 See page 9.<|page_number|>{BOX}7<eos>"
)
PLAIN = "# Heading\n\nA paragraph.\n\n- item\n\n| a | b |\n| --- | --- |\n| 1 | 2 |<eos>"
STATS = PageStats(
    seconds=PageSeconds(rasterize=0.05, vision=1.23456, prefill=0.4, decode=3.0),
    decoding=Decoding(
        drafter="ngram", steps=40, tokens_per_step=1.8252, accepted_histogram=(10, 20, 10)
    ),
)


def decode(text: str, logprob: float = -0.1) -> DecodedText:
    """One token for each special token, and for each character of text."""
    spans = tuple(match.span() for match in SPECIAL.finditer(text))
    inside = {index for start, end in spans for index in range(start + 1, end)}
    ends = tuple(index for index in range(1, len(text) + 1) if index not in inside)
    return DecodedText(
        text=text, token_ends=ends, token_logprobs=(logprob,) * len(ends), special_spans=spans
    )


def page_of(text: str, number: int, *, stats: PageStats | None = None) -> Page:
    geometry = PageGeometry(number=number, width_pt=595.0, height_pt=842.0)
    decoded = decode(text)
    found = build_page_blocks(decoded, geometry)
    return Page(
        number=number,
        width_pt=found.width_pt,
        height_pt=found.height_pt,
        rotation=found.rotation,
        status="repaired" if found.repaired else "ok",
        blocks=found.blocks,
        confidence=decoded.confidence(),
        num_tokens=len(decoded.token_ends),
        stats=stats,
    )


FAILED = Page(
    number=3,
    width_pt=0.0,
    height_pt=0.0,
    status="failed",
    error=PageFailure(code="page_broken", message="PDFium --> gave up\n<script>"),
)
BLANK = Page(number=4, width_pt=595.0, height_pt=842.0, status="blank")


@pytest.fixture(scope="session")
def make_decoded() -> Callable[..., DecodedText]:
    return decode


@pytest.fixture(scope="session")
def blocks_of() -> Callable[..., object]:
    """Markup or Markdown to the blocks of an A4 page, or of a page with other sizes."""
    return lambda text, geometry=A4: build_page_blocks(decode(text), geometry)


@pytest.fixture(scope="session")
def source() -> Source:
    return Source(name="report.pdf", sha256="ab" * 32, media_type="application/pdf", num_pages=4)


@pytest.fixture(scope="session")
def generator() -> Generator:
    return Generator(
        ocria="0.1.0",
        model=ModelInfo(name="ocria-nano", digest="sha256:" + "cd" * 32, precision="nvfp4"),
        settings={"max_tokens": 8192, "dpi": "auto"},
    )


@pytest.fixture(scope="session")
def example_documents(source: Source, generator: Generator) -> dict[str, Document]:
    """What the frozen files hold, by name."""

    def document(*pages: Page) -> Document:
        return Document(source=source, generator=generator, pages=pages)

    return {
        "markup": document(page_of(MARKUP, 1), page_of("<|rot90|>" + MARKUP, 2)),
        "plain": document(page_of(PLAIN, 1), FAILED, BLANK),
        "stats": document(page_of(PLAIN, 1, stats=STATS)),
        "empty": document(),
    }
