"""Chooses, for each step, which drafter to follow and how far.

Every source is asked and judged all the time, also while another one, or none, is followed: what
it would have proposed is held against what the target writes then. That costs the call alone, so a
source that became useless is left and one that became useful is found without a wasted row. A dear
source that promises less than another already gives is asked so seldom that its calls cost `SHARE`.

Two rules choose. *Worth*: the depth with the most tokens expected for the cost of its pass, if a
plain pass does not give more. *Credit*: drafting may lose a grant + `SHARE` x tokens of a page,
beyond what it has saved there; a depth whose loss would not be covered is not taken. The second
holds whatever a source does, so the first may hope.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field

from torch import Tensor

from ocria.engine.speculative.drafter import Draft, Drafter, TapDrafter
from ocria.engine.speculative.pass_cost import PassCost
from ocria.models.base import Prompt

GRANT = 5.0
"""Passes of one row that a page may lose at its start. Some six calls of a drafter for half a pass:
with less a good one that begins with bad luck is not asked for long (docs/log.md)."""
SHARE = 0.02
"""Passes of one row that each token of the page may cost."""
_MOST_CREDIT = 8.0
"""Savings beyond this are kept: a page that drafts well and then badly does not spend them."""
_RATE, _RATE_A_PASS, _MOST_RATE = 0.05, 0.01, 0.3
"""Weight of the newest token in a source's running acceptance; more by the passes since it was
judged before, as what was known then may not hold any more."""


@dataclass(slots=True)
class Source:
    """A drafter, and what is known of it.

    Attributes:
        name: for the statistics.
        call_cost: cost of one `propose` and `observe`, in target passes of one row; one that
            proposes nothing is taken as free.
        first: running chance that the first token of a proposal is right.
        later: the same for a token behind right ones. Sources are seldom wrong by halves: the two
            differ, and one number for both stops too early.
        num_accepted: tokens of this page that were proposed by this source and accepted.
        expected: what is left of its last proposal.
        is_fresh: nothing of it has been judged yet.
        spent_unasked: cost of the passes since it was asked.
        num_unjudged: passes since it was judged.
    """

    name: str
    drafter: Drafter
    call_cost: float
    first: float
    later: float
    num_accepted: int = 0
    expected: Sequence[int] = field(default=())
    is_fresh: bool = False
    spent_unasked: float = 0.0
    num_unjudged: int = 0

    def judge(self, emitted: Sequence[int]) -> None:
        """Holds the outstanding proposal against what was emitted, up to the first difference."""
        self.num_unjudged += 1
        rate = min(max(_RATE, _RATE_A_PASS * self.num_unjudged), _MOST_RATE)
        for proposed, token in zip(self.expected, emitted, strict=False):
            self.num_unjudged = 0
            hit = proposed == token
            if self.is_fresh:
                self.first += rate * (hit - self.first)
            else:
                self.later += rate * (hit - self.later)
            self.is_fresh = False
            if not hit:
                self.expected = ()
                return
        self.expected = self.expected[len(emitted) :]

    @property
    def next(self) -> float:
        """Chance that the first token of the outstanding proposal is right."""
        return self.first if self.is_fresh else self.later


class AutoDrafter:
    """Follows the source that is worth most at each step, or none.

    One for a page, like its sources; what was learnt of them may be handed to the next page's.

    Args:
        sources: in order of preference between equals.
        pass_cost: what a target pass of some rows costs on this device.
        grant: passes of one row that a page may lose at its start.
    """

    def __init__(
        self, sources: Sequence[Source], pass_cost: PassCost, grant: float = GRANT
    ) -> None:
        self.sources = tuple(sources)
        drafters = (source.drafter for source in self.sources)
        self._tapping = [drafter for drafter in drafters if isinstance(drafter, TapDrafter)]
        self._costs = [pass_cost.of(rows) for rows in range(1, 34)]
        self._credit = self._grant = grant
        self._followed: Source | None = None
        self._last: Source | None = None
        self._depth = 0

    @property
    def used(self) -> str:
        """Name of the source that gave this page most of its accepted tokens, or `none`."""
        best = max(self.sources, key=lambda source: source.num_accepted, default=None)
        return best.name if best is not None and best.num_accepted else "none"

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page with a new grant."""
        self._credit, self._followed, self._last = self._grant, None, None
        for source in self.sources:
            source.drafter.prepare(prompt)
            source.expected, source.num_accepted, source.spent_unasked = (), 0, math.inf
            source.num_unjudged = 0

    def tap(self, rows_TLD: Tensor) -> None:
        """Hands the target's rows to the sources that want them; see `TapDrafter`."""
        for drafter in self._tapping:
            drafter.tap(rows_TLD)

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """The first tokens of the best source's proposal, as many as are worth their rows."""
        best, self._followed, self._depth = 1.0, None, 0
        for source in self.sources:
            is_short = source is self._last and len(source.expected) < most
            if (not source.expected or is_short) and self._may_pay(source, most, best):
                self._ask(source, emitted, most)
            depth, worth = self._best_depth(source, min(most, len(source.expected)))
            if worth > best:
                best, self._followed, self._depth = worth, source, depth
        return () if self._followed is None else self._followed.expected[: self._depth]

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Settles the pass: its cost, its tokens, and what every source had expected."""
        if self._followed is not None:
            self._followed.num_accepted += num_accepted
            self._credit += max(1, len(emitted)) - self._costs[self._depth]
        self._last, self._followed = self._followed, None
        self._credit = min(self._credit + SHARE * len(emitted), _MOST_CREDIT)
        for source in self.sources:
            source.judge(emitted)
            source.spent_unasked += self._costs[self._depth]
            source.drafter.observe(emitted, num_accepted)

    def _may_pay(self, source: Source, most: int, best: float) -> bool:
        """Whether a call costs little beside what was spent, or promises more than `best`."""
        if source.call_cost <= SHARE * source.spent_unasked:
            return True
        expected, chance = 1.0, source.first
        for depth in range(1, most + 1):
            expected += chance
            if expected > best * (self._costs[depth] + source.call_cost):
                return True
            chance *= source.later
        return False

    def _ask(self, source: Source, emitted: Sequence[int], most: int) -> None:
        if self._credit >= source.call_cost:
            source.spent_unasked = 0.0
            # What goes on from a proposal that was right so far is no first token.
            source.is_fresh = not source.expected
            proposal = source.drafter.propose(emitted, most)
            # Held over several passes, a random proposal counts as a sure one.
            sure = proposal.token_ids if isinstance(proposal, Draft) else proposal
            source.expected = tuple(sure[:most])
            if source.expected:
                self._credit -= source.call_cost

    def _best_depth(self, source: Source, available: int) -> tuple[int, float]:
        """Depth with the most tokens expected for a pass's cost that the credit covers."""
        best_depth, best, expected = 0, 1.0, 1.0
        chance, later, costs, credit = source.next, source.later, self._costs, self._credit
        for depth in range(1, available + 1):
            cost = costs[depth]
            if cost - 1.0 > credit:
                break
            expected += chance * later ** (depth - 1)
            if expected / cost > best:
                best_depth, best = depth, expected / cost
        return best_depth, best
