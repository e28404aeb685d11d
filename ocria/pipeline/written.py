"""What a model has written so far, as far as its continuation depends on it."""

from ocria.output.markup_tokens import Lexeme
from ocria.tokenizer import Tokenizer

_EMPHASIS = "*_`$"
_MOST_HELD = 4
"""Bytes of the longest UTF-8 character."""


class Written:
    """The block, line and word that the next token goes on with.

    Attributes:
        type: type of the open block; None before the first, and in plain Markdown.
        kind: the token's own name for it, such as `h2` for a heading.
        coordinates: those of the open block so far.
        level: id of the open list item's level; None without one.
        cell: id of the last table cell's token; None before the first.
        word: text since the last blank or special token, that blank included.
        word_ids: the ids that spell it.
        line: text since the last line end or special token.
    """

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._held: list[int] = []
        self.type: str | None = None
        self.kind = ""
        self.coordinates: list[int] = []
        self.level: int | None = None
        self.cell: int | None = None
        self.word, self.line = "", ""
        self.word_ids: list[int] = []

    @property
    def is_inside_character(self) -> bool:
        """Whether the last id ends in the middle of a character."""
        return bool(self._held)

    @property
    def needs_no_blank(self) -> bool:
        """Whether the next word follows without one: at a start, or after a blank."""
        plain = self.line.rstrip(_EMPHASIS)
        return not plain or plain[-1].isspace()

    def read(self, token: int) -> str:
        """Goes on by an ordinary id; the text that is complete with it."""
        whole = None if self._held else self._tokenizer.text_of(token)
        self._held.append(token)
        text = self._tokenizer.spell(self._held).text if whole is None else whole
        if text.endswith("\ufffd") and len(self._held) < _MOST_HELD:
            return ""
        if text[:1].isspace():
            self.word, self.word_ids = "", []
        self.word += text
        self.word_ids += self._held
        self.line = (self.line + text).rpartition("\n")[2]
        self._held = []
        return text

    def mark(self, token: int, lexeme: Lexeme) -> None:
        """Goes on by a special id."""
        self._held, self.word, self.word_ids, self.line = [], "", [], ""
        if lexeme.kind == "type":
            self.type, self.coordinates = lexeme.name, []
            self.level = self.cell = None
            is_heading = lexeme.name == "heading"
            self.kind = f"h{lexeme.value}" if is_heading else lexeme.name
        elif lexeme.kind == "coordinate":
            self.coordinates.append(lexeme.value)
        elif lexeme.kind == "level":
            self.level = token
        elif lexeme.kind == "cell":
            self.cell = token
