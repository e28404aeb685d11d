"""The PDF of a manuscript, read back: which block lies where on which page, and is it all there."""

from __future__ import annotations

import ctypes
import unicodedata
from dataclasses import dataclass, field

import cv2
import numpy as np
import pypdfium2 as pdfium
import pypdfium2.raw as raw

from .blocks import Block, bare
from .letters import PageText, Span, letters
from .typeset import Manuscript, Sheet

Box = tuple[float, float, float, float]
# Ink that starts this far above the line before it stands in another column.
_COLUMN_JUMP_PT = 25.0


class UnfaithfulPageError(Exception):
    """The page does not show what the manuscript says; it must not be trained on."""


@dataclass
class Patch:
    """The ink of one block in one column: box in points (origin top left) and text.

    `spans` are its text objects in the page's text, `formulas` the boxes of those set in a maths
    font, which have no span here.
    """

    box: Box
    text: str
    last: Box
    lines: list[Box] = field(default_factory=list)
    spans: list[Span] = field(default_factory=list)
    formulas: list[Box] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Placed:
    """A block (or its part) on a page; `box` is in page points, origin top left.

    `letters` [N, 2] are the centres of the characters of the block's content (NaN where one is not
    printed, or nobody knows where), `unplaced` boxes of ink that spells content and has no centre.
    """

    block: Block
    box: Box
    letters: np.ndarray
    unplaced: tuple[Box, ...] = ()


@dataclass(frozen=True, kw_only=True)
class SetPage:
    """One page: grey pixels [height_px, width_px] and its blocks in reading order."""

    pixels: np.ndarray
    placed: tuple[Placed, ...]


def _number(red: int, green: int, blue: int) -> int:
    return (red & 7) << 6 | (green & 7) << 3 | (blue & 7)


def _join(box: Box | None, other: Box) -> Box:
    if box is None:
        return other
    return (
        min(box[0], other[0]),
        min(box[1], other[1]),
        max(box[2], other[2]),
        max(box[3], other[3]),
    )


def _extend(patches: list[Patch], box: Box, text: str, span: Span | None) -> None:
    """Adds ink to a block's last patch, or opens one where the ink jumps up to a next column."""
    if patches and box[3] > patches[-1].last[1] - _COLUMN_JUMP_PT:
        patch = patches[-1]
        patch.box, patch.text, patch.last = _join(patch.box, box), patch.text + text, box
    else:
        patches.append(Patch(box, text, box))
    if text:
        patches[-1].lines.append(box)
        if span is None:
            patches[-1].formulas.append(box)
        else:
            patches[-1].spans.append(span)


class _Reader:
    """Walks a page's objects through pdfium's C interface with its buffers made once."""

    def __init__(self) -> None:
        self._colour = [ctypes.c_uint() for _ in range(4)]
        self._bounds = [ctypes.c_float() for _ in range(4)]
        self._name = ctypes.create_string_buffer(256)

    def patches(
        self, page: pdfium.PdfPage, page_text: PageText, unverified: set[int]
    ) -> dict[int, list[Patch]]:
        """Ink by block number, one patch a column; number 0 is ink that belongs to no block.

        Formulas are told from words in the blocks that are `unverified`.
        """
        height = page.get_height()
        found: dict[int, list[Patch]] = {}
        for i in range(raw.FPDFPage_CountObjects(page.raw)):
            item = raw.FPDFPage_GetObject(page.raw, i)
            is_text = raw.FPDFPageObj_GetType(item) == raw.FPDF_PAGEOBJ_TEXT
            number = self._number_of(item, is_text)
            raw.FPDFPageObj_GetBounds(item, *self._bounds)
            left, bottom, right, top = (value.value for value in self._bounds)
            box = (left, height - top, right, height - bottom)
            span: Span | None = page_text.span(item) if is_text and number else None
            text = page_text.text(span) if span else ""
            if is_text and not text.strip() and number:
                continue
            if number in unverified and is_text and self._is_maths(item):
                span = None
            _extend(found.setdefault(number, []), box, text, span)
        return found

    def _number_of(self, item: object, is_text: bool) -> int:
        fill = _number(*self._read(raw.FPDFPageObj_GetFillColor, item))
        return (
            fill if is_text or fill else _number(*self._read(raw.FPDFPageObj_GetStrokeColor, item))
        )

    def _read(self, getter: object, item: object) -> tuple[int, int, int]:
        getter(item, *self._colour)  # type: ignore[operator]
        red, green, blue, _ = (value.value for value in self._colour)
        return red, green, blue

    def _is_maths(self, item: object) -> bool:
        font = raw.FPDFTextObj_GetFont(item)
        raw.FPDFFont_GetBaseFontName(font, self._name, 256)
        return b"Math" in self._name.value


def read_pages(pdf: bytes, manuscript: Manuscript, wanted: int) -> list[SetPage]:
    """Up to `wanted` pages that are as they should be.

    Raises:
        UnfaithfulPageError: the text layer does not spell a block's truth.
    """
    document = pdfium.PdfDocument(pdf)
    reader, done, pages = _Reader(), {}, []
    unverified = {i for i, block in enumerate(manuscript.blocks, 1) if not block.verified}
    for index in range(min(len(document), wanted)):
        page = document[index]
        text = PageText(page)
        patches = reader.patches(page, text, unverified)
        placed = _placed(patches, manuscript, done, text)
        if placed is not None:
            pages.append(SetPage(pixels=_raster(page, manuscript), placed=placed))
        page.close()
    document.close()
    return pages


def _raster(page: pdfium.PdfPage, manuscript: Manuscript) -> np.ndarray:
    sheet = manuscript.sheet
    bitmap = page.render(scale=sheet.scale, grayscale=True, optimize_mode=None)
    pixels = np.array(bitmap.to_numpy(), copy=True)
    pixels = pixels.reshape(pixels.shape[0], pixels.shape[1])
    if sheet.condense != 1.0:
        shape = (sheet.width_px, pixels.shape[0])
        pixels = cv2.resize(pixels, shape, interpolation=cv2.INTER_AREA)
    if pixels.shape != (sheet.height_px, sheet.width_px):
        padded = np.full((sheet.height_px, sheet.width_px), pixels[0, 0], np.uint8)
        height, width = min(padded.shape[0], pixels.shape[0]), min(padded.shape[1], pixels.shape[1])
        padded[:height, :width] = pixels[:height, :width]
        return padded
    return pixels


def _placed(
    patches: dict[int, list[Patch]], manuscript: Manuscript, done: dict[int, int], text: PageText
) -> tuple[Placed, ...] | None:
    """The page's blocks in reading order, or None where the page cannot be told exactly."""
    placed: list[Placed] = []
    lines: list[Box] = []
    told = True
    for number in sorted(patches):
        if number == 0 or number > len(manuscript.blocks):  # decoration; white is 511
            continue
        block = manuscript.blocks[number - 1]
        parts = patches[number] if block.splittable else [_whole(patches[number])]
        try:
            for part in parts:
                shown = _part_on_page(block, number, part, done)
                placed.append(_with_letters(shown, part, text))
                lines += part.lines if block.verified and block.type != "figure" else []
        except ValueError:
            told = False
    _check_legible(placed, lines, manuscript.sheet)
    middle = manuscript.sheet.height_pt / 2
    return tuple(sorted(placed, key=lambda p: _rank(p, middle))) if told else None


def _whole(patches: list[Patch]) -> Patch:
    whole = patches[0]
    for patch in patches[1:]:
        lines = whole.lines + patch.lines
        whole = Patch(
            _join(whole.box, patch.box), whole.text + patch.text, patch.box, lines,
            whole.spans + patch.spans, whole.formulas + patch.formulas,
        )  # fmt: skip
    return whole


def _with_letters(block: Block, patch: Patch, text: PageText) -> Placed:
    size = len(block.content())
    found = None if block.latex is not None or not size else letters(block, text, patch.spans)
    unplaced = tuple(patch.formulas)
    if found is None:
        found = np.full((size, 2), np.nan, np.float32)
        unplaced = (patch.box,) if size else ()
    return Placed(block=block, box=patch.box, letters=found, unplaced=unplaced)


def _check_legible(placed: list[Placed], lines: list[Box], sheet: Sheet) -> None:
    """Refuses ink off the page, text over text, and blocks over blocks."""
    for item in placed:
        x0, y0, x1, y1 = item.box
        if x0 < -1 or y0 < -1 or x1 > sheet.width_pt + 1 or y1 > sheet.height_pt + 1:
            raise UnfaithfulPageError(f"{item.block.type} runs off the page")
    written = [p.box for p in placed if p.block.type != "figure"]
    if _covered(written) > 0.5 or _covered(lines) > 0.5:
        raise UnfaithfulPageError("ink over ink")


def _covered(boxes: list[Box]) -> float:
    """The largest share of any box that another one covers."""
    if len(boxes) < 2:
        return 0.0
    b = np.array(boxes)
    width = np.minimum(b[:, None, 2], b[None, :, 2]) - np.maximum(b[:, None, 0], b[None, :, 0])
    height = np.minimum(b[:, None, 3], b[None, :, 3]) - np.maximum(b[:, None, 1], b[None, :, 1])
    shared = width.clip(0) * height.clip(0)
    np.fill_diagonal(shared, 0)
    area = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
    return float((shared / np.maximum(area[:, None], 4.0)).max())


def _rank(placed: Placed, middle_pt: float) -> tuple[int, float]:
    """Header row left to right, body as written, footnotes, footer left to right."""
    kind = placed.block.type
    if kind in ("header", "page_number") and placed.box[1] < middle_pt:
        return 0, placed.box[0]
    if kind in ("footer", "page_number", "header"):
        return 3, placed.box[0]
    return (2 if kind == "footnote" else 1), 0.0


def _part_on_page(block: Block, number: int, patch: Patch, done: dict[int, int]) -> Block:
    if block.from_ink:
        run = block.runs[0]
        return Block(type=block.type, runs=(type(run)(ink=patch.text.strip()),))
    if not block.verified or block.type == "figure":
        if number in done:
            raise ValueError("an unverified block on two pages")
        done[number] = 1
        return block
    repeats = block.type in ("header", "footer")
    ink, start = _bare_ink(patch.text), 0 if repeats else done.get(number, 0)
    whole = _bare_ink(block.ink)
    if block.table is not None:
        # Cells leave the PDF in typst's order, which spans can change: compare as bags.
        if sorted(ink) != sorted(whole):
            raise UnfaithfulPageError(f"table {whole[:60]!r} came out as {ink[:60]!r}")
        return block
    if not whole.startswith(ink, start):
        raise UnfaithfulPageError(f"{block.type} {whole[start:][:60]!r} came out as {ink[:60]!r}")
    done[number] = start + len(ink)
    if start == 0 and len(ink) == len(whole):
        return block
    if not block.splittable:
        raise UnfaithfulPageError(f"{block.type} {whole[:60]!r} was cut to {ink[:60]!r}")
    part = block.part(start, start + len(ink))
    if not part.runs:
        raise UnfaithfulPageError(f"{block.type} {whole[:60]!r} has a part without text")
    ends_hyphenated = patch.text.rstrip().endswith(("\x02", "\u2010", "-"))
    return part.hyphenated() if ends_hyphenated else part


def _bare_ink(text: str) -> str:
    return unicodedata.normalize("NFC", bare(text))
