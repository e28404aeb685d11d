"""Candidates and the path through them: the specification.

Shape legend: K places, V vocabulary, C candidates of a place (A of the place before), R rank.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Codebooks(NamedTuple):
    """What a path selector knows of pairs of tokens.

    Attributes:
        before_VR: of the token before; `after_VR` of the one behind it.
        multiplier: of the candidates' logits.
        softcap: bound of these, c * tanh(x / c); 0 leaves them.
    """

    before_VR: Tensor
    after_VR: Tensor
    multiplier: float
    softcap: float


def best_candidates(logits_KV: Tensor, forbidden_V: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` best tokens of each row, best first, and their logits, float32.

    Args:
        logits_KV: float32; of equal ones the smaller id is better.
        forbidden_V: uint8, ones for ids that are no candidates.
        count: C.
    """
    allowed_KV = logits_KV.masked_fill(forbidden_V.bool(), -torch.inf)
    scores_KV, ids_KV = allowed_KV.sort(dim=-1, descending=True, stable=True)
    return ids_KV[:, :count].contiguous(), scores_KV[:, :count].contiguous()


def best_path(
    ids_KC: Tensor, scores_KC: Tensor, gate_KR: Tensor, books: Codebooks, anchor_1: Tensor
) -> Tensor:
    """Ids [K]: from the anchor on, the best successor of the one before.

    A pair (a, b) has score(b) + sum over r of before[a, r] * gate[r] * after[b, r], in float32.

    Args:
        ids_KC: from `best_candidates`, like `scores_KC`.
        gate_KR: made of the places' hidden rows.
        books: see there.
        anchor_1: the last token.
    """
    scores_KC = scores_KC * books.multiplier
    if books.softcap:
        scores_KC = books.softcap * torch.tanh(scores_KC / books.softcap)
    last, path = anchor_1, []
    for ids_C, scores_C, gate_R in zip(ids_KC, scores_KC, gate_KR.float(), strict=True):
        before_1R = books.before_VR[last].float() * gate_R
        edges_C = scores_C + (before_1R @ books.after_VR[ids_C].float().mT)[0]
        last = ids_C[edges_C.argmax()][None]
        path.append(last)
    return torch.cat(path)
