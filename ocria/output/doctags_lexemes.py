"""The tags of DocTags, and a page's text cut at them.

Source: Nassar and others, "SmolDocling", 2025, and the vocabulary of granite-docling.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ocria.document import BlockType
from ocria.output.clean import clean
from ocria.output.decoded import DecodedText
from ocria.output.otsl import CellKind

BLOCKS: Mapping[str, BlockType] = {
    "text": "paragraph",
    "paragraph": "paragraph",
    "title": "heading",
    "list_item": "list_item",
    "otsl": "table",
    "document_index": "table",
    "formula": "formula",
    "code": "code",
    "picture": "figure",
    "chart": "figure",
    "caption": "caption",
    "footnote": "footnote",
    "page_header": "header",
    "page_footer": "footer",
    "checkbox_selected": "form_field",
    "checkbox_unselected": "form_field",
    "form": "form_field",
    "key_value_region": "form_field",
    "reference": "paragraph",
    "handwritten_text": "paragraph",
}
LISTS = frozenset({"ordered_list", "unordered_list"})
FRAMES = frozenset({"doctag", "inline", "group", "smiles"}) | LISTS
CELLS: Mapping[str, CellKind] = {
    **{kind: kind for kind in ("fcel", "ecel", "ched", "lcel", "ucel", "xcel")},
    "rhed": "ched",
    "srow": "fcel",
}
_TAG = re.compile(r"<(?P<close>/?)(?P<name>[a-z_]+[a-z0-9_]*|_[\w+#.\-]+_)>")
LOCATION = re.compile(r"loc_(\d{1,4})")
LEVEL = re.compile(r"section_header_level_([1-6])")
LANGUAGE = re.compile(r"_[\w+#.\-]+_")


class Lexeme(NamedTuple):
    """A tag (`name`, `close`) or text (`name` None)."""

    name: str | None
    close: bool
    text: str
    start: int
    end: int


def _is_known(name: str) -> bool:
    return (
        name in BLOCKS
        or name in FRAMES
        or name in CELLS
        or name in ("nl", "page_break")
        or any(p.fullmatch(name) for p in (LOCATION, LEVEL, LANGUAGE))
    )


def lexemes(decoded: DecodedText) -> Iterator[Lexeme]:
    """The page cut at its tags. Where the tokenizer knows tags, only its tokens are tags."""
    special = {
        (match.start(), match.end())
        for low, high in decoded.special_spans
        if 0 <= low < high
        and (match := _TAG.fullmatch(decoded.text, low, high))
        and _is_known(match["name"])
    }
    controls = {span for span in decoded.special_spans if span not in special}
    text = decoded.text
    done = 0
    for match in _TAG.finditer(text):
        known = match.span() in special if special else _is_known(match["name"])
        if not known:
            continue
        yield from _text(text, done, match.start(), controls)
        yield Lexeme(match["name"], bool(match["close"]), "", match.start(), match.end())
        done = match.end()
    yield from _text(text, done, len(text), controls)


def _text(text: str, start: int, end: int, controls: set[tuple[int, int]]) -> Iterator[Lexeme]:
    """Text between tags, without control tokens such as the end of the page."""
    body = text[start:end]
    for low, high in sorted(controls, reverse=True):
        if start <= low < high <= end:
            body = body[: low - start] + body[high - start :]
    body = clean(body)
    if body:
        yield Lexeme(None, False, body, start, end)
