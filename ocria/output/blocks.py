"""One block: from what was read to its plain text, Markdown, HTML and LaTeX."""

import re
from dataclasses import dataclass, replace

from ocria.document import Block, BlockType
from ocria.output.clean import without_trailing_space
from ocria.output.frame import Box
from ocria.output.inline import plain_text
from ocria.output.markdown_escape import (
    code_block,
    escape_heading,
    escape_line,
    escape_paragraph,
    formula_block,
)
from ocria.output.table_grid import TableGrid

MAX_LEVEL = 6
_BULLET = re.compile(r"(?:[-+*]|[•◦▪▫‣·●○■□–])\s+(?=\S)")
_NUMBER = re.compile(r"(\d{1,9}[.)])\s+(?=\S)")


@dataclass(frozen=True, kw_only=True, slots=True)
class Reading:
    """A block as it was read, before it is written down.

    `text` is cleaned and may hold inline marks; list items keep their printed mark in it, code
    its lines, formulas are TeX without dollars. A table has a `grid` instead.
    """

    type: BlockType
    text: str = ""
    level: int | None = None
    grid: TableGrid | None = None
    bbox: Box | None = None
    confidence: float | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was read where something must have been."""
        return self.grid is None and self.type != "figure" and not self.text.strip()


def numbered(readings: list[Reading], page_number: int) -> tuple[Block, ...]:
    """The blocks of a page, with ids that count from 1."""
    return tuple(
        _block(reading, f"p{page_number}-b{index}") for index, reading in enumerate(readings, 1)
    )


def _block(reading: Reading, block_id: str) -> Block:
    block = Block(
        id=block_id,
        type=reading.type,
        text="",
        markdown="",
        bbox=reading.bbox,
        confidence=reading.confidence,
    )
    if reading.grid is not None:
        grid = reading.grid
        return replace(block, text=grid.text(), markdown=grid.markdown(), html=grid.html())
    match reading.type:
        case "heading":
            return _heading(block, reading)
        case "list_item":
            return _list_item(block, reading)
        case "formula":
            tex = reading.text.strip()
            return replace(block, text=tex, latex=tex, markdown=formula_block(tex))
        case "code":
            code = without_trailing_space(reading.text).strip("\n")
            return replace(block, text=code, markdown=code_block(code))
    lines = "\n".join(line.strip() for line in reading.text.split("\n") if line.strip())
    return replace(block, text=plain_text(lines), markdown=escape_paragraph(lines))


def _heading(block: Block, reading: Reading) -> Block:
    level = min(max(reading.level or 1, 1), MAX_LEVEL)
    text = " ".join(reading.text.split())
    markdown = f"{'#' * level} {escape_heading(text)}"
    return replace(block, level=level, text=plain_text(text), markdown=markdown)


def _list_item(block: Block, reading: Reading) -> Block:
    text = " ".join(reading.text.split())
    bullet, number = _BULLET.match(text), _NUMBER.match(text)
    mark, body, shown = "-", text, text
    if bullet:
        # A bullet is a sign of the list, not part of what it says; a number is both.
        body = shown = text[bullet.end() :]
    elif number:
        mark, body = number[1], text[number.end() :]
    level = min(max(reading.level or 1, 1), MAX_LEVEL)
    markdown = f"{mark} {escape_line(body)}"
    return replace(block, level=level, text=plain_text(shown), markdown=markdown)
