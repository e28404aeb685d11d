"""Why a page came out empty: PDFium draws what it can and says nothing of the rest.

Asked only about pages without a drop of ink, so that it costs nothing elsewhere. What is found
here is a fault of the file; a page that is truly blank has none.
"""

import ctypes
import re
from collections.abc import Iterator
from typing import Any

import pypdfium2.raw as pdfium

from ocria.rasterize.page_copy import PageCopy, StreamDamaged, decoded, is_stream

_DEEPEST_FORM = 8
_JPEG = b"DCTDecode"
_JPEG_END = b"\xff\xd9"
_CODECS = frozenset({b"JPXDecode", b"CCITTFaxDecode", b"JBIG2Decode"})
"""Their data says nothing by its length: only whether PDFium can make a bitmap of it counts."""

_OPERAND_OR_COMMENT = re.compile(
    rb"\((?:\\.|[^\\()]|\([^()]*\))*\)|<[0-9A-Fa-f\s]*>|%[^\r\n]*|/[^\0\s/<>\[\]()%]*", re.DOTALL
)
"""Strings, comments and names: what may hold the letters of an operator."""
_BETWEEN_WORDS = re.compile(rb"[\0\s\[\]<>]+")

_OPERATORS = frozenset(
    (
        rb"b b* B B* BDC BI BMC BT BX c cm cs CS d d0 d1 Do DP EI EMC ET EX f F f* g G gs h i ID "
        rb"j J k K l m M MP n q Q re rg RG ri s S sc SC scn SCN sh T* Tc Td TD Tf Tj TJ TL Tm Tr "
        rb"Ts Tw Tz v w W W* y ' " + b'"'
    ).split()
)
"""ISO 32000-2, annex A."""

_OF_ANY_TREE_NODE = frozenset({"Type", "Parent", "MediaBox", "CropBox", "Resources", "Rotate"})
_OF_PAGES_ONLY = frozenset(
    re.findall(
        r"\w+",
        "AA AF Annots ArtBox B BleedBox BoxColorInfo Contents DPart Dur Group ID LastModified "
        "Metadata OutputIntents PZ PieceInfo PresSteps SeparationInfo StructParents Tabs "
        "TemplateInstantiated Thumb Trans TrimBox UserUnit VP",
    )
)
"""ISO 32000-2, table 31."""


def fault_of_empty_page(document: Any, page: Any, index: int) -> str | None:
    """What is damaged on a loaded page that was drawn without ink; None if it is just blank.

    PDFium cannot tell an empty dictionary from a page that inherits all it has, nor a lost object
    from one that was never named: such pages count as blank.
    """
    if not all(_is_whole(page, one) for one in _drawn(page) if _is_image(one)):
        return "an image on it cannot be decoded"
    try:
        copy = PageCopy(document, index)
    except ValueError:
        return None
    if not _is_page(copy, page):
        return "what the file names as the page is none"
    return _fault_of_contents(copy, list(_drawn(page)))


def _fault_of_contents(copy: PageCopy, drawn: list[Any]) -> str | None:
    contents = copy.contents()
    if not all(is_stream(body) for body in contents):
        return "its contents are missing"
    try:
        parts = [decoded(body) for body in contents]
        if any(_is_empty_form(one) for one in drawn):
            for form in copy.forms():
                decoded(form)
    except StreamDamaged:
        return "its contents cannot be read"
    if drawn or None in parts:
        return None
    return _fault_of_program(b"\n".join(part for part in parts if part))


def _fault_of_program(program: bytes) -> str | None:
    """What is wrong with a content stream from which PDFium drew nothing."""
    bare = _OPERAND_OR_COMMENT.sub(b" ", program)
    if b"(" in bare:
        return "its contents break off"
    words = set(_BETWEEN_WORDS.split(bare)) - {b""}
    if words and not words & _OPERATORS:
        return "its contents cannot be read"
    return "an image or drawing on it is missing" if b"Do" in words else None


def _is_page(copy: PageCopy, page: Any) -> bool:
    box = [ctypes.c_float() for _ in range(4)]
    if pdfium.FPDFPage_GetMediaBox(page, *box):
        return True
    own = copy.entries.keys() - _OF_ANY_TREE_NODE
    return not own or bool(own & _OF_PAGES_ONLY)


def _drawn(page: Any) -> Iterator[Any]:
    """The objects that PDFium made of the page's contents, those within forms included."""
    for place in range(pdfium.FPDFPage_CountObjects(page)):
        yield from _with_parts(pdfium.FPDFPage_GetObject(page, place), _DEEPEST_FORM)


def _with_parts(drawn: Any, depth: int) -> Iterator[Any]:
    yield drawn
    if depth and _is_form(drawn):
        for place in range(pdfium.FPDFFormObj_CountObjects(drawn)):
            yield from _with_parts(pdfium.FPDFFormObj_GetObject(drawn, place), depth - 1)


def _is_image(drawn: Any) -> bool:
    return bool(pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_IMAGE)


def _is_form(drawn: Any) -> bool:
    return bool(pdfium.FPDFPageObj_GetType(drawn) == pdfium.FPDF_PAGEOBJ_FORM)


def _is_empty_form(drawn: Any) -> bool:
    return _is_form(drawn) and pdfium.FPDFFormObj_CountObjects(drawn) == 0


def _is_whole(page: Any, image: Any) -> bool:
    bitmap = pdfium.FPDFImageObj_GetBitmap(image)
    if not bitmap:
        return False
    pdfium.FPDFBitmap_Destroy(bitmap)
    last_filter = _last_filter(image)
    if last_filter in _CODECS:
        return True
    data = _bytes(pdfium.FPDFImageObj_GetImageDataDecoded, image)
    if last_filter == _JPEG:
        # Of a JPEG that breaks off, the decoder makes even grey.
        return _JPEG_END in data
    about = pdfium.FPDF_IMAGEOBJ_METADATA()
    pdfium.FPDFImageObj_GetImageMetadata(image, page, about)
    # PDFium tells the depth of its own bitmap, not of the data: count the least there can be.
    return len(data) >= about.height * ((about.width + 7) // 8)


def _last_filter(image: Any) -> bytes:
    count = pdfium.FPDFImageObj_GetImageFilterCount(image)
    if count < 1:
        return b""
    return _bytes(pdfium.FPDFImageObj_GetImageFilter, image, count - 1).rstrip(b"\0")


def _bytes(read: Any, *what: Any) -> bytes:
    """What a PDFium function gives that is asked for the size first."""
    size = read(*what, None, 0)
    buffer = ctypes.create_string_buffer(size)
    read(*what, buffer, size)
    return buffer.raw
