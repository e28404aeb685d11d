"""A text layer as one stream of characters that can be compared with what a model writes.

Compared are keys: without blanks, ligatures apart, all quotes and dashes alike. Beside each key
stands what to write for it and how it is parted from the one before.
"""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise

from ocria.rasterize import TextLayer, TextLine

_ALIKE = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),
    }
)
_BULLETS = frozenset("•●○◦▪▫■□‣⁃∙·\uf0b7\uf0a7\uf076\uf0d8\uf02d")
_NOTHING = frozenset(("Cc", "Cf", "Cn", "Co", "Cs", "Zs", "Zl", "Zp"))
"""Categories of characters that are nothing on paper, or nothing that could be read."""
_MARK = re.compile(r"(?:-|\d{1,3}[.)]|\(\w{1,3}\)|[A-Za-z][.)])\s")
_SOFT_HYPHEN = "\u00ad"
_SENTENCE_ENDS = tuple(".!?:;")

JOINED, BLANK, GAP, LINE_END = "", " ", "\t", "\n"

Box = tuple[float, float, float, float]


@dataclass(frozen=True, kw_only=True)
class LayerStream:
    """All visible characters of a layer, in its order.

    Attributes:
        keys: one character each, for comparison.
        shown: what to write for each key; "" where the one before stands for it too.
        parted: what lies before each key: nothing, a blank, a wide gap or a line end.
        line_starts: place of the first key of each line, ascending.
        boxes: the lines' boxes, in fractions of the page.
        fonts: of the lines.
        opens_block: whether a line seems to begin a new block.
        has_mark: whether a line begins with a list mark.
    """

    keys: str
    shown: tuple[str, ...]
    parted: tuple[str, ...]
    line_starts: tuple[int, ...]
    boxes: tuple[Box, ...]
    fonts: tuple[str, ...]
    opens_block: tuple[bool, ...]
    has_mark: tuple[bool, ...]

    @cached_property
    def word_starts(self) -> tuple[int, ...]:
        """Places of keys that something parts from the one before, ascending."""
        return tuple(place for place, gap in enumerate(self.parted) if gap)


@lru_cache(maxsize=1 << 14)
def fold(text: str) -> str:
    """The keys of a text."""
    return "".join(map(_folded, text))


def layer_stream(layer: TextLayer) -> LayerStream:
    """The stream of a page's text layer."""
    lines = [line for line in map(_mended, layer.lines) if fold(line.text)]
    keys: list[str] = []
    shown: list[str] = []
    parted: list[str] = []
    starts: list[int] = []
    joins_next = False
    for index, line in enumerate(lines):
        starts.append(len(keys))
        gap = JOINED if joins_next else LINE_END
        text = line.text
        joins_next = _breaks_word(text, lines[index + 1].text if index + 1 < len(lines) else "")
        text = text.rstrip(_SOFT_HYPHEN)[:-1] if joins_next and "-" in text[-1:] else text
        for word, before in _words(text, gap):
            for place, (key, written) in enumerate(_keyed(word)):
                keys.append(key)
                shown.append(written)
                parted.append(JOINED if place else before)
    return LayerStream(
        keys="".join(keys),
        shown=tuple(shown),
        parted=tuple(parted),
        line_starts=tuple(starts),
        boxes=tuple(line.box for line in lines),
        fonts=tuple(line.font for line in lines),
        opens_block=(True, *(_opens_block(*pair) for pair in pairwise(lines)))[: len(lines)],
        has_mark=tuple(_MARK.match(line.text) is not None for line in lines),
    )


def _mended(line: TextLine) -> TextLine:
    """The line composed, a bullet at its start being the mark that models write."""
    text = unicodedata.normalize("NFC", line.text).strip()
    if text[:1] in _BULLETS and text[:1]:
        text = "- " + text[1:].lstrip()
    return line._replace(text=text)


@lru_cache(maxsize=1 << 14)
def _folded(character: str) -> str:
    """Keys of one character; none for one that is nothing on paper."""
    if character.isspace() or unicodedata.category(character) in _NOTHING:
        return ""
    parts = unicodedata.normalize("NFKC", character.translate(_ALIKE))
    return "".join(c for c in parts if not c.isspace() and not unicodedata.combining(c))


def _keyed(text: str) -> Iterator[tuple[str, str]]:
    """Keys of a text, each with what to write for it."""
    for character in text:
        keys = _folded(character)
        is_ligature = len(keys) > 1 and keys.isalpha()
        for place, key in enumerate(keys):
            yield key, key if is_ligature else character if place == 0 else ""


def _words(text: str, gap: str) -> Iterator[tuple[str, str]]:
    """Words of a line, each with what parts it from the one before; the first with `gap`."""
    for match in re.finditer(r"([ \t]*)([^ \t]+)", text):
        before = gap if match.start() == 0 else GAP if "\t" in match[1] else BLANK
        yield match[2], before


def _breaks_word(text: str, following: str) -> bool:
    """Whether the line ends inside a word that the next one goes on with."""
    if text.endswith(_SOFT_HYPHEN):
        return True
    return len(text) > 1 and text[-1] in "-‐" and text[-2].isalpha() and following[:1].islower()


def _opens_block(above: TextLine, line: TextLine) -> bool:
    """A guess from fonts, space, indents and lengths; a wrong one costs a rejected token."""
    if line.font != above.font:
        return True
    height = max(1e-4, min(above.box[3] - above.box[1], line.box[3] - line.box[1]))
    if not -0.5 * height < line.box[1] - above.box[3] < 0.9 * height:
        return True
    if _MARK.match(line.text):
        return True
    is_ended = above.text.endswith(_SENTENCE_ENDS)
    is_short = above.box[2] < line.box[2] - 0.04
    is_indented = line.box[0] > above.box[0] + 0.012
    return is_ended and (is_short or is_indented)


def block_box(stream: LayerStream, line: int) -> Box:
    """The box around the block that seems to begin at a line."""
    end = line + 1
    while end < len(stream.boxes) and not stream.opens_block[end]:
        end += 1
    left, top, right, bottom = zip(*stream.boxes[line:end], strict=True)
    return min(left), min(top), max(right), max(bottom)


def line_at(stream: LayerStream, place: int) -> int:
    """Index of the line that holds a place; the last line for a place behind the end."""
    return max(0, bisect_right(stream.line_starts, place) - 1)
