"""Finds text that a model wrote a second time under another box, where the page prints it once.

Forms in two copies and rows alike do repeat themselves, so text alone decides nothing: the picture
does. A copy is a repeat if its box covers the one already written, if hardly any ink is its own, or
if the two prints do not look alike where lines of one width would. Thresholds were set on
self-made pages only (docs/log.md).
"""

import math
from collections import Counter
from collections.abc import Iterator, Sequence, Set
from dataclasses import replace
from functools import cached_property
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Block, BlockType, Page
from ocria.vision import PagePrint

Box = tuple[float, float, float, float]

LEAST_CHARACTERS = 40
"""Letters and digits of blocks in a row that are written again; fewer are alike by accident."""
_SHORTEST = 8
_GRAM = 5
_LIKE, _EQUAL = 0.6, 0.8
"""Shares of 5-grams in common; with every twentieth letter misread it is 0.77. Paragraphs of a
statute may well be like, and then look other than each other."""
_MOST_HOLDERS = 8
"""Blocks remembered for a 5-gram, the latest: cost stays linear on pages of equal rows."""
_COVERED, _COVERED_PART = 0.7, 0.85
"""Of the smaller box, for equal texts and for a part of one; boxes of long lines aslant overlap by
up to 0.71."""
_EMPTY, _EMPTY_OF_OTHER_TYPE = 0.25, 0.08
"""Ink a character of a copy, beside that of the other and of the page. A bold heading has six
times that of a paragraph."""
_UNLIKE, _ALIKE = 0.3, 0.45
"""Likeness: of two different texts 90 % lie below 0.34, of two prints of one text 5 %."""
_ONE_WIDTH = 0.85
"""Narrow over wide box; beyond it lines break elsewhere."""
_OTHER_AMOUNT, _LEAST_COMPARED = 0.85, 80
"""Less over more ink a character, and letters and digits from which on it tells one text from
another: two prints of one text, broken otherwise, lie above 0.95."""
_PALEST, _LEAST_INK = 4.0, 8.0
"""Pixels a character from which on nothing beside it means something, and amounts do."""
_MOST_COMPARED = 32
"""Pairs of prints that are compared on a page, a twentieth of a second each."""


class _Text(NamedTuple):
    """A block that can be repeated.

    Attributes:
        place: its index among the page's blocks.
        length: in letters and digits.
        grams: these in overlapping fives.
        box: in fractions of the page.
    """

    place: int
    type: BlockType
    length: int
    grams: frozenset[str]
    box: Box


class _Pair(NamedTuple):
    """Two blocks of like text.

    Attributes:
        contained: share of the smaller one's 5-grams that the other one has.
        equal: the same for the larger one.
    """

    earlier: _Text
    later: _Text
    contained: float
    equal: float

    @property
    def is_whole(self) -> bool:
        """Whether neither says much more than the other."""
        return self.equal >= _LIKE


def find_repeats(page: Page, rgb: NDArray[np.uint8]) -> frozenset[int]:
    """Indices of the page's blocks that repeat others without evidence in the picture.

    Args:
        page: as it was read.
        rgb: uint8 [H, W, 3], the picture that it was read from, upright as the boxes are.
    """
    texts = list(_texts(page))
    pairs = _long_enough(list(_pairs(texts)))
    return _Judge(page, texts, pairs, rgb).repeats() if pairs else frozenset()


def without_repeats(page: Page, repeats: frozenset[int]) -> Page:
    """The page without these blocks, `repaired` if it was well before."""
    if not repeats:
        return page
    kept = [block for index, block in enumerate(page.blocks) if index not in repeats]
    return replace(
        page,
        status="repaired" if page.status == "ok" else page.status,
        blocks=tuple(
            replace(block, id=f"p{page.number}-b{place}") for place, block in enumerate(kept, 1)
        ),
    )


def text_share(page: Page, blocks: Set[int]) -> float:
    """Share of the page's characters that stand in these blocks."""
    total = sum(len(block.text) for block in page.blocks)
    return sum(len(page.blocks[index].text) for index in blocks) / total if total else 0.0


def _texts(page: Page) -> Iterator[_Text]:
    if page.width_pt <= 0 or page.height_pt <= 0:
        return
    for index, block in enumerate(page.blocks):
        bare = "".join(filter(str.isalnum, block.text.casefold()))
        if block.bbox is None or block.type == "figure" or len(bare) < _SHORTEST:
            continue
        grams = frozenset(bare[place : place + _GRAM] for place in range(len(bare) - _GRAM + 1))
        yield _Text(index, block.type, len(bare), grams, _fractions(block, page, block.bbox))


def _fractions(block: Block, page: Page, bbox: Box) -> Box:
    x0, y0, x1, y1 = bbox
    return x0 / page.width_pt, y0 / page.height_pt, x1 / page.width_pt, y1 / page.height_pt


def _pairs(texts: Sequence[_Text]) -> Iterator[_Pair]:
    """Blocks with text in common, the later ascending, the earlier from the nearest back."""
    holders: dict[str, list[int]] = {}
    for place, later in enumerate(texts):
        shared: Counter[int] = Counter()
        for gram in later.grams:
            known = holders.setdefault(gram, [])
            shared.update(known)
            known.append(place)
            del known[:-_MOST_HOLDERS]
        for other, count in sorted(shared.items(), reverse=True):
            sizes = len(texts[other].grams), len(later.grams)
            contained, equal = count / min(sizes), count / max(sizes)
            if contained >= _EQUAL or equal >= _LIKE:
                yield _Pair(texts[other], later, contained, equal)


def _long_enough(pairs: list[_Pair]) -> list[_Pair]:
    """Pairs that are long, alone or with those beside them in both runs of blocks."""
    whole = {(pair.earlier.place, pair.later.place): pair for pair in pairs if pair.is_whole}

    def run_length(pair: _Pair) -> int:
        length = min(pair.earlier.length, pair.later.length)
        if pair.is_whole:
            for step in (-1, 1):
                i, j = pair.earlier.place + step, pair.later.place + step
                while (beside := whole.get((i, j))) and length < LEAST_CHARACTERS:
                    length += min(beside.earlier.length, beside.later.length)
                    i, j = i + step, j + step
        return length

    return [pair for pair in pairs if run_length(pair) >= LEAST_CHARACTERS]


class _Judge:
    """Holds pairs of like text against the picture."""

    def __init__(
        self, page: Page, texts: list[_Text], pairs: list[_Pair], rgb: NDArray[np.uint8]
    ) -> None:
        self._pairs = pairs
        self._texts = texts
        self._print = PagePrint(rgb)
        self._alike: dict[int, set[int]] = {}
        for pair in pairs:
            self._alike.setdefault(pair.earlier.place, set()).add(pair.later.place)
            self._alike.setdefault(pair.later.place, set()).add(pair.earlier.place)
        self._inks: dict[int, float] = {}
        self._num_compared = 0

    def repeats(self) -> frozenset[int]:
        """Indices of the blocks to do without; never both of a pair."""
        gone: dict[int, _Pair] = {}
        unlike: list[_Pair] = []
        for pair in self._pairs:
            if pair.earlier.place in gone or pair.later.place in gone:
                continue
            if _covers(pair) or self._lacks_ink(pair):
                gone[self._worse(pair).place] = pair
            elif self._is_unlike(pair):
                unlike.append(pair)
        self._add_unlike(unlike, gone)
        return frozenset(gone)

    def _add_unlike(self, unlike: list[_Pair], gone: dict[int, _Pair]) -> None:
        """Those of another amount of ink, and those in one run of blocks with a repeat.

        Paragraphs of a statute that differ in a number break elsewhere, and are alike in amount.
        """
        added = True
        while added:
            added = False
            steps = {(pair.earlier.place, pair.later.place) for pair in gone.values()}
            for pair in unlike:
                i, j = pair.earlier.place, pair.later.place
                if i in gone or j in gone:
                    continue
                in_run = (i - 1, j - 1) in steps or (i + 1, j + 1) in steps
                if in_run or self._amounts_differ(pair):
                    gone[self._worse(pair).place] = pair
                    added = True

    def _ink(self, text: _Text) -> float:
        """Pixels a character that are the block's own: under no other one, copies of it aside."""
        if text.place not in self._inks:
            alike = self._alike.get(text.place, set()) | {text.place}
            others = [other.box for other in self._texts if other.place not in alike]
            self._inks[text.place] = self._print.ink(text.box, others) / text.length
        return self._inks[text.place]

    def _lacks_ink(self, pair: _Pair) -> bool:
        less, more = sorted((self._ink(pair.earlier), self._ink(pair.later)))
        share = _EMPTY if pair.earlier.type == pair.later.type else _EMPTY_OF_OTHER_TYPE
        is_bare = more >= _PALEST and less < share * min(more, self._typical_ink)
        # A narrow line's box may lie beside it.
        return is_bare and self._likeness(pair) < _ALIKE

    def _amounts_differ(self, pair: _Pair) -> bool:
        less, more = sorted((self._ink(pair.earlier), self._ink(pair.later)))
        is_long = min(pair.earlier.length, pair.later.length) >= _LEAST_COMPARED
        return is_long and less >= _LEAST_INK and less < _OTHER_AMOUNT * more

    def _is_unlike(self, pair: _Pair) -> bool:
        """Whether lines of one width show other words."""
        if pair.equal < _EQUAL or pair.earlier.type != pair.later.type:
            # A title and its heading are not set in the same type.
            return False
        narrow, wide = sorted(box[2] - box[0] for box in (pair.earlier.box, pair.later.box))
        if narrow < _ONE_WIDTH * wide:
            return False
        return self._likeness(pair) < _UNLIKE

    def _likeness(self, pair: _Pair) -> float:
        """1 where no more is to be compared."""
        self._num_compared += 1
        if self._num_compared > _MOST_COMPARED:
            return 1.0
        return self._print.likeness(pair.earlier.box, pair.later.box)

    def _worse(self, pair: _Pair) -> _Text:
        """Of two the one that says less, or has less usual an amount of ink; else the later."""
        earlier, later = pair.earlier, pair.later
        if not pair.is_whole:
            return min(later, earlier, key=lambda text: text.length)
        return max(later, earlier, key=self._oddness)

    def _oddness(self, text: _Text) -> float:
        return round(abs(math.log((self._ink(text) + 0.1) / (self._typical_ink + 0.1))), 1)

    @cached_property
    def _typical_ink(self) -> float:
        plain = [text for text in self._texts if text.place not in self._alike]
        return median(map(self._ink, plain or self._texts))


def _covers(pair: _Pair) -> bool:
    """Whether the two stand in one place."""
    covered = _covered(pair.earlier.box, pair.later.box)
    return covered > (_COVERED if pair.is_whole else _COVERED_PART)


def _covered(one: Box, other: Box) -> float:
    """The part of the smaller box that the other one covers."""
    width = min(one[2], other[2]) - max(one[0], other[0])
    height = min(one[3], other[3]) - max(one[1], other[1])
    smaller = min((box[2] - box[0]) * (box[3] - box[1]) for box in (one, other))
    return width * height / smaller if min(width, height) > 0 and smaller > 0 else 0.0
