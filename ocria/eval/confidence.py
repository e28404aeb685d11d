"""Calibration of confidence: does a low value point at the blocks that are wrong?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rapidfuzz import fuzz

from ocria.eval.normalize import normalise, plain_from_markdown

WRONG_BELOW = 90.0
"""A block is wrong when less than this share (in %) of it is found, in one piece, in the truth."""
MAX_PIECE_CHARS = 1000
"""Longer blocks are looked for in pieces: one of 22,000 characters took 2.5 s in whole."""


@dataclass(frozen=True, kw_only=True)
class JudgedBlock:
    """A block's confidence in 0..1 and whether its text differs from the truth."""

    confidence: float
    wrong: bool


def judge_block(text: str, confidence: float, truth_plain: str) -> JudgedBlock | None:
    """Hold the text of a block against a normalised truth; None for a block without text."""
    plain = normalise(plain_from_markdown(text))
    if not plain:
        return None
    if plain in truth_plain:
        return JudgedBlock(confidence=confidence, wrong=False)
    # partial_ratio slides the shorter text: a block longer than the truth cannot be right.
    score = _share_found(plain, truth_plain) if len(plain) <= len(truth_plain) else 0.0
    return JudgedBlock(confidence=confidence, wrong=score < WRONG_BELOW)


def _share_found(plain: str, truth_plain: str) -> float:
    """How much of a text, in %, stands in the truth: the mean of its pieces, each by its length."""
    pieces = [plain[i : i + MAX_PIECE_CHARS] for i in range(0, len(plain), MAX_PIECE_CHARS)]
    found = sum(len(piece) * fuzz.partial_ratio(piece, truth_plain) for piece in pieces)
    return found / len(plain)


def auroc_of_wrong(blocks: Sequence[JudgedBlock]) -> float | None:
    """Probability that a wrong block has lower confidence than a right one; ties count half.

    The area under the ROC curve as the Mann-Whitney statistic. None unless both kinds are there.
    """
    wrong = [block.confidence for block in blocks if block.wrong]
    right = [block.confidence for block in blocks if not block.wrong]
    if not wrong or not right:
        return None
    rank_sum = 0.0
    ordered = sorted(block.confidence for block in blocks)
    ranks: dict[float, float] = {}
    start = 0
    while start < len(ordered):
        end = start
        while end < len(ordered) and ordered[end] == ordered[start]:
            end += 1
        ranks[ordered[start]] = (start + 1 + end) / 2
        start = end
    rank_sum = sum(ranks[value] for value in right)
    pairs = len(wrong) * len(right)
    return (rank_sum - len(right) * (len(right) + 1) / 2) / pairs
