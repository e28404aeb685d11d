"""A PDF page's text layer with PDFium. Runs in a worker process only: PDFium may crash."""

import ctypes
from collections.abc import Iterator
from typing import Any, NamedTuple

import pypdfium2.raw as pdfium

from ocria.rasterize.text_layer import MAX_CHARACTERS, SOFT_HYPHEN, TextLayer, TextLine

_WIDE_GAP = 1.2
"""In heights of the line's tallest glyph, which is about 0.7 of the font size: a word space is a
third of that, also in loosely justified lines it seldom reaches it."""
_PDFIUM_HYPHEN = "\ufffe"
"""What PDFium puts for a hyphen at the end of a line; it leaves the line end out."""
_MOST_NAME_BYTES = 128
_GRID = 1 << 20
"""Device units that PDFium turns page coordinates into: it answers in whole ones."""


class _Glyph(NamedTuple):
    """A character with its box in page coordinates (y upwards); blanks have none."""

    text: str
    place: int
    left: float = 0.0
    bottom: float = 0.0
    right: float = 0.0
    top: float = 0.0


def read_text_layer(page: Any) -> TextLayer:
    """The text of a loaded page, in the order of the file."""
    text_page = pdfium.FPDFText_LoadPage(page)
    if not text_page:
        return TextLayer(())
    try:
        lines = tuple(_text_line(page, text_page, glyphs) for glyphs in _glyph_lines(text_page))
    finally:
        pdfium.FPDFText_ClosePage(text_page)
    return TextLayer(lines)


def _glyph_lines(text_page: Any) -> Iterator[list[_Glyph]]:
    line: list[_Glyph] = []
    count = min(int(pdfium.FPDFText_CountChars(text_page)), MAX_CHARACTERS)
    for index in range(count):
        character = _character(pdfium.FPDFText_GetUnicode(text_page, index))
        if character is None:
            continue
        line.append(_glyph(text_page, index, character))
        if character in ("\n", SOFT_HYPHEN):
            yield from _if_visible(line)
            line = []
    yield from _if_visible(line)


def _if_visible(line: list[_Glyph]) -> Iterator[list[_Glyph]]:
    if any(glyph.right > glyph.left for glyph in line):
        yield line


def _character(code: int) -> str | None:
    """The character of a code point; None for one that is nothing on paper."""
    if code > 0x10FFFF or 0xD800 <= code < 0xE000:
        return None
    character = chr(code)
    if character == _PDFIUM_HYPHEN:
        return SOFT_HYPHEN
    if character in "\n\r":
        # Lines end with both; one is enough.
        return "\n" if character == "\n" else None
    if character.isspace():
        return " "
    return character if code >= 0x20 and code != 0x7F else None


def _glyph(text_page: Any, index: int, character: str) -> _Glyph:
    if character in (" ", "\n", SOFT_HYPHEN):
        # PDFium gives a hyphen that breaks a word the place of the line after it.
        return _Glyph(character, index)
    left, right, bottom, top = (ctypes.c_double() for _ in range(4))
    if not pdfium.FPDFText_GetCharBox(text_page, index, left, right, bottom, top):
        return _Glyph(character, index)
    return _Glyph(character, index, left.value, bottom.value, right.value, top.value)


def _text_line(page: Any, text_page: Any, glyphs: list[_Glyph]) -> TextLine:
    inked = [glyph for glyph in glyphs if glyph.right > glyph.left]
    wide = _WIDE_GAP * max(glyph.top - glyph.bottom for glyph in inked)
    parts: list[str] = []
    right, is_parted = inked[0].left, False
    for glyph in glyphs:
        if glyph.text in " \n":
            is_parted = bool(parts)
            continue
        if glyph.left - right > wide:
            parts.append("\t")
        elif is_parted:
            parts.append(" ")
        parts.append(glyph.text)
        right, is_parted = glyph.right or right, False
    font = _font(text_page, inked[0].place)
    return TextLine("".join(parts), _upright_box(page, inked), font)


def _font(text_page: Any, index: int) -> str:
    name = ctypes.create_string_buffer(_MOST_NAME_BYTES)
    flags = ctypes.c_int()
    pdfium.FPDFText_GetFontInfo(text_page, index, name, _MOST_NAME_BYTES, flags)
    size = float(pdfium.FPDFText_GetFontSize(text_page, index))
    return f"{name.value.decode('utf-8', 'replace')} {size:.1f}"


def _upright_box(page: Any, inked: list[_Glyph]) -> tuple[float, float, float, float]:
    corners = (
        _on_device(page, min(g.left for g in inked), max(g.top for g in inked)),
        _on_device(page, max(g.right for g in inked), min(g.bottom for g in inked)),
    )
    (x0, x1), (y0, y1) = (sorted(values) for values in zip(*corners, strict=True))
    return x0, y0, x1, y1


def _on_device(page: Any, x: float, y: float) -> tuple[float, float]:
    """Page coordinates to fractions of the page as it is drawn: crop box and /Rotate applied."""
    right, down = ctypes.c_int(), ctypes.c_int()
    pdfium.FPDF_PageToDevice(page, 0, 0, _GRID, _GRID, 0, x, y, right, down)
    return right.value / _GRID, down.value / _GRID
