"""Finds a repeating tail while decoding, so that a loop costs at most `WASTE_TOKENS`.

A model that lost its place writes the same row, sentence or token for ever. The tail is a loop
when it is at least two copies of a period and, beyond them, `WASTE_TOKENS` more tokens that the
period predicts. Leader dots, rules and short equal rows stay below that.
"""

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

    For each period p it keeps how many of the last tokens equal the one p places before: one
    comparison a period and token, whatever the length of the page.
    """

    def __init__(self, *, waste_tokens: int = WASTE_TOKENS, max_period: int = MAX_PERIOD) -> None:
        self._waste = waste_tokens
        self._runs = [0] * (max_period + 1)
        self._tokens: list[int] = []

    def observe(self, tokens: Sequence[int]) -> Loop | None:
        """Adds emitted tokens; the loop that they complete, if any."""
        for token in tokens:
            self._tokens.append(token)
            period = self._extend_runs()
            if period is not None:
                # The first copy is text; everything the period predicts behind it goes.
                return Loop(len(self._tokens) - self._runs[period], period)
        return None

    def _extend_runs(self) -> int | None:
        tokens, last = self._tokens, len(self._tokens) - 1
        newest, found = tokens[last], None
        for period in range(1, min(len(self._runs) - 1, last) + 1):
            if tokens[last - period] == newest:
                self._runs[period] += 1
                if found is None and self._runs[period] >= period + self._waste:
                    found = period
            else:
                self._runs[period] = 0
        return found
