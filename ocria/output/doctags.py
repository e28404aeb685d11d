"""Blocks from DocTags, the markup of the Docling models: `<text><loc_1>…four…</text>`.

Source: Nassar and others, "SmolDocling", 2025, and the vocabulary of granite-docling. Tables are
OTSL. Where the tokenizer knows the tags, only its tokens are tags; text that looks like one stood
on the page.
"""

import re
from dataclasses import dataclass, field
from typing import cast

from ocria.document import BlockType
from ocria.output.blocks import Reading
from ocria.output.decoded import DecodedText, PageGeometry
from ocria.output.doctags_lexemes import (
    BLOCKS,
    CELLS,
    FRAMES,
    LANGUAGE,
    LEVEL,
    LISTS,
    LOCATION,
    Lexeme,
    lexemes,
)
from ocria.output.frame import Box, styled_box
from ocria.output.markup_style import MarkupStyle
from ocria.output.otsl import OtslCell, grid_from_otsl

_HOLDS_CAPTION = frozenset({"table", "figure", "code"})
_PAGE_NUMBER = re.compile(r"\d{1,4}|[ivxlc]{1,7}")
_CHECK = {"checkbox_selected": "[x] ", "checkbox_unselected": "[ ] "}


@dataclass
class _Open:
    """A block being read; [start, end) are the characters of its content."""

    tag: str
    type: BlockType
    level: int | None
    start: int
    end: int
    locations: list[float] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rows: list[list[OtslCell]] = field(default_factory=list)
    row: list[OtslCell] = field(default_factory=list)
    has_content: bool = False


def read_doctags(
    decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle
) -> tuple[list[Reading], bool]:
    """The blocks of a page, and whether something had to be mended."""
    reader = _Reader(decoded, geometry, style)
    for lexeme in lexemes(decoded):
        reader.take(lexeme)
    reader.finish()
    return reader.readings, reader.mended


class _Reader:
    def __init__(self, decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle) -> None:
        self.readings: list[Reading] = []
        self.mended = False
        self._decoded, self._geometry, self._style = decoded, geometry, style
        self._open: list[_Open] = []
        self._frames: list[str] = []
        self._numbers: list[int] = []

    def take(self, lexeme: Lexeme) -> None:
        """Goes on by one lexeme."""
        name = lexeme.name
        if name is None:
            self._text(lexeme)
        elif name in FRAMES:
            self._frame(name, close=lexeme.close)
        elif location := LOCATION.fullmatch(name):
            self._location(int(location[1]), lexeme)
        elif name in CELLS or name == "nl":
            self._cell(name, lexeme)
        elif name == "page_break" or LANGUAGE.fullmatch(name):
            return
        else:
            (self._end if lexeme.close else self._begin)(name, lexeme)

    def finish(self) -> None:
        """Ends what is open at the end of the page."""
        self.mended |= bool(self._open or self._frames)
        while self._open:
            self._close()

    def _frame(self, name: str, *, close: bool) -> None:
        if not close:
            self._frames.append(name)
            if name in LISTS:
                self._numbers.append(0)
            return
        if name not in self._frames:
            self.mended = True
            return
        while self._open and self._open[-1].type == "list_item" and name in LISTS:
            self.mended = True
            self._close()
        while self._frames:
            ended = self._frames.pop()
            if ended in LISTS:
                self._numbers.pop()
            if ended == name:
                return
            self.mended = True

    def _begin(self, name: str, lexeme: Lexeme) -> None:
        level = LEVEL.fullmatch(name)
        kind: BlockType = "heading" if level else BLOCKS[name]
        while self._open and not _may_hold(self._open[-1], kind):
            self.mended = True
            self._close()
        if kind == "list_item":
            depth = max(len(self._numbers), 1)
            if self._numbers:
                self._numbers[-1] += 1
            else:
                self.mended = True
            number: int | None = depth
        else:
            number = int(level[1]) + 1 if level else 1 if kind == "heading" else None
        self._open.append(_Open(name, kind, number, lexeme.start, lexeme.end))
        if name in _CHECK:
            self._open[-1].texts.append(_CHECK[name])

    def _end(self, name: str, lexeme: Lexeme) -> None:
        if name not in [block.tag for block in self._open]:
            self.mended = True
            return
        while self._open[-1].tag != name:
            self.mended = True
            self._close()
        self._close()

    def _location(self, value: int, lexeme: Lexeme) -> None:
        block = self._open[-1] if self._open else None
        if block is None or len(block.locations) == 4:
            self.mended = True
            return
        block.locations.append(value)

    def _text(self, lexeme: Lexeme) -> None:
        if not self._open:
            if not lexeme.text.strip():
                return
            self.mended = True
            self._open.append(_Open("text", "paragraph", None, lexeme.start, lexeme.end))
            self._open[-1].texts.append(lexeme.text)
            self._mark(self._open[-1], lexeme)
            self._close(boxless=True)
            return
        block = self._open[-1]
        if not lexeme.text.strip() and not block.has_content:
            return
        self._mark(block, lexeme)
        if block.type != "table":
            block.texts.append(lexeme.text)
        elif text := " ".join(lexeme.text.split()):
            self._cell_text(block, text)

    def _cell_text(self, block: _Open, text: str) -> None:
        if not block.row:
            self.mended = True
            block.row.append(OtslCell("fcel", text))
            return
        cell = block.row[-1]
        can_hold = cell.kind in ("fcel", "ched")
        self.mended |= not can_hold
        block.row[-1] = OtslCell(cell.kind if can_hold else "fcel", f"{cell.text} {text}".strip())

    def _cell(self, name: str, lexeme: Lexeme) -> None:
        block = self._open[-1] if self._open else None
        if block is None or block.type not in ("table", "figure"):
            self.mended = True
            if block is not None:
                block.texts.append(" ")
            return
        self._mark(block, lexeme)
        # A chart holds its numbers as a table.
        block.type = "table"
        if name != "nl":
            block.row.append(OtslCell(CELLS[name], ""))
        elif block.row:
            block.rows.append(block.row)
            block.row = []
        else:
            self.mended = True

    def _mark(self, block: _Open, lexeme: Lexeme) -> None:
        if not block.has_content:
            block.start, block.has_content = lexeme.start, True
        block.end = lexeme.end

    def _close(self, *, boxless: bool = False) -> None:
        block = self._open.pop()
        box = styled_box(block.locations, self._geometry, self._style)
        self.mended |= box is None and not boxless and block.type != "caption"
        if len(block.locations) == 4:
            x0, y0, x1, y1 = block.locations
            self.mended |= x0 > x1 or y0 > y1
        reading = self._table(block, box) if block.type == "table" else self._plain(block, box)
        if reading is None or reading.is_empty:
            self.mended = True
        else:
            self.readings.append(reading)

    def _table(self, block: _Open, box: Box | None) -> Reading | None:
        if block.row:
            self.mended = True
            block.rows.append(block.row)
        if not block.rows:
            return None
        grid, mended = grid_from_otsl(block.rows)
        self.mended |= mended
        return Reading(type="table", grid=grid, bbox=box, confidence=self._confidence(block))

    def _plain(self, block: _Open, box: Box | None) -> Reading:
        text, kind = "".join(block.texts), block.type
        if kind == "list_item":
            text = self._item(text.strip())
        elif kind in ("header", "footer") and _PAGE_NUMBER.fullmatch(text.strip()):
            kind = cast(BlockType, "page_number")
        elif kind == "formula":
            text = text.strip().strip("$")
        return Reading(
            type=kind, text=text, level=block.level, bbox=box, confidence=self._confidence(block)
        )

    def _item(self, text: str) -> str:
        if not text or re.match(r"(?:[-+*•◦▪–]|\d{1,9}[.)])\s+\S", text):
            return text
        lists = [frame for frame in self._frames if frame in LISTS]
        ordered = bool(lists) and lists[-1] == "ordered_list"
        return f"{self._numbers[-1]}. {text}" if ordered and self._numbers else f"- {text}"

    def _confidence(self, block: _Open) -> float | None:
        return self._decoded.confidence(block.start, block.end)


def _may_hold(block: _Open, kind: BlockType) -> bool:
    return kind == "caption" and block.type in _HOLDS_CAPTION
