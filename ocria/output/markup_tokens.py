"""The special tokens of the model's markup (version 1), and a page's text cut at them."""

import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

from ocria.document import BlockType, Rotation
from ocria.output.clean import clean
from ocria.output.decoded import DecodedText
from ocria.output.frame import LAST_COORDINATE
from ocria.output.otsl import CellKind

LexemeKind = Literal["turn", "type", "level", "cell", "row_end", "coordinate", "unknown", "text"]

_HEADING_LEVELS = {f"h{level}": level for level in range(1, 7)}
_TYPES: dict[str, BlockType] = {
    "paragraph": "paragraph",
    "list_item": "list_item",
    "table": "table",
    "formula": "formula",
    "code": "code",
    "figure": "figure",
    "caption": "caption",
    "footnote": "footnote",
    "header": "header",
    "footer": "footer",
    "page_number": "page_number",
    "form_field": "form_field",
    "other": "other",
}
_TURNS: dict[str, Rotation] = {"rot90": 90, "rot180": 180, "rot270": 270}
_LEVELS = {f"level{level}": level for level in range(2, 7)}
_CELLS: tuple[CellKind, ...] = ("fcel", "ecel", "ched", "lcel", "ucel", "xcel")
_NAME = re.compile(r"<\|(\w{1,40})\|>")
_COORDINATE = re.compile(r"[0-9]{1,3}")


class Lexeme(NamedTuple):
    """A special token, or the text between two of them.

    `name` is the cell kind, the block type or the text; `value` a level, coordinate or turn (the
    level of a heading for its type). [start, end) are characters of the decoded text.
    """

    kind: LexemeKind
    start: int
    end: int
    name: str = ""
    value: int = 0


def holds_markup(decoded: DecodedText) -> bool:
    """Whether a special token of the markup occurs."""
    return any(
        _special(decoded, start, end).kind != "unknown" for start, end in _ordered_spans(decoded)
    )


def lexemes(decoded: DecodedText) -> Iterator[Lexeme]:
    """The page's text cut at its special tokens. Control tokens such as `<eos>` are left out."""
    done = 0
    for start, end in _ordered_spans(decoded):
        yield from _text(decoded, done, start)
        if _NAME.fullmatch(decoded.text, start, end):
            yield _special(decoded, start, end)
        done = end
    yield from _text(decoded, done, len(decoded.text))


def _ordered_spans(decoded: DecodedText) -> Iterator[tuple[int, int]]:
    done = 0
    for start, end in sorted(decoded.special_spans):
        if done <= start < end <= len(decoded.text):
            yield start, end
            done = end


def _text(decoded: DecodedText, start: int, end: int) -> Iterator[Lexeme]:
    text = clean(decoded.text[start:end])
    if text:
        yield Lexeme("text", start, end, text)


def _special(decoded: DecodedText, start: int, end: int) -> Lexeme:
    match = _NAME.fullmatch(decoded.text, start, end)
    name = match[1] if match else ""
    if name in _HEADING_LEVELS:
        return Lexeme("type", start, end, "heading", _HEADING_LEVELS[name])
    if name in _TYPES:
        return Lexeme("type", start, end, name)
    if name in _TURNS:
        return Lexeme("turn", start, end, name, _TURNS[name])
    if name in _LEVELS:
        return Lexeme("level", start, end, name, _LEVELS[name])
    if name in _CELLS:
        return Lexeme("cell", start, end, name)
    if name == "nl":
        return Lexeme("row_end", start, end)
    if _COORDINATE.fullmatch(name) and int(name) <= LAST_COORDINATE:
        return Lexeme("coordinate", start, end, name, int(name))
    return Lexeme("unknown", start, end, name)
