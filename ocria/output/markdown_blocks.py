"""Blocks from plain Markdown, for models that write no markup of their own.

Read: `# heading`, `- item`, `3. item`, pipe tables, paragraphs. Everything else is a paragraph.
Each line is looked at once, so a page of any length takes linear time.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from ocria.output.blocks import Reading
from ocria.output.clean import blank_out, clean
from ocria.output.decoded import DecodedText
from ocria.output.table_grid import Cell, rectangular

LineKind = Literal["blank", "heading", "item", "row", "text"]

_HEADING = re.compile(r"(#{1,6})[ \t]+(?=\S)")
_ITEM = re.compile(r"([ \t]*)(?:-|\d{1,3}[.)])[ \t]+(?=\S)")
_RULE = re.compile(":?-+:?")
_PIPE = re.compile(r"(\\*)\|")


class _Line(NamedTuple):
    kind: LineKind
    text: str
    start: int
    end: int


@dataclass
class _Reader:
    """Collects lines into readings; `indents` are the open list levels of the current list."""

    decoded: DecodedText
    readings: list[Reading] = field(default_factory=list)
    indents: list[int] = field(default_factory=list)
    repaired: bool = False

    def lines(self, lines: list[_Line]) -> None:
        """Lines of one kind: a table, or a paragraph."""
        # A single line that begins with a bar may as well be `|x| < 3`.
        is_table = lines[0].kind == "row" and (len(lines) > 1 or lines[0].text.endswith("|"))
        (self._table if is_table else self._paragraph)(lines)

    def heading(self, line: _Line) -> None:
        match = _HEADING.match(line.text.strip())
        assert match is not None, "the line was seen to be a heading"
        text = line.text.strip()[match.end() :]
        self._add(Reading(type="heading", text=text, level=len(match[1])), [line])

    def item(self, line: _Line) -> None:
        indent = len(line.text.expandtabs(4)) - len(line.text.expandtabs(4).lstrip())
        while self.indents and self.indents[-1] > indent:
            self.indents.pop()
        if not self.indents or self.indents[-1] < indent:
            self.indents.append(indent)
        self._add(Reading(type="list_item", text=line.text, level=len(self.indents)), [line])

    def _paragraph(self, lines: list[_Line]) -> None:
        text = "\n".join(line.text.strip() for line in lines)
        self._add(Reading(type="paragraph", text=text), lines)

    def _table(self, lines: list[_Line]) -> None:
        rows = [_split_row(line.text) for line in lines]
        # The line of dashes under the head; further down, dashes are a row of empty values.
        rule = next(
            (i for i in (1, 0) if i < len(rows) and all(map(_RULE.fullmatch, rows[i]))), None
        )
        if rule is not None:
            del rows[rule]
        if not rows:
            self.repaired = True
            return
        grid, mended = rectangular(
            [[Cell(text=text, heading=y == 0) for text in row] for y, row in enumerate(rows)]
        )
        self.repaired |= mended or rule != 1
        self._add(Reading(type="table", grid=grid), lines)

    def _add(self, reading: Reading, lines: list[_Line]) -> None:
        confidence = self.decoded.confidence(lines[0].start, lines[-1].end)
        self.readings.append(replace(reading, confidence=confidence))


def read_markdown(decoded: DecodedText) -> tuple[list[Reading], bool]:
    """The blocks of `decoded` without boxes, and whether a table had to be mended."""
    reader = _Reader(decoded)
    open_lines: list[_Line] = []
    for line in [*_lines(decoded), _Line("blank", "", 0, 0)]:
        if open_lines and open_lines[0].kind != line.kind:
            reader.lines(open_lines)
            open_lines = []
        if line.kind in ("text", "row"):
            open_lines.append(line)
        if line.kind in ("text", "row", "heading"):
            reader.indents.clear()
        if line.kind == "heading":
            reader.heading(line)
        elif line.kind == "item":
            reader.item(line)
    return reader.readings, reader.repaired


def _lines(decoded: DecodedText) -> Iterator[_Line]:
    start = 0
    for raw in blank_out(decoded.text, decoded.special_spans).split("\n"):
        end = start + len(raw)
        # Odd line ends inside a line (form feeds, U+2028) are only white space here.
        text = clean(raw).replace("\n", " ").rstrip()
        yield _Line(_kind(text), text, start, end)
        start = end + 1


def _kind(line: str) -> LineKind:
    stripped = line.strip()
    if not stripped:
        return "blank"
    if _HEADING.match(stripped):
        return "heading"
    if _ITEM.match(line):
        return "item"
    return "row" if stripped[0] == "|" else "text"


def _split_row(line: str) -> list[str]:
    """Cells of a pipe row. A pipe after an odd number of backslashes is a character."""
    cells, done, current = [], 0, ""
    for match in _PIPE.finditer(line):
        slashes = len(match[1])
        current += line[done : match.start()] + "\\" * (slashes // 2)
        done = match.end()
        if slashes % 2:
            current += "|"
        else:
            cells.append(current)
            current = ""
    cells.append(current + line[done:])
    # The outer pipes leave an empty string at either end.
    cells = cells[1:] if not cells[0].strip() else cells
    cells = cells[:-1] if len(cells) > 1 and not cells[-1].strip() else cells
    return [" ".join(cell.split()) for cell in cells]
