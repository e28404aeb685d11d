"""Blocks from HTML layout blocks: `div` with `data-bbox` and `data-label`, HTML inside.

The labels are those of chandra-ocr and surya-ocr. Damage is mended and flagged, never fatal: tags
that do not pair, text outside a block, a box that is none, a label that nobody knows (`other`).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

from ocria.document import BlockType
from ocria.output.blocks import Reading
from ocria.output.clean import blank_out
from ocria.output.decoded import DecodedText, PageGeometry
from ocria.output.frame import Box, styled_box
from ocria.output.html_content import ContentReader, Place
from ocria.output.html_lexemes import Piece, pieces
from ocria.output.html_tree import Element, build_tree
from ocria.output.markup_style import MarkupStyle

LABELS: Mapping[str, BlockType] = {
    "text": "paragraph",
    "section-header": "heading",
    "title": "heading",
    "list-group": "list_item",
    "list-item": "list_item",
    "table": "table",
    "equation-block": "formula",
    "equation": "formula",
    "code-block": "code",
    "code": "code",
    "form": "form_field",
    "caption": "caption",
    "footnote": "footnote",
    "page-header": "header",
    "page-footer": "footer",
    "image": "figure",
    "figure": "figure",
    "picture": "figure",
    "diagram": "figure",
    "table-of-contents": "paragraph",
    "bibliography": "paragraph",
    "complex-block": "other",
    "chemical-block": "other",
}
_BLANK_LABEL = "blank-page"
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_FENCE = re.compile(r"```\w*")


def read_html(
    decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle
) -> tuple[list[Reading], bool]:
    """The blocks of a page, and whether something had to be mended."""
    text = blank_out(decoded.text, decoded.special_spans)
    root, mended = build_tree(pieces(text))
    reader = _Reader(decoded, geometry, style)
    reader.blocks(root)
    return reader.content.readings, mended or reader.mended or reader.content.mended


@dataclass
class _Reader:
    decoded: DecodedText
    geometry: PageGeometry
    style: MarkupStyle
    mended: bool = False

    def __post_init__(self) -> None:
        self.content = ContentReader(self.decoded)

    def blocks(self, parent: Element) -> None:
        """Reads the blocks below `parent`, and what lies between them."""
        loose: list[Element | Piece] = []
        for child in parent.children:
            if isinstance(child, Element) and _is_block(child):
                self._outside(loose)
                loose = []
                self._block(child)
            elif isinstance(child, Element) and _holds_blocks(child):
                self._outside(loose)
                loose = []
                self.blocks(child)
            else:
                loose.append(child)
        self._outside(loose)

    def _block(self, element: Element) -> None:
        label = element.attributes.get("data-label", "").strip().lower().replace("_", "-")
        if label == _BLANK_LABEL and not element.text().strip():
            return
        kind = LABELS.get(label)
        self.mended |= kind is None
        if _holds_blocks(element):
            # A block inside a block: the inner ones are the page's, the outer one a frame.
            self.mended = True
            self.blocks(element)
            return
        before = len(self.content.readings)
        self.content.read(element, Place(kind or "other", self._box(element)))
        self.mended |= len(self.content.readings) == before

    def _box(self, element: Element) -> Box | None:
        written = element.attributes.get("data-bbox", "")
        numbers = [float(number) for number in _NUMBER.findall(written)[:64]]
        box = styled_box(numbers, self.geometry, self.style)
        in_order = len(numbers) != 4 or (numbers[0] <= numbers[2] and numbers[1] <= numbers[3])
        self.mended |= box is None or not in_order
        return box

    def _outside(self, nodes: list[Element | Piece]) -> None:
        kept = [node for node in nodes if isinstance(node, Element) or not _is_nothing(node.value)]
        if not kept:
            return
        self.mended = True
        root = Element("", kept[0].start, kept[-1].end, children=kept)
        self.content.read(root, Place("paragraph", None))


def _is_block(element: Element) -> bool:
    return "data-label" in element.attributes or (
        element.name == "div" and "data-bbox" in element.attributes
    )


def _holds_blocks(element: Element) -> bool:
    return element.name == "div" and any(_is_block(below) for below in element.descendants())


def _is_nothing(text: str) -> bool:
    """White space, or the fence that some models put around their answer."""
    return not text.strip() or _FENCE.fullmatch(text.strip()) is not None
