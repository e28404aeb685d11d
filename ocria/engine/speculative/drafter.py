"""What the verify loop asks of a source of proposals."""

from collections.abc import Sequence
from typing import Protocol


class Drafter(Protocol):
    """Proposes what the target will write next; the target decides, so a wrong one costs speed.

    One page at a time: `prepare`, then for each target pass `propose` and `observe`. The tokens
    that the prefill chose are observed first, with nothing accepted.
    """

    def prepare(self, prompt: Sequence[int]) -> None:
        """Begins a page with this prompt; whatever was known of the page before is over."""
        ...

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """At most `most` token ids to follow `emitted`, all tokens of the page so far.

        What the vocabulary does not hold, or may never be chosen, ends the proposal there.
        """
        ...

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Hears what a pass emitted, and how many of these tokens were proposals."""
        ...
