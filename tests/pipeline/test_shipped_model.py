"""The shipped checkpoint through the whole pipeline, on small pictures drawn here."""

import io
import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

import ocria
from ocria.document import Page
from ocria.errors import OcriaError, UsageError, WeightsError
from ocria.options import ParseOptions
from ocria.pipeline import open_stream
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import PageImage

TEXT = "The old bridge was closed in 1924."


def picture(lines: list[str], size: tuple[int, int] = (448, 96)) -> Image.Image:
    image = Image.new("L", size, 250)
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((12, 24 + 32 * number), line, fill=10, font=ImageFont.load_default(20))
    return image


def encoded(*frames: Image.Image) -> bytes:
    sink = io.BytesIO()
    frames[0].save(sink, "TIFF", save_all=True, append_images=frames[1:], dpi=(96, 96))
    return sink.getvalue()


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return load_page_reader(ParseOptions(device="cpu", max_tokens=64, stats=True))


def read(reader: PageReader, document: bytes, pages: str | None = None) -> list[Page]:
    options = ParseOptions(device="cpu", pages=pages, max_tokens=64, stats=True)
    with open_stream(document, name="x.tif", options=options, load=lambda _: reader) as stream:
        return [parsed.page for parsed in stream]


def test_reads_a_line(reader: PageReader) -> None:
    (page,) = read(reader, encoded(picture([TEXT])))
    assert page.status == "ok"
    assert " ".join(block.text for block in page.blocks) == TEXT
    assert page.num_tokens > 5
    assert page.confidence is not None and page.confidence > 0.8
    assert page.stats is not None and page.stats.decoding is not None
    assert page.stats.decoding.steps == sum(page.stats.decoding.accepted_histogram)
    assert (page.width_pt, page.height_pt) == (336, 72)


@pytest.mark.gpu
def test_reads_a_line_on_cuda(reader: PageReader) -> None:
    on_cuda = load_page_reader(ParseOptions(device="cuda", max_tokens=64))
    document = encoded(picture([TEXT]), picture(["Payment of 1,250.00 EUR is due", "by 3 May."]))
    for ours, theirs in zip(read(on_cuda, document), read(reader, document), strict=True):
        assert [block.text for block in ours.blocks] == [block.text for block in theirs.blocks]


def test_pages_come_in_order_and_blank_ones_say_so(reader: PageReader) -> None:
    document = encoded(picture([TEXT]), Image.new("L", (448, 96), 244), picture(["Page three"]))
    pages = read(reader, document)
    assert [page.number for page in pages] == [1, 2, 3]
    assert [page.status for page in pages] == ["ok", "blank", "ok"]
    assert pages[1].blocks == () and pages[1].num_tokens == 0


def test_a_page_reads_the_same_alone_and_among_others(reader: PageReader) -> None:
    document = encoded(picture(["Something else"]), picture([TEXT]))
    (alone,) = read(reader, document, pages="2")
    _, among = read(reader, document)
    assert alone.blocks == among.blocks


def test_pages_read_side_by_side_are_those_read_alone(reader: PageReader) -> None:
    shown = [picture([TEXT]), picture([TEXT, TEXT[::-1]]), picture([]), picture([TEXT.upper()])]
    pictures = [
        PageImage(
            number=number,
            rgb=np.asarray(image.convert("RGB")),
            width_pt=300.0,
            height_pt=100.0,
            rotation=0,
            seconds=0.0,
        )
        for number, image in enumerate(shown, 1)
    ]
    alone = [replace(reader.read(picture), stats=None) for picture in pictures]
    many = PageReader(reader.model, ParseOptions(device="cpu", max_tokens=64), most_pages=4)
    assert many.num_slots == 4
    drafting = many.new_drafting()
    keys = [many.submit(many.job(picture, drafting)) for picture in pictures]
    given_up = many.submit(many.job(pictures[0], drafting))
    many.cancel(given_up, "timeout", "took too long")
    pages = {}
    while many.num_pages:
        pages.update(many.step())
    assert [pages[key] for key in keys] == alone
    error = pages[given_up].error
    assert error is not None and error.code == "timeout"


def test_the_token_limit_truncates(reader: PageReader) -> None:
    options = ParseOptions(device="cpu", max_tokens=3)
    short = PageReader(reader.model, options)
    (page,) = read(short, encoded(picture([TEXT])))
    assert (page.status, page.num_tokens) == ("truncated", 3)


def test_a_model_that_says_nonsense_fails_its_page_only(
    reader: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, calls = reader.model.target, 0
    encode = target.encode_image

    def broken(image):  # type: ignore[no-untyped-def]
        nonlocal calls
        calls += 1
        tokens = encode(image)
        return tokens * math.nan if calls == 1 else tokens

    monkeypatch.setattr(target, "encode_image", broken)
    first, second = read(reader, encoded(picture([TEXT]), picture([TEXT])))
    assert first.status == "failed" and first.error is not None
    assert first.error.code == "decode_failed"
    assert second.status == "ok"


def test_memory_that_runs_out_fails_the_page(
    reader: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    def exhausted(image):  # type: ignore[no-untyped-def]
        raise MemoryError

    monkeypatch.setattr(reader.model.target, "encode_image", exhausted)
    (page,) = read(reader, encoded(picture([TEXT])))
    assert page.error is not None and page.error.code == "out_of_memory"


@pytest.fixture
def picture_file(tmp_path: Path) -> Iterator[Path]:
    path = tmp_path / "line.png"
    picture([TEXT]).save(path)
    yield path


def test_public_api(picture_file: Path) -> None:
    document = ocria.parse(picture_file, device="cpu")
    assert document.pages[0].blocks[0].text == TEXT
    assert document.source.media_type == "image/png"
    assert document.generator.settings == {"max_tokens": 8192, "dpi": "auto"}
    assert document.pages[0].stats is None


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"pages": "2"}, UsageError),
        ({"drafter": "mtp"}, WeightsError),
        ({"model": "no-such-model"}, WeightsError),
        ({"max_tokens": 0}, UsageError),
    ],
)
def test_what_can_fail_early_fails_at_the_call(
    picture_file: Path, options: dict[str, object], error: type[OcriaError]
) -> None:
    with pytest.raises(error):
        ocria.parse(picture_file, device="cpu", **options)  # type: ignore[arg-type]
