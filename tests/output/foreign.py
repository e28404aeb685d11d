"""Cases of foreign markups: what a model wrote, and every field of the blocks it becomes."""

from dataclasses import dataclass
from typing import Any

from ocria.document import Block
from ocria.output import MarkupName, MarkupStyle, PageGeometry, build_page_blocks

from .conftest import decode

PAGE = PageGeometry(number=1, width_pt=500.0, height_pt=1000.0, read_px=(1024, 2048))
LAST = {"html": 1000, "json": 1000, "doctags": 500, "markdown": 1000}
BOX = (50.0, 50.0, 450.0, 80.0)
"""Where the cases' usual corners lie on the page."""


@dataclass(frozen=True)
class Case:
    """One page's text, the fields of its blocks, and whether it counts as damaged."""

    name: str
    text: str
    blocks: tuple[dict[str, Any], ...]
    repaired: bool = False

    def __str__(self) -> str:
        return self.name


def b(type_: str, text: str = "", md: str | None = None, **fields: Any) -> dict[str, Any]:
    """Fields of one block; `md` is `text` unless given, the box is `BOX` unless given."""
    defaults = {"level": None, "bbox": BOX, "html": None, "latex": None}
    markdown = text if md is None else md
    return {"type": type_, "text": text, "markdown": markdown, **defaults, **fields}


def heading(level: int, text: str, **fields: Any) -> dict[str, Any]:
    return b("heading", text, f"{'#' * level} {text}", level=level, **fields)


def item(level: int, text: str, md: str, **fields: Any) -> dict[str, Any]:
    return b("list_item", text, md, level=level, **fields)


def formula(tex: str, **fields: Any) -> dict[str, Any]:
    return b("formula", tex, f"$${tex}$$", latex=tex, **fields)


def table(rows: str, text: str, md: str | None = None, **fields: Any) -> dict[str, Any]:
    """`rows` are the lines of the HTML between the table's own tags."""
    html = f"<table>\n{rows}\n</table>"
    return b("table", text, html if md is None else md, html=html, **fields)


def fields_of(block: Block) -> dict[str, Any]:
    names = ("type", "text", "markdown", "level", "bbox", "html", "latex")
    return {name: getattr(block, name) for name in names}


def check(case: Case, name: MarkupName, geometry: PageGeometry = PAGE) -> None:
    """Compares every field of every block, ids and confidences included."""
    style = MarkupStyle(name=name, last_coordinate=LAST[name])
    found = build_page_blocks(decode(case.text, logprob=0.0), geometry, style)
    assert [fields_of(block) for block in found.blocks] == list(case.blocks)
    assert found.repaired == case.repaired
    assert [block.id for block in found.blocks] == [
        f"p1-b{number}" for number in range(1, len(case.blocks) + 1)
    ]
    assert {block.confidence for block in found.blocks} <= {1.0}
    assert (found.turn, found.rotation) == (0, geometry.rotation)
