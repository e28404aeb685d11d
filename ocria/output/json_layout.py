"""Blocks from a JSON list of layout elements, as dots.ocr, MinerU and Infinity-Parser write it.

Each element has a box, a category and its text: a table as HTML, a formula as TeX, the rest as
Markdown. A list that is cut off or broken is read element by element.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any, NamedTuple

from ocria.document import BlockType
from ocria.output.blocks import Reading
from ocria.output.clean import blank_out, clean
from ocria.output.decoded import DecodedText, PageGeometry
from ocria.output.frame import Box, styled_box
from ocria.output.markdown_page import markdown_readings, read_markdown_page, tex_body
from ocria.output.markup_style import MarkupStyle

CATEGORIES: Mapping[str, BlockType] = {
    **dict.fromkeys(
        ("text", "paragraph", "plain_text", "reference", "ref_text", "aside_text", "abstract"),
        "paragraph",
    ),
    **dict.fromkeys(("title", "section_header", "doc_title", "paragraph_title"), "heading"),
    **dict.fromkeys(("list_item", "list"), "list_item"),
    "table": "table",
    **dict.fromkeys(("formula", "equation", "interline_equation", "equation_block"), "formula"),
    **dict.fromkeys(("code", "algorithm"), "code"),
    **dict.fromkeys(("picture", "figure", "image", "chart", "seal"), "figure"),
    **dict.fromkeys(
        ("caption", "figure_caption", "table_caption", "formula_caption", "image_caption"),
        "caption",
    ),
    **dict.fromkeys(
        ("footnote", "figure_footnote", "table_footnote", "page_footnote", "image_footnote"),
        "footnote",
    ),
    **dict.fromkeys(("header", "page_header"), "header"),
    **dict.fromkeys(("footer", "page_footer"), "footer"),
    **dict.fromkeys(("page_number", "number"), "page_number"),
    "form": "form_field",
    "other": "other",
}
_BOX_KEYS = ("bbox", "bbox_2d", "box", "block_bbox")
_CATEGORY_KEYS = ("category", "type", "label", "block_label")
_TEXT_KEYS = ("text", "content", "block_content", "html", "latex")
_ITEM = re.compile(r"\{\s*\"(?:" + "|".join((*_BOX_KEYS, *_CATEGORY_KEYS, *_TEXT_KEYS)) + r")\"")
_NUMBER = re.compile(r"-?\d+(?:\.\d+)?")
_AROUND = re.compile(r"\s*(?:```\w*\s*)?[\[\]{},\s]*(?:\"\w+\"\s*:\s*\[?\s*)?(?:```)?\s*")
_LEVEL = 1
_PATIENCE = 50
"""Damaged elements that are tried as far as the page goes: it keeps hostile pages linear."""
_AFTER_VALUE = re.compile(r"\s*(?:,\s*\"|\}|\Z)")
_TYPED = frozenset(
    {"header", "footer", "page_number", "caption", "footnote", "form_field", "other"}
)


class _Item(NamedTuple):
    """One element; [start, end) are characters. `whole`: its JSON was not damaged."""

    fields: Mapping[str, Any]
    start: int
    end: int
    whole: bool


def read_json_layout(
    decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle
) -> tuple[list[Reading], bool]:
    """The blocks of a page, and whether something had to be mended."""
    text = blank_out(decoded.text, decoded.special_spans)
    items = list(_items(text))
    if not items:
        nothing = _AROUND.fullmatch(text) is not None
        found, _ = ([], False) if nothing else read_markdown_page(decoded)
        # An empty list is an empty page; anything else was no list at all.
        return found, not (nothing and text.strip().strip("`json \n") in ("[]", "{}"))
    reader = _Reader(decoded, geometry, style)
    reader.mended = not _is_list_around(text, items)
    for item in items:
        reader.take(item)
    return reader.readings, reader.mended


@dataclass
class _Reader:
    decoded: DecodedText
    geometry: PageGeometry
    style: MarkupStyle
    readings: list[Reading] = field(default_factory=list)
    mended: bool = False

    def take(self, item: _Item) -> None:
        """Adds the blocks of one element."""
        self.mended |= not item.whole
        category = _first(item.fields, _CATEGORY_KEYS)
        name = category.strip().lower() if isinstance(category, str) else ""
        kind = CATEGORIES.get(re.sub(r"[\s-]+", "_", name))
        self.mended |= kind is None
        text = _first(item.fields, _TEXT_KEYS)
        self.mended |= text is not None and not isinstance(text, str | list)
        box = self._box(_first(item.fields, _BOX_KEYS))
        confidence = self.decoded.confidence(item.start, item.end)
        found = self._readings(kind or "other", clean(_joined(text)))
        self.mended |= not any(not reading.is_empty for reading in found)
        self.readings += [
            replace(reading, bbox=box, confidence=confidence)
            for reading in found
            if not reading.is_empty
        ]

    def _box(self, written: Any) -> Box | None:
        if isinstance(written, str):
            written = [float(number) for number in _NUMBER.findall(written)[:64]]
        numbers = _flat(written)
        box = styled_box(numbers, self.geometry, self.style)
        in_order = len(numbers) != 4 or (numbers[0] <= numbers[2] and numbers[1] <= numbers[3])
        self.mended |= box is None or not in_order
        return box

    def _readings(self, kind: BlockType, text: str) -> list[Reading]:
        if kind == "figure":
            line = " ".join(text.split())
            return [Reading(type="figure", text=f"*{line}*" if line and "*" not in line else line)]
        if kind == "formula":
            return [Reading(type="formula", text=tex_body(text))]
        if kind == "code":
            return [Reading(type="code", text=_unfenced(text))]
        found, damaged = markdown_readings(text)
        self.mended |= damaged
        if kind == "table":
            self.mended |= not any(reading.grid is not None for reading in found)
            return found
        return [_typed(reading, kind) for reading in found]


def _typed(reading: Reading, kind: BlockType) -> Reading:
    """A paragraph of an element takes the element's type; tables and formulas keep their own."""
    if kind in _TYPED and reading.type in ("paragraph", "heading", "list_item"):
        return replace(reading, type=kind, level=None)
    if reading.type != "paragraph":
        return reading
    if kind == "heading":
        return replace(reading, type="heading", level=_LEVEL)
    if kind == "list_item":
        return replace(reading, type="list_item", level=1)
    return replace(reading, type=kind)


def _items(text: str) -> Iterator[_Item]:
    """Elements by where they begin; a damaged one ends where the next begins."""
    starts = [*(match.start() for match in _ITEM.finditer(text)), len(text)]
    place, patience = 0, _PATIENCE
    for start, following in pairwise(starts):
        if start < place:
            # Inside the element before: its own lines or words.
            continue
        fields = _decoded(text[start:following])
        if fields is None and patience:
            # What looks like the next element may lie inside this one.
            patience -= 1
            fields = _decoded(text[start:])
        if fields is not None:
            place = start + fields[1]
            yield _Item(fields[0], start, place, True)
        elif salvaged := _salvaged(text[start:following]):
            yield _Item(salvaged, start, following, False)


def _decoded(text: str) -> tuple[dict[str, Any], int] | None:
    """The object that `text` begins with, and its length."""
    try:
        found: tuple[dict[str, Any], int] = json.JSONDecoder(strict=False).raw_decode(text)
    except (ValueError, RecursionError):
        return None
    return found


def _salvaged(text: str) -> dict[str, Any]:
    """What can be read of a damaged element: each key whose value is whole, and a cut-off text."""
    fields: dict[str, Any] = {}
    for key in (*_BOX_KEYS, *_CATEGORY_KEYS, *_TEXT_KEYS):
        match = re.search(rf'"{key}"\s*:\s*', text)
        if match is None:
            continue
        rest = text[match.end() :]
        try:
            value, end = json.JSONDecoder(strict=False).raw_decode(rest)
            is_whole = _AFTER_VALUE.match(rest, end) is not None
        except (ValueError, RecursionError):
            is_whole = False
        if is_whole:
            fields[key] = value
        elif rest.startswith('"'):
            fields[key] = _unquoted(rest[1:])
    return fields


def _unquoted(text: str) -> str:
    """A string without its end, escapes resolved as far as they are whole."""
    body = re.sub(r"\\(?:u[0-9a-fA-F]{0,3})?\Z", "", text.rstrip().rstrip("]},").rstrip())
    body = body.removesuffix('"')
    try:
        return str(json.loads(f'"{body}"', strict=False))
    except ValueError:
        # A quote that was not escaped: nothing can be told apart, so nothing is dropped.
        return body.replace('\\"', '"').replace("\\n", "\n")


def _first(fields: Mapping[str, Any], keys: Sequence[str]) -> Any:
    return next((fields[key] for key in keys if fields.get(key) is not None), None)


def _joined(text: Any) -> str:
    """Text of an element: a string, or a list of lines."""
    if isinstance(text, list):
        return "\n".join(line for line in text if isinstance(line, str))
    return text if isinstance(text, str) else ""


def _flat(written: Any) -> list[float]:
    """Numbers of a box, or of a polygon of pairs; empty for anything else."""
    if not isinstance(written, list) or len(written) > 64:
        return []
    values = [v for part in written for v in (part if isinstance(part, list) else [part])]
    if any(isinstance(v, bool) or not isinstance(v, int | float) for v in values):
        return []
    try:
        return [float(value) for value in values]
    except OverflowError:
        return []


def _unfenced(text: str) -> str:
    match = re.fullmatch(r"\s*```[\w+#.-]*\n(.*?)\n?```\s*", text, re.S)
    return match[1] if match else text


def _is_list_around(text: str, items: Sequence[_Item]) -> bool:
    """Whether nothing but the list's own signs stands around its elements, and it is closed."""
    edges = [0, *(edge for item in items for edge in (item.start, item.end)), len(text)]
    between = [text[low:high] for low, high in zip(edges[::2], edges[1::2], strict=True)]
    opened = "[" in between[0]
    closed = "]" in between[-1] or not opened
    return closed and all(_AROUND.fullmatch(gap) for gap in between)
