"""Pages that PDFium draws as white paper: the damaged ones fail, the blank ones are blank."""

import io
import zlib

import pytest
from PIL import Image

from ocria.errors import PageError
from ocria.rasterize import PageFailed, PageImage, RenderTarget, open_document
from ocria.rasterize.page_copy import PageCopy, decoded
from ocria.rasterize.pdf_pages import PdfPages
from ocria.rasterize.pixels import Pixels

from .conftest import assemble

PAGE = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]/Contents 4 0 R"
GOOD = zlib.compress(b"q 200 0 0 100 0 0 cm /I Do Q")


def stream(data: bytes, entries: bytes = b"") -> bytes:
    return b"<</Length %d%s>>stream\n%s\nendstream" % (len(data), entries, data)


def document(page: bytes, *others: bytes) -> bytes:
    tree = b"<</Type/Pages/Kids[3 0 R]/Count 1>>"
    return assemble([b"<</Type/Catalog/Pages 2 0 R>>", tree, page, *others])


def with_contents(contents: bytes) -> bytes:
    return document(PAGE + b">>", contents)


def with_image(data: bytes, entries: bytes) -> bytes:
    kind = b"/Type/XObject/Subtype/Image/Width 64/Height 64/BitsPerComponent 8"
    return document(
        PAGE + b"/Resources<</XObject<</I 5 0 R>>>>>>",
        stream(GOOD, b"/Filter/FlateDecode"),
        stream(data, kind + b"/ColorSpace/DeviceGray" + entries),
    )


def jpeg(picture: Image.Image) -> bytes:
    file = io.BytesIO()
    picture.save(file, "JPEG")
    return file.getvalue()


WHITE_JPEG = jpeg(Image.new("L", (64, 64), "white"))
GREY_JPEG = jpeg(Image.linear_gradient("L").resize((64, 64)))


def render(pdf: bytes, target: RenderTarget) -> Pixels:
    """In this process: a worker for each of these documents would take most of the time."""
    return PdfPages(pdf, password=None, max_pixels=10_000_000).render(1, target, lambda size: None)


DCT = b"/Filter/DCTDecode"
FLATE = b"/Filter/FlateDecode"
HEAD = GREY_JPEG[: GREY_JPEG.index(b"\xff\xda") + 10]
"""Up to its pixels."""
FORM = b"/Type/XObject/Subtype/Form/BBox[0 0 200 100]"
CUT = zlib.compress(b"0 0 100 100 re f " * 20)[:9]
SHORT = zlib.compress(b"\xff" * 4096)[:9]
GARBAGE = b"x\x9c" + b"\xff\x137garbage" * 20

DAMAGED = {
    "JPEG of zeros": (with_image(bytes(5000), DCT), "image"),
    "JPEG cut in its head": (with_image(GREY_JPEG[:300], DCT), "image"),
    "JPEG without pixels": (with_image(HEAD, DCT), "image"),
    "image that cannot be inflated": (with_image(GARBAGE, FLATE), "image"),
    "image cut within its compression": (with_image(SHORT, FLATE), "image"),
    "contents that cannot be inflated": (
        with_contents(stream(GARBAGE, FLATE)),
        "contents cannot be read",
    ),
    "contents cut within their compression": (
        with_contents(stream(CUT, FLATE)),
        "contents cannot be read",
    ),
    "contents cut within a string": (with_contents(stream(b"BT /F 9 Tf (unfini")), "break off"),
    "contents of no operators": (
        with_contents(stream(b"\x8a\xfe\x01garbage\x99")),
        "contents cannot be read",
    ),
    "contents that are no stream": (with_contents(b"<</Foo 1>>"), "missing"),
    "a second part that is no stream": (
        document(PAGE.replace(b"4 0 R", b"[4 0 R 5 0 R]") + b">>", stream(b"q Q"), b"<<>>"),
        "missing",
    ),
    "an image that is not there": (with_contents(stream(b"q 9 0 0 9 0 0 cm /I Do Q")), "missing"),
    "a form that cannot be inflated": (
        document(
            PAGE + b"/Resources<</XObject<</I 5 0 R>>>>>>",
            stream(GOOD, FLATE),
            stream(GARBAGE, FLATE + FORM),
        ),
        "contents cannot be read",
    ),
    "a page object that is no page": (document(b"<</Foo 1>>"), "none"),
}

BLANK = {
    "no contents": document(b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 200 100]>>"),
    "an inherited size": assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1/MediaBox[0 0 612 792]>>",
            b"<</Type/Page/Parent 2 0 R>>",
        ]
    ),
    "an empty stream": with_contents(stream(b"")),
    "an empty compressed stream": with_contents(stream(b"", FLATE)),
    "white space": with_contents(stream(zlib.compress(b" \n\n"), FLATE)),
    "a comment": with_contents(stream(b"% (nothing here\n")),
    "state alone": with_contents(stream(b"q /Artifact <</A (a(b)c)>> BDC 1 0 0 1 5 5 cm EMC Q")),
    "empty text": with_contents(stream(b"BT /F 9 Tf () Tj ET")),
    "white drawing": with_contents(stream(zlib.compress(b"1 g 0 0 200 100 re f"), FLATE)),
    "several parts": document(
        PAGE.replace(b"4 0 R", b"[4 0 R 5 0 R]") + b">>",
        stream(b"q"),
        stream(b"51>", b"/Filter/ASCIIHexDecode"),
    ),
    "a white JPEG": with_image(WHITE_JPEG, DCT),
    "a white compressed image": with_image(zlib.compress(b"\xff" * 4096), FLATE),
}


@pytest.mark.parametrize("kind", DAMAGED)
def test_a_damaged_page_is_not_taken_for_blank(target, kind):
    pdf, said = DAMAGED[kind]
    with pytest.raises(PageError, match=said) as caught:
        render(pdf, target)
    assert caught.value.code == "page_broken"
    assert "repair" in str(caught.value)


@pytest.mark.parametrize("kind", BLANK)
def test_a_blank_page_is_blank(target, kind):
    assert set(render(BLANK[kind], target).data) == {255}


def test_a_damaged_page_leaves_the_worker_with_its_size_and_alone(target):
    tree = b"<</Type/Pages/Kids[3 0 R 5 0 R]/Count 2>>"
    drawing = stream(b"0 0 90 90 re f")
    pages = PAGE + b">>", stream(GARBAGE, FLATE), PAGE.replace(b"4 0 R", b"6 0 R") + b">>", drawing
    pdf = assemble([b"<</Type/Catalog/Pages 2 0 R>>", tree, *pages])
    with open_document(pdf, name="x.pdf", password=None, max_pixels=10_000_000) as opened:
        broken, sound = opened.pages([1, 2], target)
    assert isinstance(broken, PageFailed) and isinstance(sound, PageImage)
    assert (broken.code, broken.width_pt, broken.height_pt) == ("page_broken", 200, 100)


def test_an_encrypted_page_is_looked_at_in_the_clear(locked):
    """Otherwise every blank page of an encrypted document would seem damaged."""
    pages = PdfPages(locked, password="sesame", max_pixels=10_000_000)
    (contents,) = PageCopy(pages._document, 0).contents()
    assert b" Tf " in decoded(contents)
