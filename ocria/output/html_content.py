"""What stands inside one layout block of HTML: paragraphs, headings, lists, tables, formulas."""

import re
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ocria.document import BlockType
from ocria.output.blocks import Reading
from ocria.output.decoded import DecodedText
from ocria.output.frame import Box
from ocria.output.html_grid import captions_of, grid_of
from ocria.output.html_inline import inline_text, one_line, tex_of
from ocria.output.html_lexemes import Piece
from ocria.output.html_tree import Element

_HEADINGS = {f"h{level}": level for level in range(1, 7)}
_DEFAULT_LEVEL = 2
"""Of a heading that comes without an `h` element: under the page's title, above nothing."""
_FRAMES = frozenset({"p", "div", "blockquote", "figcaption", "label"})
_STANDING = frozenset({*_HEADINGS, *_FRAMES, "ul", "ol", "table", "pre", "img", "figure", "hr"})
# Furniture and notes stay what they are, whatever elements the model puts inside.
_STICKY: frozenset[str] = frozenset({"header", "footer", "footnote", "caption"})
_PAGE_NUMBER = re.compile(r"(?:page |seite |p\. ?)?[-–—]? ?(?:\d{1,4}|[ivxlc]{1,7}) ?[-–—]?", re.I)
_EQUATION_NUMBER = re.compile(r"\(?([A-Z]?\d[\w.\-]{0,8})\)?")
_PRINTED_MARK = re.compile(r"(?:[-+*•◦▪▫‣·●○■□–]|\d{1,9}[.)])\s+\S")


class Place(NamedTuple):
    """What a block's label says it is, and where it lies."""

    type: BlockType
    bbox: Box | None


@dataclass
class ContentReader:
    """Collects readings block by block."""

    decoded: DecodedText
    readings: list[Reading] = field(default_factory=list)
    mended: bool = False

    def read(self, element: Element, place: Place) -> None:
        """Reads the inside of one block."""
        if place.type == "code":
            self._add(_code(element), place, element)
            return
        if place.type == "figure" and not any(e.name == "table" for e in element.descendants()):
            self._figure(element, place)
            return
        self._flow(element, place)

    def _flow(self, element: Element, place: Place) -> None:
        """Splits a block's children into those that stand alone and runs of text between them."""
        run: list[Element | Piece] = []
        for child in element.children:
            if isinstance(child, Piece) or not self._stands(child, place):
                run.append(child)
                continue
            self._run(run, place)
            run = []
            self._standing(child, place)
        self._run(run, place)

    def _stands(self, element: Element, place: Place) -> bool:
        if element.name == "math":
            return place.type == "formula" or element.attributes.get("display") == "block"
        return element.name in _STANDING or any(
            below.name in ("table", "ul", "ol", "pre") for below in element.descendants()
        )

    def _standing(self, element: Element, place: Place) -> None:
        name = element.name
        if name in _HEADINGS and place.type not in _STICKY:
            self._add(
                Reading(type="heading", text=one_line(element), level=_HEADINGS[name]),
                place,
                element,
            )
        elif name in ("ul", "ol"):
            self._list(element, place, level=1)
        elif name == "table":
            self._table(element, place)
        elif name == "math":
            self._add(Reading(type="formula", text=tex_of(element)), place, element)
        elif name == "pre":
            self._add(_code(element), place, element)
        elif name in ("img", "figure"):
            self._figure(element, place)
        elif name != "hr":
            self._flow(element, place)

    def _run(self, nodes: list[Element | Piece], place: Place) -> None:
        """Running text as one block of the place's type."""
        holder = _holder(nodes)
        text = inline_text(holder)
        if not text:
            return
        if place.type == "formula":
            self._beside_formula(holder, text, place)
        elif place.type == "heading":
            self._add(Reading(type="heading", text=text, level=_DEFAULT_LEVEL), place, holder)
        elif place.type == "list_item":
            for line in text.split("\n"):
                self._add(Reading(type="list_item", text=_item(line), level=1), place, holder)
        elif place.type == "table":
            # A table's label without a table around the words.
            self.mended = True
            self._add(Reading(type="paragraph", text=text), place, holder)
        elif place.type in ("header", "footer") and _PAGE_NUMBER.fullmatch(text):
            self._add(Reading(type="page_number", text=text), place, holder)
        else:
            self._add(Reading(type=place.type, text=text), place, holder)

    def _beside_formula(self, holder: Element, text: str, place: Place) -> None:
        number = _EQUATION_NUMBER.fullmatch(text)
        last = self.readings[-1] if self.readings else None
        if number and last is not None and last.type == "formula" and last.bbox == place.bbox:
            if r"\tag" not in last.text:
                self.readings[-1] = replace(last, text=f"{last.text} \\tag{{{number[1]}}}")
            return
        has_formula = last is not None and last.type == "formula" and last.bbox == place.bbox
        kind: BlockType = "paragraph" if has_formula else "formula"
        self._add(Reading(type=kind, text=text.strip("$ ")), place, holder)

    def _list(self, element: Element, place: Place, *, level: int) -> None:
        number = 0
        for child in element.children:
            if isinstance(child, Piece):
                if child.value.strip():
                    self.mended = True
                    self._run([child], place)
            elif child.name in ("ul", "ol"):
                self._list(child, place, level=level + 1)
            else:
                number += 1
                mark = f"{_start(child, number)}." if element.name == "ol" else "-"
                self._item(child, place, mark, level)

    def _item(self, element: Element, place: Place, mark: str, level: int) -> None:
        apart = ("ul", "ol", "table", "pre")
        own = [c for c in element.children if isinstance(c, Piece) or c.name not in apart]
        text = one_line(_holder(own))
        if text and place.type in _STICKY:
            self._add(Reading(type=place.type, text=text), place, element)
        elif text:
            item = Reading(type="list_item", text=_item(text, mark), level=level)
            self._add(item, place, _holder(own))
        for child in element.elements():
            if child.name in ("ul", "ol"):
                self._list(child, place, level=level + 1)
            elif child.name in apart:
                self._standing(child, place)

    def _table(self, element: Element, place: Place) -> None:
        for caption in captions_of(element):
            self._add(Reading(type="caption", text=caption), place, element)
        grid, mended = grid_of(element)
        self.mended |= mended
        if grid is not None:
            self._add(Reading(type="table", grid=grid), place, element)

    def _figure(self, element: Element, place: Place) -> None:
        """A picture; its description is the model's own words, so it is set off as emphasis."""
        text = " ".join(inline_text(_holder([element])).split())
        emphasised = f"*{text}*" if text and "*" not in text else text
        self._add(Reading(type="figure", text=emphasised), place, element)

    def _add(self, reading: Reading, place: Place, source: Element) -> None:
        if reading.is_empty:
            return
        inside = source.children
        start = inside[0].start if inside else source.start
        end = inside[-1].end if inside else source.end
        confidence = self.decoded.confidence(start, end)
        self.readings.append(replace(reading, bbox=place.bbox, confidence=confidence))


def _holder(nodes: list[Element | Piece]) -> Element:
    start, end = (nodes[0].start, nodes[-1].end) if nodes else (0, 0)
    return Element("", start, end, children=nodes)


def _code(element: Element) -> Reading:
    return Reading(type="code", text=element.text().strip("\n"))


def _item(text: str, mark: str = "-") -> str:
    """An item with its mark; one that is printed inside the item counts."""
    return text if _PRINTED_MARK.match(text) else f"{mark} {text}"


def _start(item: Element, number: int) -> str:
    value = item.attributes.get("value", "")
    return value if value.isascii() and value.isdigit() and len(value) < 9 else str(number)
