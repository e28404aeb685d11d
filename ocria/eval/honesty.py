"""What a reader made up: text on empty pages, words without a source, endless repetition."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt
from rapidfuzz.distance import Levenshtein

from ocria.eval.normalize import normalise, plain_from_markdown, words

MIN_LOOP_CHARS = 200
MIN_LOOP_TURNS = 6
MAX_LOOP_PERIOD = 400
MISREAD_SIMILARITY = 0.5
MIN_WORD_CHARS = 4
NUM_COMPARED = 8
PAIRS_OF_PAGE = 0.6
"""A row of three words keeps two of its three pairs where its number is left out."""


@dataclass(frozen=True, kw_only=True)
class Loop:
    """The longest stretch that repeats one unit: its length and the unit's, in characters."""

    num_chars: int
    period: int
    unit: str

    @property
    def text(self) -> str:
        """The whole stretch."""
        return (self.unit * (self.num_chars // self.period + 1))[: self.num_chars]


def visible_chars(markdown: str) -> int:
    """Characters a person would see that are not white space: all invented, on a blank page."""
    return sum(not char.isspace() for char in normalise(plain_from_markdown(markdown)))


def invented_words(truth: str, prediction: str) -> float:
    """Share of predicted words which no word of the truth resembles.

    Both are normalised texts. A misread word resembles its source, so it is an error but not an
    invention: more than half of a word's characters must differ from each word of the truth that
    shares pairs of letters with it.
    Words under MIN_WORD_CHARS characters resemble too much to judge, and are left out.
    """
    candidates = [word for word in words(prediction) if len(word) >= MIN_WORD_CHARS]
    if not candidates:
        return 0.0
    known = set(words(truth))
    index = _bigram_index(known)
    invented = {word for word in set(candidates) - known if not _resembles_any(word, index)}
    return sum(word in invented for word in candidates) / len(candidates)


def _bigram_index(known: set[str]) -> dict[str, list[str]]:
    index: dict[str, list[str]] = {}
    for word in sorted(known):
        for pair in _bigrams(word):
            index.setdefault(pair, []).append(word)
    return index


def _bigrams(word: str) -> set[str]:
    return {word[start : start + 2] for start in range(max(len(word) - 1, 1))}


def _resembles_any(word: str, index: dict[str, list[str]]) -> bool:
    """Only the known words that share the most pairs of letters are compared by distance."""
    shared: Counter[str] = Counter()
    for pair in _bigrams(word):
        shared.update(index.get(pair, ()))
    return any(
        Levenshtein.normalized_similarity(word, near) >= MISREAD_SIMILARITY
        for near, _ in shared.most_common(NUM_COMPARED)
    )


def longest_loop(text: str) -> Loop | None:
    """The longest periodic stretch of a normalised text, if it is long enough to be a loop.

    At least MIN_LOOP_CHARS characters and MIN_LOOP_TURNS turns of a unit that holds a letter or
    digit. One vector comparison a period: MAX_LOOP_PERIOD * len(text) operations.
    """
    codes = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
    best: Loop | None = None
    for period in range(1, min(MAX_LOOP_PERIOD, len(codes) // MIN_LOOP_TURNS) + 1):
        start, length = _longest_run(codes[period:] == codes[:-period])
        total = length + period
        if total < max(MIN_LOOP_CHARS, MIN_LOOP_TURNS * period):
            continue
        unit = text[start : start + period]
        longer = best is None or total > best.num_chars
        if longer and any(char.isalnum() for char in unit):
            best = Loop(num_chars=total, period=period, unit=unit)
    return best


def is_looping(truth: str | None, prediction: str) -> bool:
    """Whether the prediction repeats for longer than the page itself does.

    Both are normalised texts; a page of sixty equal rows may repeat them sixty times, and a
    quarter more by miscounting. Rows that differ in their numbers alone become equal where a reader
    leaves these out: no loop, as long as the page has its pairs of words as often.
    """
    found = longest_loop(prediction)
    if found is None or not truth:
        return found is not None
    allowed = longest_loop(truth)
    if allowed and found.num_chars <= _miscounted(allowed.num_chars):
        return False
    is_longer = len(prediction) > _miscounted(len(truth))
    return is_longer or _share_of_pairs(words(found.text), words(truth)) < PAIRS_OF_PAGE


def _miscounted(num_chars: int) -> float:
    return 1.25 * num_chars + MIN_LOOP_CHARS / 2


def _share_of_pairs(part: list[str], whole: list[str]) -> float:
    """Share of the pairs of neighbouring words of `part` that `whole` has, each as often."""
    left, right = Counter(pairwise(part)), Counter(pairwise(whole))
    return (left & right).total() / max(left.total(), 1)


def _longest_run(equal: npt.NDArray[np.bool_]) -> tuple[int, int]:
    """Start and length of the longest run of true values."""
    edges = np.flatnonzero(np.diff(np.concatenate(([0], equal.astype(np.int8), [0]))))
    if len(edges) == 0:
        return 0, 0
    lengths = edges[1::2] - edges[::2]
    longest = int(lengths.argmax())
    return int(edges[::2][longest]), int(lengths[longest])
