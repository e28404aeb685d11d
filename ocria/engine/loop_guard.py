"""Finds a repeating tail while decoding, so that a loop costs at most `WASTE_TOKENS`.

A model that lost its place writes the same row, sentence or token for ever. The tail is a loop
when it is at least two copies of a period and, beyond them, `WASTE_TOKENS` more tokens that the
period predicts. Leader dots, rules and short equal rows stay below that.
"""

from collections import deque
from collections.abc import Sequence
from typing import NamedTuple

WASTE_TOKENS = 64
MAX_PERIOD = 256


class Loop(NamedTuple):
    """A repeating tail: tokens from `start` on are copies of the `period` tokens before."""

    start: int
    period: int


class LoopGuard:
    """Watches one sequence token by token.

    For each period p it keeps how many of the last tokens equal the one p places before. Only
    periods at which the newest token stood before can go on, so a token costs as many operations as
    it has copies among the last `max_period`.
    """

    def __init__(self, *, waste_tokens: int = WASTE_TOKENS, max_period: int = MAX_PERIOD) -> None:
        self._waste, self._max_period = waste_tokens, max_period
        self._runs: dict[int, int] = {}
        self._places: dict[int, deque[int]] = {}
        self._num_tokens = 0

    def observe(self, tokens: Sequence[int]) -> Loop | None:
        """Adds emitted tokens; the loop that they complete, if any."""
        for token in tokens:
            period = self._extend_runs(token)
            if period is not None:
                # The first copy is text; everything the period predicts behind it goes.
                return Loop(self._num_tokens - self._runs[period], period)
        return None

    def _extend_runs(self, token: int) -> int | None:
        here = self._num_tokens
        self._num_tokens += 1
        places = self._places.setdefault(token, deque())
        while places and here - places[0] > self._max_period:
            places.popleft()
        self._runs = {here - place: self._runs.get(here - place, 0) + 1 for place in places}
        places.append(here)
        if max(self._runs.values(), default=0) <= self._waste:
            return None
        loops = [period for period, run in self._runs.items() if run >= period + self._waste]
        return min(loops, default=None)
