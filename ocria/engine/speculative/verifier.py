"""Accepts the longest proposed prefix that plain greedy decoding would have written itself."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor


class Verdict(NamedTuple):
    """What one target pass emits.

    Attributes:
        token_ids: accepted proposals, then the target's own next token: at least one.
        logprobs: natural log of their probabilities.
    """

    token_ids: list[int]
    logprobs: list[float]


def verify_greedy(logits_TV: Tensor, proposals: Sequence[int]) -> Verdict:
    """Judges T - 1 proposals by the logits of a window of T rows.

    Args:
        logits_TV: row i is what the target says after the window's token i, forbidden tokens at
            minus infinity. Token 0 is the last chosen token, the others are the proposals.
        proposals: T - 1 token ids.
    """
    best_T = logits_TV.argmax(-1).tolist()
    kept = 0
    while kept < len(proposals) and proposals[kept] == best_T[kept]:
        kept += 1
    rows_TV = logits_TV[: kept + 1].to(torch.promote_types(logits_TV.dtype, torch.float32))
    logprobs_T = rows_TV.amax(-1) - rows_TV.logsumexp(-1)
    return Verdict(best_T[: kept + 1], logprobs_T.tolist())
