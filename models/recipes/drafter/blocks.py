"""Blocks to learn from: random anchors of a reading, their labels, and the losses over them.

Shape legend: P pages, N blocks of a page, B rows of a block, K = B - 1 places, T text tokens,
V vocabulary, H hidden size.

A label is what the target itself would write. It holds up to the first place where that differs
from the forced text, this place included: behind it the target would be somewhere else, and
nothing that is drafted there can be accepted.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.models.drafter.model import DFlash
from ocria.models.drafter.selector import candidates
from ocria.models.recipes.drafter.target import FrozenTarget, Reading
from ocria.models.recipes.nano.vocabulary import PAD

Weighting = Literal["decay", "pace"]
_GAMMA = {8: 4.0, 10: 5.0, 16: 7.0}
# Share of certainty that D-PACE grants a place whatever its loss (arXiv 2605.18810).
_PACE_FLOOR = 0.5


class Blocks(NamedTuple):
    """Anchors of a batch of pages.

    Attributes:
        anchors_PN: sequence positions of the last tokens.
        anchor_ids_PN: these tokens.
        labels_PNK: what the target writes behind them.
        valid_PNK: places that count.
    """

    anchors_PN: Tensor
    anchor_ids_PN: Tensor
    labels_PNK: Tensor
    valid_PNK: Tensor


class Losses(NamedTuple):
    """Mean losses of a step, and tokens emitted for each block: drafted ones right, plus one.

    `possible` is what a perfect drafter would reach with these labels.
    """

    base: Tensor
    selector: Tensor
    emitted: Tensor
    possible: Tensor


def draw_blocks(reading: Reading, count: int, size: int, generator: torch.Generator) -> Blocks:
    """`count` anchors a page, anywhere in its text before the stop token.

    `generator` is the CPU's, so that a run draws the same anchors on any device.
    """
    ids_PT = reading.ids_PT
    length_P1 = (ids_PT != PAD).sum(1, keepdim=True)
    draws = torch.rand(len(ids_PT), count, generator=generator).to(ids_PT.device)
    places_PN = (draws * (length_P1 - 1).clamp(min=1)).long()
    return blocks_at(reading, places_PN, size)


def blocks_at(reading: Reading, places_PN: Tensor, size: int) -> Blocks:
    """Blocks whose anchors are the text tokens at `places_PN`."""
    ids_PT, greedy_PT = reading.ids_PT, reading.greedy_PT
    num_tokens = ids_PT.shape[1]
    ahead_PNK = places_PN[..., None] + torch.arange(1, size, device=ids_PT.device)
    inside = ahead_PNK < num_tokens
    ahead_PNK = ahead_PNK.clamp(max=num_tokens - 1)
    truth_PNK, labels_PNK = (_pick(of, ahead_PNK) for of in (ids_PT, greedy_PT))
    agrees = (truth_PNK == labels_PNK).long().cumprod(-1)
    reached = F.pad(agrees, (1, 0), value=1)[..., :-1].bool()
    return Blocks(
        anchors_PN=reading.text_start + places_PN,
        anchor_ids_PN=ids_PT.gather(1, places_PN),
        labels_PNK=labels_PNK,
        valid_PNK=inside & reached & (truth_PNK != PAD),
    )


def hidden_rows(
    drafter: DFlash, target: FrozenTarget, reading: Reading, blocks: Blocks, size: int
) -> Tensor:
    """The drafter's rows [P, N, K, H] for the places behind the anchors."""
    pages, rows = reading.taps_PSX.shape[:2]
    positions_PS = torch.arange(rows, device=reading.taps_PSX.device).expand(pages, -1)
    context = drafter.context(reading.taps_PSX, positions_PS)
    ids_PNB = blocks.anchor_ids_PN[..., None].repeat(1, 1, size)
    ids_PNB[..., 1:] = drafter.config.mask_token_id
    embedded = target.embed(ids_PNB)
    return drafter(embedded, blocks.anchors_PN, context, positions_PS)[..., 1:, :]


def losses(
    drafter: DFlash, target: FrozenTarget, hidden_PNKH: Tensor, blocks: Blocks, kind: Weighting
) -> Losses:
    """Cross entropy of every place, and of the selector with the true token before it."""
    logits_PNKV = target.head(hidden_PNKH)
    labels, valid = blocks.labels_PNK, blocks.valid_PNK
    base = F.cross_entropy(logits_PNKV.flatten(0, 2), labels.flatten(), reduction="none")
    base = base.view(labels.shape).masked_fill(~valid, 0.0)
    weights = place_weights(base.detach(), valid, kind)
    selector, drafted = _selected(drafter, hidden_PNKH, logits_PNKV, blocks, weights)
    with torch.no_grad():
        right = ((drafted == labels) & valid).long().cumprod(-1)
    return Losses(
        base=(base * weights).sum() / weights.sum().clamp(min=1e-6),
        selector=selector,
        emitted=1 + right.sum(-1).float().mean(),
        possible=1 + valid.sum(-1).float().mean(),
    )


def place_weights(base_PNK: Tensor, valid_PNK: Tensor, kind: Weighting) -> Tensor:
    """How much each place matters: exp(-(k - 1) / gamma), or D-PACE.

    D-PACE counts by how much a place moves the expected accepted length: the sum over m >= k of
    the chance that all places up to m are right.
    """
    if kind == "decay":
        places = base_PNK.shape[-1]
        gamma = _GAMMA.get(places + 1, (places + 1) / 2.3)
        steps = torch.arange(places, device=base_PNK.device)
        return torch.exp(-steps / gamma) * valid_PNK
    chance = (1 - _PACE_FLOOR) * torch.exp(-base_PNK) + _PACE_FLOOR
    survives = (chance * valid_PNK).cumprod(-1)
    return survives.flip(-1).cumsum(-1).flip(-1) * valid_PNK


def _selected(
    drafter: DFlash, hidden_PNKH: Tensor, logits_PNKV: Tensor, blocks: Blocks, weights: Tensor
) -> tuple[Tensor, Tensor]:
    """Loss of the selector, where the label is a candidate, and the path [P, N, K] it takes."""
    if drafter.config.selector is None:
        return logits_PNKV.new_zeros(()), logits_PNKV.argmax(-1)
    found = candidates(logits_PNKV, drafter.config, drafter.config.selector.top_k)
    before = torch.cat([blocks.anchor_ids_PN[..., None], blocks.labels_PNK[..., :-1]], -1)
    bonus = drafter.candidate_selector.bonus(hidden_PNKH, before[..., None], found.ids_KC)
    scores = found.scores_KC + bonus[..., 0, :]
    is_label = found.ids_KC == blocks.labels_PNK[..., None]
    weights = weights * is_label.any(-1)
    slots = is_label.long().argmax(-1)
    loss = F.cross_entropy(scores.flatten(0, 2), slots.flatten(), reduction="none")
    # A forbidden candidate stands at minus infinity and may make a place without label infinite.
    loss = torch.where(weights > 0, loss.view(slots.shape), 0.0)
    with torch.no_grad():
        path = drafter.candidate_selector.walk(hidden_PNKH, found, blocks.anchor_ids_PN)
    return (loss * weights).sum() / weights.sum().clamp(min=1e-6), path


def _pick(of_PT: Tensor, at_PNK: Tensor) -> Tensor:
    return of_PT.gather(1, at_PNK.flatten(1)).view(at_PNK.shape)
