"""The shipped checkpoint with every drafter, on pages made here: one reading, other speeds."""

import json
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Page
from ocria.options import DrafterName, ParseOptions
from ocria.output.page_object import page_object
from ocria.pipeline import open_stream
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import PageImage

LINES = (
    "The old bridge was closed in 1924.",
    "The council met twice and wrote",
    "three letters to the ministry.",
)
LIE = ("A text that nobody can see here", "stands behind the picture, and", "it is wrong in full.")
DRAFTERS: tuple[DrafterName, ...] = ("none", "ngram", "text-layer", "dflash", "auto")


def pdf(*pages: bytes) -> bytes:
    """Pages of 336 x 120 pt in Helvetica."""
    kids = b" ".join(b"%d 0 R" % (4 + 2 * n) for n in range(len(pages)))
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages)),
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    ]
    for n, drawing in enumerate(pages):
        resources = b"/MediaBox[0 0 336 120]/Resources<</Font<</F 3 0 R>>>>"
        objects.append(b"<</Type/Page/Parent 2 0 R%s/Contents %d 0 R>>" % (resources, 5 + 2 * n))
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawing), drawing))
    out, offsets = bytearray(b"%PDF-1.7\n"), []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out + trailer % (len(objects) + 1, start))


def drawing(lines: Sequence[str], mode: int = 0) -> bytes:
    """Lines from the top down; mode 3 is invisible."""
    return b"".join(
        b"BT /F 15 Tf %d Tr 12 %d Td (%s) Tj ET " % (mode, 90 - 24 * n, line.encode("ascii"))
        for n, line in enumerate(lines)
    )


HONEST = drawing(LINES)
# Outlines alone would need a font program: the honest text is drawn, a lie is laid before it.
LYING = drawing(LIE, mode=3) + drawing(LINES)


@pytest.fixture(scope="module")
def base() -> PageReader:
    return load_page_reader(ParseOptions(device="cpu", max_tokens=96, stats=True))


def read(base: PageReader, drafter: DrafterName) -> list[Page]:
    options = ParseOptions(device="cpu", max_tokens=96, stats=True, drafter=drafter)
    reader = PageReader(base.model, options)
    document = pdf(HONEST, LYING, HONEST)
    with open_stream(document, name="x.pdf", options=options, load=lambda _: reader) as stream:
        return [parsed.page for parsed in stream]


@pytest.fixture(scope="module")
def readings(base: PageReader) -> dict[DrafterName, list[Page]]:
    return {drafter: read(base, drafter) for drafter in DRAFTERS}


def scan() -> PageImage:
    """Lines a little aslant on grey paper with noise, and no text behind them."""
    image = Image.new("L", (448, 160), 235)
    draw = ImageDraw.Draw(image)
    for n, line in enumerate(LINES):
        draw.text((20, 20 + 34 * n), line, fill=30, font=ImageFont.load_default(20))
    image = image.rotate(0.6, resample=Image.Resampling.BICUBIC, fillcolor=235)
    noise = np.random.default_rng(3).normal(0, 9, (160, 448))
    grey = (np.asarray(image) + noise).clip(0, 255).astype(np.uint8)
    rgb = np.repeat(grey[..., None], 3, axis=2)
    return PageImage(number=1, rgb=rgb, width_pt=336.0, height_pt=120.0, rotation=0, seconds=0.0)


def without_stats(page: Page) -> str:
    return json.dumps(page_object(replace(page, stats=None)))


def test_every_drafter_reads_the_same(readings: dict[DrafterName, list[Page]]) -> None:
    plain = [without_stats(page) for page in readings["none"]]
    assert all(page.num_tokens > 10 for page in readings["none"])
    for drafter in DRAFTERS[1:]:
        assert [without_stats(page) for page in readings[drafter]] == plain, drafter


def test_every_drafter_reads_a_scan_the_same(base: PageReader) -> None:
    pages = {}
    for drafter in DRAFTERS:
        options = ParseOptions(device="cpu", max_tokens=96, stats=True, drafter=drafter)
        pages[drafter] = PageReader(base.model, options).read(scan())
    assert pages["none"].num_tokens > 20
    assert {without_stats(page) for page in pages.values()} == {without_stats(pages["none"])}
    steps = {name: page.stats.decoding.steps for name, page in pages.items()}  # type: ignore
    assert steps["dflash"] < 0.6 * steps["none"]
    assert steps["auto"] <= steps["none"]


def test_drafters_save_passes_and_say_so(readings: dict[DrafterName, list[Page]]) -> None:
    def decoding(drafter: DrafterName, page: int) -> tuple[str, int]:
        stats = readings[drafter][page].stats
        assert stats is not None and stats.decoding is not None
        return stats.decoding.drafter, stats.decoding.steps

    name, plain_steps = decoding("none", 0)
    assert name == "none"
    for drafter in ("text-layer", "auto"):
        assert decoding(drafter, 0)[0] == "text-layer"
        assert decoding(drafter, 0)[1] < plain_steps / 2
    # The third page repeats the first: the document's own past is enough.
    assert decoding("ngram", 2)[0] == "ngram"
    assert decoding("ngram", 2)[1] < plain_steps / 2
