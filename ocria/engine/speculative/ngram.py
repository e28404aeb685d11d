"""Proposes what followed the last tokens where they stood before, on this page or an earlier one.

Two indexes, over pairs and over runs of four tokens, each a chain of earlier places; a step looks
at a few of them, longer runs first, and goes on from the place whose past agrees longest. Adding a
token is O(1); so is a lookup.
"""

from collections import deque
from collections.abc import Sequence

from ocria.models.base import Prompt

ORDERS = (4, 2)
"""Lengths of the indexed runs, the one to try first in front."""
_PLACES = 8
"""Earlier places remembered for a run, the newest."""
_LONGEST = 64
"""Tokens of past that are compared: beyond that, places count as equal."""
MAX_TOKENS = 1 << 16
_PAGE_BREAK = -1
"""Stands between pages, so that no run reaches over it. No id is negative."""

_Index = dict[tuple[int, ...], deque[int]]


class NgramDrafter:
    """Looks the tail of the page up in its own past.

    Keep one for a document: earlier pages are part of that past. Past `max_tokens` the older half
    is forgotten.
    """

    def __init__(self, *, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self._tokens: list[int] = []
        self._indexes: dict[int, _Index] = {order: {} for order in ORDERS}

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page; what earlier ones said stays known."""
        self._add((_PAGE_BREAK,))

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """What followed the longest earlier occurrence of the page's tail, or nothing."""
        place = self._best_place()
        if place is None:
            return ()
        ahead = self._tokens[place : place + most]
        # A copy that ends at the present goes on as it began: the tail repeats.
        period = len(self._tokens) - place
        while period < most and len(ahead) < most:
            ahead.append(ahead[len(ahead) - period])
        return ahead[: ahead.index(_PAGE_BREAK)] if _PAGE_BREAK in ahead else ahead

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Adds what was written."""
        self._add(emitted)

    def _add(self, tokens: Sequence[int]) -> None:
        for token in tokens:
            self._tokens.append(token)
            self._index_last()
        if len(self._tokens) > self._max_tokens:
            kept = self._tokens[-(self._max_tokens // 2) :]
            self._tokens = []
            for index in self._indexes.values():
                index.clear()
            self._add(kept)

    def _index_last(self) -> None:
        """Files the place after the newest token under the runs that end there."""
        place = len(self._tokens)
        for order, index in self._indexes.items():
            run = tuple(self._tokens[-order:])
            if len(run) == order and _PAGE_BREAK not in run:
                index.setdefault(run, deque(maxlen=_PLACES)).append(place)

    def _best_place(self) -> int | None:
        for order in ORDERS:
            run = tuple(self._tokens[-order:])
            places = self._indexes[order].get(run, ())
            earlier = [place for place in places if place < len(self._tokens)]
            if earlier:
                # Of equal pasts the newest is taken.
                return max(earlier, key=lambda place: (self._shared_past(place), place))
        return None

    def _shared_past(self, place: int) -> int:
        """How many tokens before `place` equal the page's last ones."""
        tokens, length = self._tokens, 0
        limit = min(_LONGEST, place)
        while length < limit and tokens[place - 1 - length] == tokens[-1 - length]:
            length += 1
        return length
