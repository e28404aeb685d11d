"""A page's text layer: order, boxes, gaps, bounds, and that trouble with it costs no page."""

import sys

import pytest

from ocria.rasterize import PageImage, RenderTarget, open_document, text_layer

from .conftest import assemble

OPTIONS = {"name": "x.pdf", "password": None, "max_pixels": 10**8}

TROUBLE = """
import os, signal, time
import ocria.rasterize.pdf_pages as pdf_pages

class TextTrouble:
    def __init__(self, kind):
        self.kind = kind

    def __call__(self, height_px, width_px):
        pdf_pages.read_text_layer = self.fail
        return height_px, width_px

    def fail(self, page):
        if self.kind == "crash":
            os.kill(os.getpid(), signal.SIGSEGV)
        if self.kind == "hang":
            time.sleep(60)
        raise MemoryError
"""


def pdf(drawing: bytes, extra: bytes = b"") -> bytes:
    font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>"
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R"
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            page + b"/Resources<</Font<</F 5 0 R>>>>" + extra + b">>",
            b"<</Length %d>>stream\n%s\nendstream" % (len(drawing), drawing),
            font,
        ]
    )


def show(x: float, y: float, text: bytes, mode: int = 0) -> bytes:
    return b"BT /F 10 Tf %d Tr %g %g Td (%s) Tj ET " % (mode, x, y, text)


def page_of(document: bytes, target: RenderTarget, *, with_text: bool = True) -> PageImage:
    with open_document(document, **OPTIONS) as opened:
        (page,) = opened.pages([1], target, with_text=with_text)
    assert isinstance(page, PageImage)
    return page


def texts(page: PageImage) -> list[str]:
    assert page.text is not None
    return [line.text for line in page.text.lines]


def test_lines_in_order_with_boxes_from_the_top_left(target):
    page = page_of(pdf(show(20, 80, b"First line") + show(20, 60, b"and the second")), target)
    assert texts(page) == ["First line", "and the second"]
    x0, y0, x1, y1 = page.text.lines[0].box
    assert 0.10 < x0 < 0.11 and 0.12 < y0 < 0.14 and 0.28 < x1 < 0.30 and 0.19 < y1 < 0.23


def test_a_turned_page_has_upright_boxes(target):
    turned = page_of(pdf(show(20, 80, b"Up here"), b"/Rotate 90"), target)
    x0, y0, x1, y1 = turned.text.lines[0].box
    # The top left corner went to the top right; the page is now 100 wide and 200 high.
    assert x0 > 0.75 and x1 < 0.9 and 0.09 < y0 < 0.11 and y1 > y0


def test_a_wide_gap_is_a_tab(target):
    row = show(20, 80, b"Total due") + show(120, 80, b"1,250.00")
    assert texts(page_of(pdf(row), target)) == ["Total due\t1,250.00"]


def test_hidden_text_is_there_and_paper_alone_has_none(target):
    assert texts(page_of(pdf(show(20, 80, b"hidden", mode=3)), target)) == ["hidden"]
    assert texts(page_of(pdf(b"0 0 50 50 re f"), target)) == []


def test_it_costs_nothing_unless_asked_for(target):
    assert page_of(pdf(show(20, 80, b"x")), target, with_text=False).text is None


def test_images_have_none(target, tmp_path):
    from PIL import Image

    path = tmp_path / "x.png"
    Image.new("L", (64, 64), 255).save(path)
    assert page_of(path.read_bytes(), target).text is None


def test_its_size_is_bounded(target):
    many = b"".join(show(0, 90 - 20 * row, b"abcdefghij" * 500) for row in range(30))
    page = page_of(pdf(many), target)
    length = sum(map(len, texts(page)))
    # Line ends count too.
    assert text_layer.MAX_CHARACTERS - 100 < length <= text_layer.MAX_CHARACTERS


@pytest.mark.parametrize("kind", ["crash", "hang", "memory"])
def test_trouble_with_the_text_costs_the_text_alone(kind, target, tmp_path, monkeypatch):
    (tmp_path / "text_trouble_in_a_worker.py").write_text(TROUBLE)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("ocria.rasterize.worker_process.TEXT_TIMEOUT_S", 0.5)
    import text_trouble_in_a_worker

    trouble = RenderTarget(fit=text_trouble_in_a_worker.TextTrouble(kind))
    document = pdf(show(20, 80, b"still read"))
    page, unasked = page_of(document, trouble), page_of(document, trouble, with_text=False)
    del sys.modules["text_trouble_in_a_worker"]
    assert page.text is None
    assert (page.rgb < 128).any()
    assert page.rgb.tobytes() == unasked.rgb.tobytes()
