"""Drafters that know the truth, lie, or misbehave."""

import random
from collections.abc import Sequence

from ocria.models.base import Prompt


class Constant:
    """Proposes one token for ever, and counts its calls."""

    def __init__(self, token: int = 3) -> None:
        self._token = token
        self.num_calls = 0

    def prepare(self, prompt: Prompt) -> None:
        pass

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        self.num_calls += 1
        return [self._token] * most

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        pass


class Oracle:
    """Proposes the true continuation, with a chance of a wrong token at each place."""

    def __init__(self, truth: Sequence[int], error_rate: float, vocab_size: int = 50) -> None:
        self._truth, self._error_rate, self._vocab_size = truth, error_rate, vocab_size
        self._random = random.Random(0)
        self.prompts: list[tuple[int, ...]] = []
        self.heard: list[tuple[tuple[int, ...], int]] = []

    def prepare(self, prompt: Prompt) -> None:
        self.prompts.append(prompt.token_ids)

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        ahead = self._truth[len(emitted) : len(emitted) + most]
        return [
            self._random.randrange(self._vocab_size)
            if self._random.random() < self._error_rate
            else token
            for token in ahead
        ]

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        self.heard.append((tuple(emitted), num_accepted))


class Hostile(Constant):
    """Nothing, ids out of range, forbidden ids, repetition, and more than was asked for."""

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        kinds: list[list[int]] = [
            [],
            [-1] * most,
            [10**6] * most,
            [3] * most,
            [0, 2, 1] * most,
            [len(emitted) % 50] * (most * 3),
        ]
        return kinds[len(emitted) % len(kinds)]
