"""The path selector: of each place's candidates, the ones that follow each other best.

Shape legend
    ...  any leading dimensions, K places of a block (its rows but the first), H hidden size
    V  vocabulary, R rank, C candidates of a place (A of the place before)
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from ocria.models.drafter.config import DrafterConfig, SelectorConfig
from ocria.models.drafter.layers import DraftLinear


class Candidates(NamedTuple):
    """The most probable tokens of each place, best first, and their scores in float32."""

    ids_KC: Tensor
    scores_KC: Tensor


def candidates(logits_KV: Tensor, config: DrafterConfig, count: int) -> Candidates:
    """The `count` best tokens; multiplier and cap are monotone and applied to these alone."""
    scores_KC, ids_KC = logits_KV.topk(count, dim=-1)
    scores_KC = scores_KC.float() * config.output_multiplier
    if config.softcap is not None:
        scores_KC = config.softcap * torch.tanh(scores_KC / config.softcap)
    return Candidates(ids_KC, scores_KC)


class PathSelector(nn.Module):
    """S(a, b) = score(b) + sum over r of A[a, r] * g[r] * B[b, r], g made from the hidden row.

    A and B are the predecessor and the successor codebook, bare parameters in the checkpoint.
    """

    def __init__(self, config: SelectorConfig, hidden_size: int, vocab_size: int) -> None:
        super().__init__()
        self.top_k = config.top_k
        self.predecessor_codebook = nn.Parameter(torch.empty(vocab_size, config.rank))
        self.successor_codebook = nn.Parameter(torch.empty(vocab_size, config.rank))
        self.hidden_projection = DraftLinear(hidden_size, config.rank)

    def bonus(self, hidden_KH: Tensor, before_KA: Tensor, ids_KC: Tensor) -> Tensor:
        """What S adds to the candidates' scores, [..., K, A, C], for each predecessor."""
        gate_KR = self.hidden_projection(hidden_KH)
        # The gradient of a look-up with many equal ids: that of indexing takes ten times as long.
        before_KAR = F.embedding(before_KA, self.predecessor_codebook) * gate_KR[..., None, :]
        after_KCR = F.embedding(ids_KC, self.successor_codebook)
        return (before_KAR.to(after_KCR.dtype) @ after_KCR.mT).float()

    def walk(self, hidden_KH: Tensor, found: Candidates, anchor: Tensor) -> Tensor:
        """Token ids [..., K]: from the anchor [...] on, the best successor of the one before."""
        first = anchor[..., None, None].expand(*anchor.shape, 1, found.ids_KC.shape[-1])
        before_KA = torch.cat([first, found.ids_KC[..., :-1, :]], -2)
        edges_KAC = found.scores_KC[..., None, :] + self.bonus(hidden_KH, before_KA, found.ids_KC)
        # Every step's best slot for every slot before it; the anchor's slots are all alike.
        best_KA = edges_KAC.argmax(-1)
        # Composed two and two, four and four, …: few launches for any number of places.
        slot_KA, span = best_KA, 1
        while span < slot_KA.shape[-2]:
            later = slot_KA[..., span:, :].gather(-1, slot_KA[..., :-span, :])
            slot_KA, span = torch.cat([slot_KA[..., :span, :], later], -2), 2 * span
        return found.ids_KC.gather(-1, slot_KA[..., :1])[..., 0]
