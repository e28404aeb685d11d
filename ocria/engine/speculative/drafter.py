"""What the verify loop asks of a source of proposals."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from torch import Tensor

from ocria.models.base import Prompt


@dataclass(frozen=True, slots=True)
class Draft:
    """A proposal, and how it was made.

    Attributes:
        token_ids: what may follow.
        probabilities: of a proposal that was drawn at random: for each token the distribution that
            it was drawn from, by token id; ids left out have none. None for a sure proposal.
            They must be those used in the draw, and the draw must not use the engine's streams
            (`sampling.Stream`), or sampled output follows another distribution than the target's.
    """

    token_ids: tuple[int, ...] = ()
    probabilities: tuple[Mapping[int, float], ...] | None = None

    def first(self, count: int) -> "Draft":
        """Its first tokens."""
        kept = None if self.probabilities is None else self.probabilities[:count]
        return Draft(self.token_ids[:count], kept)

    def explains(self, place: int) -> bool:
        """Whether the token at `place` can have been drawn as the draft says."""
        if self.probabilities is None:
            return True
        return (
            place < len(self.probabilities)
            and self.probabilities[place].get(self.token_ids[place], 0.0) > 0
        )


class Drafter(Protocol):
    """Proposes what the target will write next; the target decides, so a wrong one costs speed.

    One object a sequence: `prepare`, then for each target pass `propose` and `observe`. The token
    that the prefill chose is observed first, with nothing accepted. A page that had to give its
    memory back is begun again with another `prepare`.
    """

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page with this prompt; whatever was known of the page before is over."""
        ...

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int] | Draft:
        """At most `most` token ids to follow `emitted`, all tokens of the page so far.

        What the vocabulary does not hold, or may never be chosen, ends the proposal there.
        """
        ...

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Hears what a pass emitted, and how many of these tokens were proposals."""
        ...


@runtime_checkable
class TapDrafter(Protocol):
    """A drafter that also looks at the target's hidden rows."""

    def tap(self, rows_TLD: Tensor) -> None:
        """Hears the target's `tap_layers` at the next positions, once these are real.

        Every position of the prompt and of the page comes once and in order, before the `observe`
        that tells what followed the last of them. The next pass writes over these rows: whoever
        keeps them copies them.
        """
        ...
