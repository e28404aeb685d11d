"""How the model has opened blocks on this page: what tells how it will open the next ones."""

from ocria.output.frame import LAST_COORDINATE
from ocria.pipeline.layer_stream import LayerStream, block_box

_RATE = 0.2
_FIRST = 0.5
_TRUST = 0.35
"""A coordinate is proposed while this share of the guesses before it was right: rows are cheap,
but all that follows a wrong one is lost."""
EDGES = 4
_INDENT = 0.02
"""Indents closer than this, in widths of the page, count as one."""


class BlockHabits:
    """Types and first marks by the font of a block's first line, and how exact boxes are.

    The model's boxes are its own; how often they equal the layer's differs from model to model,
    so it is counted, for each edge.
    """

    def __init__(self, stream: LayerStream) -> None:
        self._stream = stream
        self._types: dict[str, str] = {}
        self._marks: dict[str, str] = {}
        self._levels: dict[int, int | None] = {}
        self._exact = [_FIRST] * EDGES
        self._edges: dict[int, tuple[int, ...]] = {}

    def type_of(self, line: int) -> str:
        """The type that a block beginning at a line is likely to get."""
        if self._stream.has_mark[line]:
            return "list_item"
        return self._types.get(self._stream.fonts[line], "paragraph")

    def mark_of(self, line: int) -> str:
        """The emphasis that its text is likely to begin with."""
        return self._marks.get(self._stream.fonts[line], "")

    def level_of(self, line: int) -> int | None:
        """Id of the level that a list item of this indent is likely to get; None for the first."""
        return self._levels.get(self._indent(line))

    def edges(self, line: int) -> tuple[int, ...]:
        """Its box in the model's coordinates."""
        if line not in self._edges:
            self._edges[line] = tuple(
                round(min(max(edge, 0.0), 1.0) * LAST_COORDINATE)
                for edge in block_box(self._stream, line)
            )
        return self._edges[line]

    def trusts(self, edge: int) -> bool:
        """Whether guesses of this edge are worth a row."""
        return self._exact[edge] >= _TRUST

    def saw_type(self, line: int, name: str) -> None:
        """The model gave the block at a line this type."""
        if not self._stream.has_mark[line]:
            self._types[self._stream.fonts[line]] = name

    def saw_edge(self, line: int, edge: int, value: int) -> None:
        """The model wrote this value for an edge of the block at a line."""
        hit = self.edges(line)[edge] == value
        self._exact[edge] += _RATE * (hit - self._exact[edge])

    def saw_level(self, line: int, token: int | None) -> None:
        """The model gave the list item at a line this level."""
        self._levels[self._indent(line)] = token

    def _indent(self, line: int) -> int:
        return round(self._stream.boxes[line][0] / _INDENT)

    def saw_mark(self, line: int, text: str) -> None:
        """The model began the block's text so."""
        stripped = text.lstrip("*")
        self._marks[self._stream.fonts[line]] = text[: len(text) - len(stripped)]
