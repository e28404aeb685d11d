"""Drafts a page from the text layer of its PDF.

The layer is followed by what the model writes (`layer_pointer`); what the layer has next is spelt
in the model's tokens and its markup. The layer may be wrong, hidden or of another page: the engine
verifies every token on the picture, so that costs speed alone.
"""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache
from itertools import pairwise

from ocria.models.base import Prompt
from ocria.output.frame import LAST_COORDINATE
from ocria.pipeline.block_habits import EDGES, BlockHabits
from ocria.pipeline.layer_pointer import LayerPointer
from ocria.pipeline.layer_stream import BLANK, GAP, LINE_END, LayerStream, fold, line_at
from ocria.pipeline.markup_ids import MarkupIds
from ocria.pipeline.written import Written
from ocria.tokenizer import Tokenizer

_CHARACTERS_A_TOKEN = 6
_WORD_TOKENS = 24
"""A word begun of more tokens is not spelt again together with its rest."""
_WORD = re.compile(" ?[^ ]+| +")
_UNREADABLE = frozenset(("formula", "figure"))
"""Blocks whose content is not what a layer holds."""

_Piece = str | int
"""Text, or the id of a special token."""


class TextLayerDrafter:
    """One page's text layer as proposals.

    Args:
        stream: the layer.
        tokenizer: of the model.
        markup: special tokens of its markup.
    """

    def __init__(self, stream: LayerStream, tokenizer: Tokenizer, markup: MarkupIds) -> None:
        self._stream, self._tokenizer, self._markup = stream, tokenizer, markup
        # For running text, most of what is proposed: keys with the blank that parts them, and
        # places where it ends.
        self._running = tuple(
            BLANK + shown if parted else shown
            for shown, parted in zip(stream.shown, stream.parted, strict=True)
        )
        self._block_starts = [place for place in stream.word_starts if self._opens_line(place)]
        self._begin()

    def prepare(self, prompt: Prompt) -> None:
        """Begins the page at the layer's start."""
        self._begin()

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """What the layer has next, up to the end of the block; nothing while it disagrees."""
        written = self._written
        is_silent = written.type in _UNREADABLE or written.is_inside_character
        if not self._stream.keys or is_silent or self._pointer.is_lost:
            return ()
        if not self._markup.is_empty and len(written.coordinates) < EDGES:
            if written.type is None:
                return ()
            return self._spelt(self._opened(len(written.coordinates), most), most)
        return self._spelt(self._pieces(most), most)

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Follows what was written."""
        for token in emitted:
            lexeme = self._markup.lexemes.get(token)
            if lexeme is None:
                self._follow(self._written.read(token))
                continue
            self._written.mark(token, lexeme)
            if lexeme.kind == "coordinate":
                self._learn_edge(lexeme.value)
            elif lexeme.kind != "level":
                self._pointer.begin()

    def _begin(self) -> None:
        self._pointer = LayerPointer(self._stream)
        self._written = Written(self._tokenizer)
        self._habits = BlockHabits(self._stream)

    @property
    def _line(self) -> int:
        return line_at(self._stream, self._pointer.place)

    def _learn_edge(self, value: int) -> None:
        written = self._written
        if not self._stream.keys or written.type is None or len(written.coordinates) > EDGES:
            return
        self._habits.saw_edge(self._line, len(written.coordinates) - 1, value)
        if len(written.coordinates) == 2:
            x, y = written.coordinates
            self._pointer.go_near(x / LAST_COORDINATE, y / LAST_COORDINATE)
            self._habits.saw_type(self._line, written.kind)

    def _follow(self, text: str) -> None:
        line = self._written.line
        is_beginning = bool(text) and not line.removesuffix(text).strip("*")
        is_block = self._written.type not in (None, "table")
        if is_beginning and is_block and self._stream.keys:
            self._habits.saw_mark(self._line, line)
            self._habits.saw_level(self._line, self._written.level)
        before, line_end, after = text.rpartition("\n")
        self._pointer.feed(fold(before))
        if line_end and self._written.type is None:
            # Plain Markdown: blocks begin with a line.
            self._pointer.begin()
        self._pointer.feed(fold(after))

    def _pieces(self, most: int) -> Iterator[_Piece]:
        """The layer from the pointer on, in whole words, as the model would write it."""
        stream, start = self._stream, self._pointer.place
        starts = stream.word_starts
        first = bisect_right(starts, start)
        last = bisect_left(starts, start + most * _CHARACTERS_A_TOKEN)
        stop = starts[last] if last < len(starts) else len(stream.keys)
        if start >= stop:
            return
        if not self._written.line and not self._markup.is_empty:
            yield from self._beginning(line_at(stream, start))
        if self._is_running_text:
            yield from self._running_text(start, stop)
            return
        for place, end in pairwise((start, *starts[first:last], stop)):
            if stream.parted[place] and (place > start or not self._written.needs_no_blank):
                if self._ends_block(place):
                    yield from self._opening(line_at(stream, place))
                    return
                yield from self._joint(place)
            yield "".join(stream.shown[place:end])

    @property
    def _is_running_text(self) -> bool:
        """Whether a blank parts all words of the open block."""
        written = self._written
        is_plain = self._markup.is_empty or written.line.startswith("|")
        return not is_plain and written.type not in ("table", "code")

    def _running_text(self, start: int, stop: int) -> Iterator[_Piece]:
        """Words up to the end of the block, and what opens the next one if that is before `stop`.

        The general way, word by word, costs more than all else on the host for a pass.
        """
        begins = bool(self._stream.parted[start]) and self._written.needs_no_blank
        ends = self._block_starts
        after = bisect_left(ends, start + 1 if begins else start)
        end = min(stop, ends[after]) if after < len(ends) else stop
        text = "".join(self._running[start:end])
        if text:
            yield text[len(BLANK) :] if begins else text
        if end < stop:
            yield from self._opening(line_at(self._stream, end))

    def _beginning(self, line: int) -> Iterator[_Piece]:
        """What stands before a block's first word."""
        if self._written.type == "table":
            if self._written.cell is None:
                yield self._markup.ids["ched"]
            return
        level = self._habits.level_of(line)
        is_item = self._written.type == "list_item"
        if is_item and level is not None and self._written.level is None:
            yield level
        yield self._habits.mark_of(line)

    def _ends_block(self, place: int) -> bool:
        """Whether the model would open a new block here."""
        if self._markup.is_empty or self._written.type in ("table", "code"):
            return False
        return self._opens_line(place)

    def _opens_line(self, place: int) -> bool:
        stream = self._stream
        return stream.parted[place] == LINE_END and stream.opens_block[line_at(stream, place)]

    def _opening(self, line: int) -> Iterator[_Piece]:
        """Type and corners of the block that seems to begin at a line."""
        name = self._habits.type_of(line)
        if name in self._markup.ids:
            yield self._markup.ids[name]
            yield from self._edges(line, 0)

    def _edges(self, line: int, first: int) -> Iterator[_Piece]:
        edges = self._habits.edges(line)
        for edge in range(first, EDGES):
            if not self._habits.trusts(edge):
                return
            yield self._markup.ids[str(edges[edge])]

    def _opened(self, num_edges: int, most: int) -> Iterator[_Piece]:
        """The rest of a block's corners, and its text if all of them are likely to be right."""
        if not self._stream.keys:
            return
        edges = list(self._edges(self._line, num_edges))
        yield from edges
        if len(edges) == EDGES - num_edges:
            yield from self._pieces(most)

    def _joint(self, place: int) -> Iterator[_Piece]:
        """What the model writes between two keys of one block, or of two in plain Markdown."""
        parted = self._stream.parted[place]
        if self._written.type == "table" and parted in (GAP, LINE_END):
            if parted == LINE_END:
                yield self._markup.ids["nl"]
            # Below a row of header cells come ordinary ones.
            cell = self._written.cell if parted == GAP else None
            yield self._markup.ids["fcel"] if cell is None else cell
        elif self._written.type == "code" and parted == LINE_END:
            yield "\n"
        elif self._written.line.startswith("|") and parted in (GAP, LINE_END):
            yield " | " if parted == GAP else " |\n| "
        elif self._markup.is_empty and self._opens_line(place):
            yield "\n" if self._stream.has_mark[line_at(self._stream, place)] else "\n\n"
        elif parted:
            yield BLANK

    def _spelt(self, pieces: Iterator[_Piece], most: int) -> list[int]:
        """The first ids of the pieces; the first text is spelt as the rest of the open word."""
        ids: list[int] = []
        text: list[str] = []
        for piece in pieces:
            if isinstance(piece, str):
                text.append(piece)
                continue
            if text:
                self._spell_on(ids, "".join(text), most)
                text.clear()
            ids.append(piece)
        if text:
            self._spell_on(ids, "".join(text), most)
        return ids[:most]

    def _spell_on(self, ids: list[int], text: str, most: int) -> None:
        ids += self._encoded(text, most - len(ids)) if ids else self._rest_of_word(text, most)

    def _rest_of_word(self, text: str, most: int) -> list[int]:
        begun = self._written.word_ids
        if len(begun) <= _WORD_TOKENS:
            whole = self._encoded(self._written.word + text, len(begun) + most)
            if whole[: len(begun)] == begun:
                return whole[len(begun) :]
        return self._encoded(text, most)

    def _encoded(self, text: str, most: int) -> list[int]:
        """At least the first `most` ids of a text, word by word: no token reaches over a blank."""
        ids: list[int] = []
        for match in _WORD.finditer(text):
            if len(ids) >= most:
                break
            ids += _word_ids(self._tokenizer, match[0])
        return ids


@lru_cache(maxsize=1 << 14)
def _word_ids(tokenizer: Tokenizer, word: str) -> tuple[int, ...]:
    """Ids of a word: a page's words are proposed more than once, and most recur."""
    return tuple(tokenizer.encode(word))
