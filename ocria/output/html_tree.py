"""A tree of elements from HTML pieces, mended where tags do not pair."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from ocria.output.html_lexemes import VOID, Piece

MAX_DEPTH = 100
"""Elements deeper than this are read as part of the one above: no page needs them, and trees are
walked by recursion."""

# An opening tag of the left ends open elements of the right, up to the nearest of the third.
_TABLE_PARTS = frozenset({"thead", "tbody", "tfoot"})
_IMPLIED: Mapping[str, tuple[frozenset[str], frozenset[str]]] = {
    "li": (frozenset({"li", "p"}), frozenset({"ul", "ol"})),
    "p": (frozenset({"p"}), frozenset({"div", "li", "td", "th", "blockquote"})),
    "td": (frozenset({"td", "th", "p"}), frozenset({"tr", "table"})),
    "th": (frozenset({"td", "th", "p"}), frozenset({"tr", "table"})),
    "tr": (frozenset({"tr", "td", "th", "p"}), frozenset({"table"})),
    **dict.fromkeys(_TABLE_PARTS, (_TABLE_PARTS | {"tr", "td", "th", "p"}, frozenset({"table"}))),
}
_MAY_STAY_OPEN = frozenset({"li", "p", "td", "th", "tr", *_TABLE_PARTS})


@dataclass(slots=True)
class Element:
    """One element. [start, end) are characters of the decoded text, tags included."""

    name: str
    start: int
    end: int
    attributes: Mapping[str, str] = field(default_factory=dict)
    children: "list[Element | Piece]" = field(default_factory=list)

    def elements(self) -> "Iterator[Element]":
        """Child elements."""
        return (child for child in self.children if isinstance(child, Element))

    def descendants(self) -> "Iterator[Element]":
        """All elements below, in document order."""
        for child in self.elements():
            yield child
            yield from child.descendants()

    def text(self) -> str:
        """All text below, as it stands."""
        return "".join(
            child.value if isinstance(child, Piece) else child.text() for child in self.children
        )


def build_tree(parts: Iterable[Piece]) -> tuple[Element, bool]:
    """The root (`name` empty) with all pieces below it, and whether something was mended.

    Mended are: a closing tag without its opening one (dropped), elements still open when another
    closes or the text ends (closed there; list items, cells and paragraphs may lack their ends),
    a tag whose quotes do not pair, a tag cut off by the end.
    """
    builder = _Builder()
    for piece in parts:
        builder.take(piece)
    return builder.finish()


class _Builder:
    def __init__(self) -> None:
        self._root = Element("", 0, 0)
        self._open = [self._root]
        self._mended = False

    def take(self, piece: Piece) -> None:
        """Puts one piece in its place."""
        self._mended |= piece.loose or piece.kind == "cut"
        self._root.end = piece.end
        if piece.kind == "text":
            self._open[-1].children.append(piece)
        elif piece.kind == "open":
            self._begin(piece)
        elif piece.kind == "close":
            self._end(piece)

    def finish(self) -> tuple[Element, bool]:
        """Closes what is open."""
        self._mended |= len(self._open) > 1
        self._close_to(1, self._root.end)
        return self._root, self._mended

    def _begin(self, piece: Piece) -> None:
        if piece.value in _IMPLIED:
            self._close_implied(piece)
        element = Element(piece.value, piece.start, piece.end, piece.attributes)
        self._open[-1].children.append(element)
        if piece.value in VOID:
            return
        if len(self._open) < MAX_DEPTH:
            self._open.append(element)
        else:
            self._mended = True

    def _close_implied(self, piece: Piece) -> None:
        ends, stops = _IMPLIED[piece.value]
        place = len(self._open)
        for index in range(len(self._open) - 1, 0, -1):
            if self._open[index].name in stops:
                break
            if self._open[index].name in ends:
                place = index
        self._mended |= any(e.name not in _MAY_STAY_OPEN for e in self._open[place:])
        self._close_to(place, piece.start)

    def _end(self, piece: Piece) -> None:
        place = next(
            (i for i in range(len(self._open) - 1, 0, -1) if self._open[i].name == piece.value), 0
        )
        if not place:
            # `</br>` is a line break to every browser; a lone `</p>` is nothing.
            self._mended = True
            return
        self._mended |= any(e.name not in _MAY_STAY_OPEN for e in self._open[place + 1 :])
        self._close_to(place, piece.end)

    def _close_to(self, place: int, end: int) -> None:
        for element in self._open[place:]:
            element.end = end
        del self._open[place:]
