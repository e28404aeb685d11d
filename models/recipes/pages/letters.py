"""Where each character of a page's markup is printed.

Signs are the characters that leave ink: all but white space. The text layer spells the same signs
as a block, in the same order, but for hyphens at line ends and cells that span rows.
"""

from __future__ import annotations

import ctypes
from collections import deque
from itertools import repeat

import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from .blocks import HYPHENS, Block, Table, signs

Span = tuple[int, int]
# pypdfium2's own prototypes wrap every pointer, which takes three times the call; these take
# addresses.
_loose_box = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int, ctypes.c_void_p)(
    ctypes.cast(raw.FPDFText_GetLooseCharBox, ctypes.c_void_p).value or 0
)
_text_object = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int)(
    ctypes.cast(raw.FPDFText_GetTextObject, ctypes.c_void_p).value or 0
)
# How PDFium's page text writes a hyphen that only breaks a line; its characters say \x02.
_LINE_HYPHEN = 0xFFFE


class PageText:
    """The characters of a page, by text object. Places count UTF-16 units of the page's text."""

    def __init__(self, page: pdfium.PdfPage) -> None:
        self._page, self._height = page.get_textpage(), page.get_height()
        self._address = ctypes.cast(self._page.raw, ctypes.c_void_p).value
        count = raw.FPDFText_CountChars(self._page.raw)
        buffer = (ctypes.c_ushort * (count + 1))()
        written = raw.FPDFText_GetText(self._page.raw, 0, count, buffer) - 1 if count else 0
        self._units = np.frombuffer(buffer, np.uint16)[:count].copy()
        if written != count:
            self._units[:] = [raw.FPDFText_GetUnicode(self._page.raw, i) for i in range(count)]
        self._units[self._units == _LINE_HYPHEN] = 2
        self._spans = self._find_spans(count)

    def span(self, item: object) -> Span:
        """First and last place plus one of a text object's characters; empty where it has none."""
        return self._spans.get(ctypes.cast(item, ctypes.c_void_p).value or 0, (0, 0))

    def text(self, span: Span) -> str:
        """The text of a span; a space where one follows it."""
        start, stop = span
        stop += stop < len(self._units) and stop > start and self._units[stop] == 32
        return self._units[start:stop].tobytes().decode("utf-16-le", "replace").replace("\0", "")

    def signs(self, spans: list[Span]) -> tuple[str, np.ndarray]:
        """The signs of spans one after the other, and their places [N]."""
        if not spans:
            return "", np.zeros(0, np.int64)
        places = np.concatenate([np.arange(*span) for span in spans])
        units = self._units[places]
        kept = ~_SPACES[units]
        return units[kept].tobytes().decode("utf-16-le", "surrogatepass"), places[kept]

    def centres(self, places: np.ndarray) -> np.ndarray:
        """Centres [N, 2] in points, origin at the top left, of the characters at places [N].

        Of the boxes that have the font's height, so that a comma is as high as its line.
        """
        boxes = np.empty((len(places), 4), np.float32)
        first = boxes.ctypes.data
        addresses = range(first, first + 16 * len(places), 16)
        deque(map(_loose_box, repeat(self._address), places.tolist(), addresses), maxlen=0)
        centres = (boxes[:, :2] + boxes[:, 2:]) / 2
        centres[:, 1] = self._height - centres[:, 1]
        return centres

    def _find_spans(self, count: int) -> dict[int, Span]:
        """The characters of each object, which lie together, by leaps and halving."""
        address, spans, start = self._address, dict[int, Span](), 0
        while start < count:
            item = _text_object(address, start)
            if not item:  # a space or line end that PDFium put in
                start += 1
                continue
            inside, step = start, 8
            while inside + step < count and _text_object(address, inside + step) == item:
                inside, step = inside + step, step * 2
            outside = min(inside + step, count)
            while outside - inside > 1:
                middle = (inside + outside) // 2
                if _text_object(address, middle) == item:
                    inside = middle
                else:
                    outside = middle
            spans.setdefault(item, (start, outside))
            start = outside
        return spans


# By UTF-16 unit; PDFium has zeros for what it cannot name.
_SPACES = np.array([i == 0 or not signs(chr(i)) for i in range(0x10000)])


def aligned(ink: str, printed: str) -> np.ndarray | None:
    """Of each of the signs `ink`: its index among the signs `printed`, -1 for a hyphen not there.

    None where the two differ in more than hyphens.
    """
    if ink == printed:
        return np.arange(len(ink))
    found: list[int] = []
    at = 0
    for sign in ink:
        hyphen = sign in HYPHENS
        while at < len(printed) and printed[at] in HYPHENS and not hyphen:
            at += 1
        if at < len(printed) and (printed[at] in HYPHENS if hyphen else printed[at] == sign):
            found.append(at)
            at += 1
        elif hyphen:
            found.append(-1)
        else:
            return None
    return np.array(found, np.int64)


def aligned_table(table: Table, printed: str) -> np.ndarray | None:
    """As `aligned`, for the signs of all cells.

    Typst prints a cell over several rows with the last of them, before that row's own.
    """
    cells = [(y, cell) for y, row in enumerate(table.rows) for cell in row if cell is not None]
    inks = [signs(cell.ink) for _, cell in cells]
    turns = [(y + cell.rows - 1, cell.rows == 1) for y, cell in cells]
    order = sorted(range(len(cells)), key=turns.__getitem__)
    found = aligned("".join(inks[i] for i in order), printed)
    if found is None:
        return None
    ends = np.cumsum([len(inks[i]) for i in order])
    parts = dict(zip(order, np.split(found, ends[:-1]), strict=True))
    return np.concatenate([parts[i] for i in range(len(cells))])


def letters(block: Block, text: PageText, spans: list[Span]) -> np.ndarray | None:
    """The centre of every character of the block's content [N, 2], as `PageText.centres`.

    NaN where it has none: white space, marks, formulas. None where print and truth do not match.

    Args:
        block: the block, or the part of it that stands here.
        text: the page's text.
        spans: the block's text objects, those of formulas left out.
    """
    printed, places = text.signs(spans)
    ink = signs("".join(run.printed for run in block.runs if run.style != "math"))
    found = aligned_table(block.table, printed) if block.table else aligned(ink, printed)
    if found is None or len(printed) != len(places):
        return None
    content = block.content()
    sources = np.array(block.sources(), np.int64)
    out = np.full((len(content), 2), np.nan, np.float32)
    units = np.frombuffer(content.encode("utf-32-le"), np.uint32)
    where = np.flatnonzero(~_SPACES[np.minimum(units, 0xFFFF)])
    if len(where) != len(sources) or not len(found):
        return None
    index = np.where(sources >= 0, found[sources], -1)
    known = index >= 0
    out[where[known]] = text.centres(places[index[known]])
    return out
