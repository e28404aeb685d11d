"""Proposes from a text that is known already: to fix an acceptance, or to force a continuation."""

from collections.abc import Sequence

from ocria.models.base import Prompt


class ScriptedDrafter:
    """Knows what will be written, and is right as often as it was told to.

    Random weights write nothing that a drafter could guess, so their acceptance is stated: every
    pass gets a full window with `accepted` - 1 right proposals, and emits `accepted` tokens.

    Args:
        truth: what plain decoding writes.
        accepted: tokens that each pass shall emit; None makes every proposal right.
        vocab_size: wrong proposals are other ids below it.
    """

    def __init__(self, truth: Sequence[int], accepted: int | None, vocab_size: int) -> None:
        self._truth = tuple(truth)
        self._accepted = accepted
        self._vocab_size = vocab_size

    def prepare(self, prompt: Prompt) -> None:
        """Begins the page; the truth stays."""

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """The truth's next tokens, wrong ones behind as many as are to be right."""
        ahead = self._truth[len(emitted) : len(emitted) + most]
        if self._accepted is None:
            return ahead
        right = self._accepted - 1
        return (*ahead[:right], *((token + 1) % self._vocab_size for token in ahead[right:]))

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Learns nothing."""
