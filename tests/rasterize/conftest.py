"""Small documents made on the spot, so that every test says what it reads.

`files/locked.pdf` is the exception: one page, 128-bit encryption, user password `sesame`.
"""

from collections.abc import Callable
from pathlib import Path

import pytest

from ocria.rasterize import RenderTarget
from ocria.vision import SizeRule

MakePdf = Callable[..., bytes]


def assemble(objects: list[bytes]) -> bytes:
    """A PDF file of numbered objects, the first being the catalog."""
    out = bytearray(b"%PDF-1.7\n")
    offsets = []
    for number, body in enumerate(objects, 1):
        offsets.append(len(out))
        out += b"%d 0 obj\n%s\nendobj\n" % (number, body)
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % offset for offset in offsets)
    trailer = b"trailer<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n"
    return bytes(out + trailer % (len(objects) + 1, start))


@pytest.fixture
def make_pdf() -> MakePdf:
    """make_pdf((width_pt, height_pt, extra), ...): each page black in its upper left quarter.

    `extra` is put into the page's dictionary; a page given as bytes replaces its object whole.
    """

    def make(*pages: tuple[float, float, bytes] | bytes) -> bytes:
        kids = b" ".join(b"%d 0 R" % (3 + 2 * index) for index in range(len(pages)))
        tree = b"<</Type/Pages/Kids[%s]/Count %d>>" % (kids, len(pages))
        objects = [b"<</Type/Catalog/Pages 2 0 R>>", tree]
        for index, page in enumerate(pages):
            if isinstance(page, bytes):
                objects += [page, b"null"]
                continue
            width, height, extra = page
            box = b"/MediaBox[0 0 %g %g]" % (width, height)
            contents = b"/Contents %d 0 R" % (4 + 2 * index)
            objects.append(b"<</Type/Page/Parent 2 0 R%s%s%s>>" % (box, contents, extra))
            drawing = b"0 %g %g %g re f" % (height / 2, width / 2, height / 2)
            objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(drawing), drawing))
        return assemble(objects)

    return make


@pytest.fixture
def target() -> RenderTarget:
    """The size rule of a small model: 256 to 512 pixels squared."""
    return RenderTarget(fit=SizeRule(factor=32, min_pixels=65_536, max_pixels=262_144))


@pytest.fixture
def form_pdf() -> bytes:
    """400 x 200 pt, empty but for a form field: a black bar from (20, 100) to (200, 130)."""
    bar = b"0 0 180 30 re f"
    place = b"/F 4/Rect[20 100 200 130]/AP<</N 5 0 R>>"
    return assemble(
        [
            b"<</Type/Catalog/Pages 2 0 R/AcroForm<</Fields[4 0 R]>>>>",
            b"<</Type/Pages/Kids[3 0 R]/Count 1>>",
            b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 400 200]/Annots[4 0 R]>>",
            b"<</Type/Annot/Subtype/Widget/FT/Tx/T(a)/V(x)%s>>" % place,
            b"<</Type/XObject/Subtype/Form/BBox[0 0 180 30]/Length %d>>stream\n%s\nendstream"
            % (len(bar), bar),
        ]
    )


@pytest.fixture
def locked() -> Path:
    return Path(__file__).parent / "files" / "locked.pdf"
