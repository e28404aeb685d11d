"""The text that a PDF page carries beside its picture. It may be right, wrong or hidden."""

from typing import NamedTuple

MAX_CHARACTERS = 100_000
"""A page's text ends here: the densest real pages hold a fifth of it."""
SOFT_HYPHEN = "\u00ad"


class TextLine(NamedTuple):
    """One line as the file orders it.

    Attributes:
        text: without line end. A tab stands for a gap wider than a word space. A soft hyphen at
            the end stands for a hyphen that only breaks a word, as far as PDFium can tell.
        box: x0, y0, x1, y1 around its glyphs in fractions of the upright page's width and
            height, origin top left; outside 0..1 where the text lies off the page.
        font: name and size of its first glyph's font; a key to compare, not to show.
    """

    text: str
    box: tuple[float, float, float, float]
    font: str = ""


class TextLayer(NamedTuple):
    """All lines of a page, at most `MAX_CHARACTERS` characters together."""

    lines: tuple[TextLine, ...]
