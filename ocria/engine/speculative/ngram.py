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
"""Stands behind each page, so that no run reaches over it. No id is negative."""

_Index = dict[tuple[int, ...], deque[int]]


class Past:
    """Tokens, and where each run of them stood. Past `max_tokens` the older half is forgotten."""

    def __init__(self, *, max_tokens: int = MAX_TOKENS) -> None:
        self._max_tokens = max_tokens
        self.tokens: list[int] = []
        self._indexes: dict[int, _Index] = {order: {} for order in ORDERS}

    def add(self, tokens: Sequence[int]) -> None:
        """Appends tokens."""
        for token in tokens:
            self.tokens.append(token)
            self._index_last()
        if len(self.tokens) > self._max_tokens:
            kept = self.tokens[-(self._max_tokens // 2) :]
            self.clear()
            self.add(kept)

    def add_page(self, tokens: Sequence[int]) -> None:
        """Appends a finished page."""
        if tokens:
            self.add((*tokens, _PAGE_BREAK))

    def clear(self) -> None:
        """Forgets everything."""
        self.tokens = []
        for index in self._indexes.values():
            index.clear()

    def _index_last(self) -> None:
        """Files the place after the newest token under the runs that end there."""
        place = len(self.tokens)
        for order, index in self._indexes.items():
            run = tuple(self.tokens[-order:])
            if len(run) == order and _PAGE_BREAK not in run:
                places = index.get(run)
                if places is None:
                    index[run] = deque((place,), _PLACES)
                else:
                    places.append(place)

    def best_place(self, page: Sequence[int], order: int) -> tuple[int, int] | None:
        """(shared past, place) where the last `order` tokens of `page` stood, the best such place.

        Of equal pasts the newest is taken.
        """
        places = self._indexes[order].get(tuple(page[-order:]), ())
        earlier = [place for place in places if page is not self.tokens or place < len(page)]
        return max(((self._shared_past(place, page), place) for place in earlier), default=None)

    def ahead(self, place: int, most: int) -> list[int]:
        """At most `most` tokens from `place` on, to the end of their page."""
        ahead = self.tokens[place : place + most]
        return ahead[: ahead.index(_PAGE_BREAK)] if _PAGE_BREAK in ahead else ahead

    def _shared_past(self, place: int, page: Sequence[int]) -> int:
        """How many tokens before `place` equal the page's last ones."""
        tokens, length = self.tokens, 0
        limit = min(_LONGEST, place, len(page))
        while length < limit and tokens[place - 1 - length] == page[-1 - length]:
            length += 1
        return length


class NgramDrafter:
    """Looks the tail of the page up in its own past and in that of its document.

    Args:
        document: what finished pages said, shared by the drafters of a document's pages. A page
            enters it when it is over: at the next `prepare`, or by `end_page`.
    """

    def __init__(self, document: Past | None = None) -> None:
        self._page = Past()
        self._document = Past() if document is None else document

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page; what earlier ones said stays known."""
        self.end_page()

    def end_page(self) -> None:
        """Adds the page to what is known of its document."""
        self._document.add_page(self._page.tokens)
        self._page.clear()

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """What followed the longest earlier occurrence of the page's tail, or nothing."""
        page = self._page.tokens
        for order in ORDERS:
            here, before = (past.best_place(page, order) for past in (self._page, self._document))
            if here is not None and (before is None or here[0] >= before[0]):
                return self._repeated(here[1], most)
            if before is not None:
                return self._document.ahead(before[1], most)
        return ()

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Adds what was written."""
        self._page.add(emitted)

    def _repeated(self, place: int, most: int) -> list[int]:
        """A copy that ends at the present goes on as it began: the tail repeats."""
        ahead = self._page.ahead(place, most)
        period = len(self._page.tokens) - place
        while period < most and len(ahead) < most:
            ahead.append(ahead[len(ahead) - period])
        return ahead
