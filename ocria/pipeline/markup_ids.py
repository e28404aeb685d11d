"""The special tokens of a model's markup, by id and by name."""

from collections.abc import Mapping
from typing import NamedTuple

from ocria.output import DecodedText
from ocria.output.frame import LAST_COORDINATE
from ocria.output.markup_tokens import Lexeme, lexemes
from ocria.tokenizer import Tokenizer


class MarkupIds(NamedTuple):
    """What a drafter must know of the markup; empty for a model that writes plain Markdown.

    Attributes:
        lexemes: what each special id means.
        ids: special ids by their name, such as `paragraph` or `17`.
    """

    lexemes: Mapping[int, Lexeme]
    ids: Mapping[str, int]

    @property
    def is_empty(self) -> bool:
        return not self.ids


_NEEDED = {"paragraph", "list_item", "fcel", "ched", "nl", *map(str, range(LAST_COORDINATE + 1))}


def markup_ids(tokenizer: Tokenizer) -> MarkupIds:
    """Finds the markup in a tokenizer's special tokens; a part of it counts as none."""
    found: dict[int, Lexeme] = {}
    names: dict[str, int] = {}
    for text, index in tokenizer.special_ids.items():
        decoded = DecodedText(text=text, special_spans=((0, len(text)),))
        for lexeme in lexemes(decoded):
            if lexeme.kind != "unknown":
                found[index] = lexeme
                names[text.removeprefix("<|").removesuffix("|>")] = index
    return MarkupIds(found, names) if names.keys() >= _NEEDED else MarkupIds({}, {})
