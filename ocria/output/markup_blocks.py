"""Blocks from the model's markup (version 1): TYPE, four coordinates, content.

    page  := [turn] block*
    block := TYPE x0 y0 x1 y1 content
    list_item content may begin with a level; table content is OTSL.

Damage is mended and flagged, never fatal:

- fewer than four coordinates: the block has no box;
- coordinates or text where a type was due: a paragraph; after an unknown type: `other`;
- a block with no content: dropped (a figure needs none);
- text beside a covered or empty table place: that place becomes a cell;
- a token where it means nothing: dropped.
"""

from dataclasses import dataclass, field
from typing import NamedTuple, cast

from ocria.document import BlockType, Rotation
from ocria.output.blocks import Reading
from ocria.output.decoded import DecodedText, PageGeometry
from ocria.output.frame import Box, upright_box
from ocria.output.markup_tokens import Lexeme, lexemes
from ocria.output.otsl import CellKind, OtslCell, grid_from_otsl


class MarkupReading(NamedTuple):
    """Blocks in reading order; `turn` is the clockwise turn that makes the page upright."""

    readings: list[Reading]
    repaired: bool
    turn: Rotation


@dataclass
class _Open:
    """The block being read. [start, end) are the characters its confidence is taken from."""

    type: BlockType
    level: int | None
    start: int
    end: int
    coordinates: list[int] = field(default_factory=list)
    texts: list[str] = field(default_factory=list)
    rows: list[list[OtslCell]] = field(default_factory=list)
    row: list[OtslCell] = field(default_factory=list)
    has_content: bool = False


def read_markup(decoded: DecodedText, geometry: PageGeometry) -> MarkupReading:
    """Reads the whole page; boxes are in points of the upright page."""
    reader = _Reader(decoded, geometry)
    for lexeme in lexemes(decoded):
        reader.take(lexeme)
    reader.close_block()
    return MarkupReading(reader.readings, reader.repaired, reader.turn)


class _Reader:
    def __init__(self, decoded: DecodedText, geometry: PageGeometry) -> None:
        self.readings: list[Reading] = []
        self.repaired = False
        self.turn: Rotation = 0
        self._decoded = decoded
        self._geometry = geometry
        self._open: _Open | None = None
        self._after_unknown = False

    def take(self, lexeme: Lexeme) -> None:
        """Goes on by one lexeme."""
        match lexeme.kind:
            case "type":
                self._begin(cast(BlockType, lexeme.name), lexeme, lexeme.value or None)
            case "coordinate":
                self._coordinate(lexeme)
            case "text":
                self._text(lexeme)
            case "cell" | "row_end":
                self._table_token(lexeme)
            case "turn":
                self._turn(lexeme)
            case "level":
                self._level(lexeme)
            case "unknown":
                self.repaired = True
        self._after_unknown = lexeme.kind == "unknown"

    def close_block(self) -> None:
        """Ends the open block, if there is one."""
        block, self._open = self._open, None
        if block is None:
            return
        self.repaired |= len(block.coordinates) < 4
        reading = self._table(block) if block.type == "table" else self._plain(block)
        if reading is None or reading.is_empty:
            self.repaired = True
        else:
            self.readings.append(reading)

    def _begin(self, type: BlockType, lexeme: Lexeme, level: int | None = None) -> _Open:
        self.close_block()
        if type == "list_item":
            level = 1
        self._open = _Open(type, level, lexeme.start, lexeme.end)
        return self._open

    def _begin_untyped(self, lexeme: Lexeme) -> _Open:
        self.repaired = True
        return self._begin("other" if self._after_unknown else "paragraph", lexeme)

    def _content(self, lexeme: Lexeme) -> _Open:
        """The block that `lexeme` is content of."""
        block = self._open or self._begin_untyped(lexeme)
        if not block.has_content:
            # Coordinates are uncertain by nature; confidence speaks of the reading alone.
            block.start, block.has_content = lexeme.start, True
        block.end = lexeme.end
        return block

    def _coordinate(self, lexeme: Lexeme) -> None:
        block = self._open
        if block is None or block.has_content or self._after_unknown:
            block = self._begin_untyped(lexeme)
        if len(block.coordinates) < 4:
            block.coordinates.append(lexeme.value)
        else:
            self.repaired = True

    def _text(self, lexeme: Lexeme) -> None:
        if not lexeme.name.strip() and (self._open is None or not self._open.has_content):
            return
        block = self._content(lexeme)
        if block.type != "table":
            block.texts.append(lexeme.name)
            return
        text = " ".join(lexeme.name.split())
        if not text:
            return
        if not block.row:
            self.repaired = True
            block.row.append(OtslCell("fcel", text))
            return
        cell = block.row[-1]
        can_hold = cell.kind in ("fcel", "ched")
        self.repaired |= not can_hold
        block.row[-1] = OtslCell(cell.kind if can_hold else "fcel", f"{cell.text} {text}".strip())

    def _table_token(self, lexeme: Lexeme) -> None:
        if self._open is None or self._open.type != "table":
            self.repaired = True
            if self._open is not None:
                self._open.texts.append(" ")
            return
        block = self._content(lexeme)
        if lexeme.kind == "cell":
            block.row.append(OtslCell(cast(CellKind, lexeme.name), ""))
        elif block.row:
            block.rows.append(block.row)
            block.row = []
        else:
            self.repaired = True

    def _turn(self, lexeme: Lexeme) -> None:
        if self._open is None and not self.readings and not self.turn:
            self.turn = cast(Rotation, lexeme.value)
        else:
            self.repaired = True

    def _level(self, lexeme: Lexeme) -> None:
        block = self._open
        if block is None or block.type != "list_item" or block.has_content or block.level != 1:
            self.repaired = True
        else:
            block.level = lexeme.value

    def _table(self, block: _Open) -> Reading | None:
        if block.row:
            # A row that was not ended: the table was cut off.
            self.repaired = True
            block.rows.append(block.row)
        if not block.rows:
            return None
        grid, mended = grid_from_otsl(block.rows)
        self.repaired |= mended
        return Reading(
            type="table", grid=grid, bbox=self._box(block), confidence=self._confidence(block)
        )

    def _plain(self, block: _Open) -> Reading:
        return Reading(
            type=block.type,
            text="".join(block.texts),
            level=block.level,
            bbox=self._box(block),
            confidence=self._confidence(block),
        )

    def _confidence(self, block: _Open) -> float | None:
        return self._decoded.confidence(block.start, block.end)

    def _box(self, block: _Open) -> Box | None:
        if len(block.coordinates) < 4:
            return None
        x0, y0, x1, y1 = block.coordinates
        self.repaired |= x0 > x1 or y0 > y1
        return upright_box((x0, y0, x1, y1), self._geometry, self.turn)
