"""How far a model's next-token distribution is from its parent's, at the places of passages.

Shape legend: T places, V vocabulary, M most probable tokens kept.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.calibration.passages import Forcing, Passage
from ocria.models.qwen3_5.model import Qwen35

# Most probable tokens of which probabilities are kept; the others count as one.
_KEPT = 64


class Expectation(NamedTuple):
    """What the parent would write at each place of a passage."""

    passage: Passage
    ids_TM: Tensor
    logprobs_TM: Tensor
    chosen_T: Tensor


@dataclass(frozen=True, kw_only=True, slots=True)
class Divergence:
    """How far a child is from its parent.

    Attributes:
        num_places: places compared.
        kl: mean Kullback-Leibler divergence in nats, over the parent's most probable tokens and
            the rest as one: a lower bound of the whole one.
        agreement: share of places at which both would write the same token.
    """

    num_places: int
    kl: float
    agreement: float


class Judge:
    """Holds a parent's distributions and measures others against them.

    Args:
        parent: the model with the weights to compare with.
        passages: at least one; the same passages are forced through every model.
        forbidden_ids: ids that are never written.
    """

    def __init__(
        self, parent: Qwen35, passages: Sequence[Passage], forbidden_ids: frozenset[int]
    ) -> None:
        self._max_rows = max(passage.num_rows for passage in passages)
        self._forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long)
        forcing = Forcing(parent, self._max_rows)
        self._expected = [self._expect(forcing, passage) for passage in passages]

    def judge(self, model: Qwen35, num_passages: int | None = None) -> Divergence:
        """Divergence of `model`, over the first `num_passages` or all."""
        forcing = Forcing(model, self._max_rows)
        kl, same, places = 0.0, 0, 0
        for expected in self._expected[:num_passages]:
            logprobs_TV = self._logprobs(forcing, expected.passage)
            kl += float(_divergence(expected, logprobs_TV).sum())
            same += int((logprobs_TV.argmax(-1) == expected.chosen_T).sum())
            places += expected.chosen_T.shape[0]
        return Divergence(num_places=places, kl=kl / places, agreement=same / places)

    def _expect(self, forcing: Forcing, passage: Passage) -> Expectation:
        logprobs_TV = self._logprobs(forcing, passage)
        top = logprobs_TV.topk(min(_KEPT, logprobs_TV.shape[1]), -1)
        return Expectation(passage, top.indices, top.values, logprobs_TV.argmax(-1))

    def _logprobs(self, forcing: Forcing, passage: Passage) -> Tensor:
        logits_TV = forcing.logits(passage).float()
        allowed_TV = logits_TV.index_fill(-1, self._forbidden.to(logits_TV.device), -torch.inf)
        return allowed_TV.log_softmax(-1)


class _Tile(NamedTuple):
    """Logits [T, some] of rows `first` and on of the head, of parent and child."""

    first: int
    parent: Tensor
    child: Tensor


def divergence_by_tiles(
    hidden: tuple[Tensor, Tensor],
    heads: Callable[[], Iterable[tuple[Tensor, Tensor]]],
    forbidden_ids: frozenset[int],
) -> Divergence:
    """Divergence of a child whose head is too large to be held: its rows come tile by tile, twice.

    Args:
        hidden: normed rows [T, D] of parent and child.
        heads: gives the rows of both heads in order, some at a time, at each call.
        forbidden_ids: ids that are never written.
    """
    forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long)

    def tiles() -> Iterator[_Tile]:
        first = 0
        for parent_ND, child_ND in heads():
            inside = forbidden[(forbidden >= first) & (forbidden < first + len(parent_ND))] - first
            parent, child = (
                (rows_TD @ head_ND.to(rows_TD).T).float().index_fill(-1, inside, -torch.inf)
                for rows_TD, head_ND in zip(hidden, (parent_ND, child_ND), strict=True)
            )
            yield _Tile(first, parent, child)
            first += len(parent_ND)

    logsums, best = _logsums(tiles(), len(hidden[0]))
    kl_T = torch.zeros(len(hidden[0]), dtype=torch.float64)
    for tile in tiles():
        parent_TN = (tile.parent - logsums[0][:, None]).double()
        child_TN = (tile.child - logsums[1][:, None]).double()
        terms_TN = parent_TN.exp() * (parent_TN - child_TN)
        kl_T += torch.where(parent_TN.isinf(), 0.0, terms_TN).sum(-1)
    return Divergence(
        num_places=len(kl_T),
        kl=float(kl_T.clamp(min=0).mean()),
        agreement=float((best[0] == best[1]).double().mean()),
    )


def _logsums(tiles: Iterable[_Tile], num_rows: int) -> tuple[list[Tensor], list[Tensor]]:
    """Log of the summed exponentials [T], and most probable id [T], of parent and child."""
    logsums = [torch.full((num_rows,), -torch.inf) for _ in range(2)]
    largest = [torch.full((num_rows,), -torch.inf) for _ in range(2)]
    best = [torch.zeros(num_rows, dtype=torch.long) for _ in range(2)]
    for tile in tiles:
        for which, logits_TN in enumerate((tile.parent, tile.child)):
            logsums[which] = torch.logaddexp(logsums[which], logits_TN.logsumexp(-1))
            top_T, place_T = logits_TN.max(-1)
            best[which] = torch.where(top_T > largest[which], place_T + tile.first, best[which])
            largest[which] = torch.maximum(largest[which], top_T)
    return logsums, best


def _divergence(expected: Expectation, logprobs_TV: Tensor) -> Tensor:
    """KL [T] in nats."""
    theirs_TM, ours_TM = expected.logprobs_TM, logprobs_TV.gather(-1, expected.ids_TM)
    # A forbidden token among the kept ones has probability zero on both sides.
    terms_TM = torch.where(theirs_TM.isinf(), 0.0, theirs_TM.exp() * (theirs_TM - ours_TM))
    rest_theirs_T = (1 - theirs_TM.exp().sum(-1)).clamp(min=1e-7)
    rest_ours_T = (1 - ours_TM.exp().sum(-1)).clamp(min=1e-7)
    rest_T = rest_theirs_T * (rest_theirs_T / rest_ours_T).log()
    return (terms_TM.sum(-1) + rest_T).clamp(min=0)
