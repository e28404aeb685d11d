"""Sampling, and the rules by which proposals may be accepted without changing its distribution.

Every number drawn belongs to a stream and to a position of the page, so it depends on the request's
seed alone: not on the batch, on the order of work or on how often a page was begun again.

A sure proposal d is judged by drawing the target's own token y at that position: d is accepted if
y = d, which has probability p(d), and y is emitted otherwise, which is then distributed like p
without d. Since y does not depend on the proposal, sampled pages are the same token for token with
every drafter that proposes surely. A proposal drawn from q is accepted with probability
min(1, p(d) / q(d)); at the first rejection a token is drawn from max(p - q, 0), normalised
(Leviathan et al., "Fast Inference from Transformers via Speculative Decoding", 2023, section 2.3).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import torch
from torch import Tensor

from ocria.engine.speculative.drafter import Draft


@dataclass(frozen=True, kw_only=True, slots=True)
class Sampling:
    """How tokens are drawn.

    Attributes:
        temperature: above 0; logits are divided by it.
        top_p: above 0, at most 1: the most probable tokens that together reach it are kept.
        seed: of this request's streams; give requests different ones.
    """

    temperature: float = 1.0
    top_p: float = 1.0
    seed: int = 0

    def __post_init__(self) -> None:
        assert self.temperature > 0, f"temperature must be above 0, not {self.temperature}"
        assert 0 < self.top_p <= 1, f"top_p must be above 0 and at most 1, not {self.top_p}"
        assert 0 <= self.seed < 1 << 64, "a seed has 64 bits"


class Stream(IntEnum):
    """Independent random streams of a request. Drafters draw from `DRAFT`, never from the rest."""

    TARGET = 0
    ACCEPT = 1
    RESIDUAL = 2
    DRAFT = 3


def uniform(seed: int, stream: Stream, position: int) -> float:
    """The stream's number at a position, in [0, 1): Philox, a counter turned into random bits."""
    bits = np.random.Philox(key=[seed, stream], counter=[position, 0, 0, 0]).random_raw()
    return float(bits >> 11) * 2.0**-53


def target_distribution(logits_V: Tensor, sampling: Sampling) -> Tensor:
    """Probabilities [V] in float64 after temperature and top-p, which are what is sampled from."""
    probs_V = (logits_V.double() / sampling.temperature).softmax(-1)
    if sampling.top_p == 1:
        return probs_V
    sorted_V, order_V = probs_V.sort(descending=True, stable=True)
    # A token stays if those before it do not reach top_p: the first always does.
    dropped_V = sorted_V.cumsum(-1) - sorted_V >= sampling.top_p
    kept_V = probs_V.index_fill(-1, order_V[dropped_V], 0.0)
    return kept_V / kept_V.sum()


def draw(probs_V: Tensor, number: float) -> int:
    """The token at which the sum of probabilities, in order of ids, passes `number` of the whole.

    `probs_V` need not be normalised; a token without probability is never drawn.
    """
    sums_V = probs_V.cumsum(-1)
    token = int(torch.searchsorted(sums_V, number * sums_V[-1], right=True))
    # Rounding may carry a number next to 1 past the end.
    return min(token, int(probs_V.nonzero()[-1]))


def sample_window(logits_TV: Tensor, draft: Draft, sampling: Sampling, position: int) -> list[int]:
    """Judges T - 1 proposals by the logits of a window of T rows; what the pass emits.

    Args:
        logits_TV: row i is what the target says after the window's token i, forbidden tokens at
            minus infinity.
        draft: T - 1 proposals.
        sampling: how to draw.
        position: number of tokens that the page has before this window.
    """
    emitted: list[int] = []
    for row, proposal in enumerate(draft.token_ids):
        probs_V = target_distribution(logits_TV[row], sampling)
        if draft.probabilities is None:
            emitted.append(draw(probs_V, uniform(sampling.seed, Stream.TARGET, position + row)))
        else:
            drawn_from = draft.probabilities[row]
            emitted.append(_judge(probs_V, proposal, drawn_from, sampling.seed, position + row))
        if emitted[-1] != proposal:
            return emitted
    last = len(draft.token_ids)
    probs_V = target_distribution(logits_TV[last], sampling)
    return [*emitted, draw(probs_V, uniform(sampling.seed, Stream.TARGET, position + last))]


def _judge(
    probs_V: Tensor, proposal: int, drawn_from: Mapping[int, float], seed: int, position: int
) -> int:
    """The proposal if it is accepted, else a token of what p has more than q.

    After a rejection the proposal itself is never drawn: q(d) > p(d), so nothing of it is left.
    """
    number = uniform(seed, Stream.ACCEPT, position)
    if number * drawn_from[proposal] < float(probs_V[proposal]):
        return proposal
    left_V = probs_V.clone()
    support = torch.tensor(list(drawn_from), device=probs_V.device)
    left_V[support] -= torch.tensor(list(drawn_from.values()), device=probs_V.device).to(left_V)
    left_V.clamp_(min=0)
    # Nothing is left only where p and q are equal up to rounding.
    return draw(left_V if bool(left_V.any()) else probs_V, uniform(seed, Stream.RESIDUAL, position))
