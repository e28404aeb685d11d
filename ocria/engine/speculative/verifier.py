"""Accepts the longest proposed prefix that the target, decoding plainly, could have written."""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.engine.graphs import HostBest
from ocria.engine.speculative.drafter import Draft
from ocria.engine.speculative.sampling import Sampling, sample_window


class Judged(NamedTuple):
    """A window to be judged.

    Attributes:
        draft: the window's tokens but the first, which was chosen before.
        sampling: how to draw; None takes the most probable token.
        position: number of tokens that the page has before this window's first emission.
    """

    draft: Draft
    sampling: Sampling | None
    position: int


class Verdict(NamedTuple):
    """What one target pass emits for one sequence.

    Attributes:
        token_ids: accepted proposals, then the target's own next token: at least one.
        logprobs: natural log of their probabilities, before temperature and top-p.
    """

    token_ids: list[int]
    logprobs: list[float]


def verify(
    logits_TV: Tensor, windows: Sequence[Judged], best: HostBest | None = None
) -> list[Verdict]:
    """Judges the windows of a pass.

    Args:
        logits_TV: row i is what the target says after row i of the pass, forbidden tokens at
            minus infinity; window behind window, each one row longer than its draft. No rows
            where `best` is enough.
        windows: in the order of their rows.
        best: what the target chose itself; greedy windows go by it, whoever is sampled beside
            them. None has the logits searched.
    """
    best_ids, best_logprobs = best or _best(logits_TV)
    first, verdicts = 0, []
    for draft, sampling, position in windows:
        end = first + len(draft.token_ids) + 1
        if sampling is None:
            emitted = _greedy_prefix(best_ids[first:end], draft.token_ids)
            verdicts.append(Verdict(emitted, best_logprobs[first : first + len(emitted)]))
        else:
            emitted = sample_window(logits_TV[first:end], draft, sampling, position)
            logprobs_TV = _log_softmax(logits_TV[first : first + len(emitted)])
            picked_T1 = torch.tensor(emitted, device=logits_TV.device)[:, None]
            verdicts.append(Verdict(emitted, logprobs_TV.gather(-1, picked_T1)[:, 0].tolist()))
        first = end
    return verdicts


def _best(logits_TV: Tensor) -> HostBest:
    best_T = logits_TV.argmax(-1)
    logprobs_T = _log_softmax(logits_TV).gather(-1, best_T[:, None])[:, 0]
    return HostBest(best_T.tolist(), logprobs_T.tolist())


def _log_softmax(logits_TV: Tensor) -> Tensor:
    # The softmax of a row takes one core whatever the rows: its bits do not depend on their number.
    return logits_TV.to(torch.promote_types(logits_TV.dtype, torch.float32)).log_softmax(-1)


def _greedy_prefix(best: Sequence[int], proposals: Sequence[int]) -> list[int]:
    kept = 0
    while kept < len(proposals) and proposals[kept] == best[kept]:
        kept += 1
    return list(best[: kept + 1])
