"""Character and word scores of one text against its truth.

Distances come from rapidfuzz, whose Levenshtein and LCS are bit-parallel (Hyyrö 2003: n*m/64
word operations), so that a 50,000-character page costs about 4*10^7 of them and never n*m.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass

from rapidfuzz.distance import LCSseq, Levenshtein

from ocria.eval.normalize import normalise, plain_from_markdown, words

MIN_ANCHORS = 5


@dataclass(frozen=True, kw_only=True)
class TextScores:
    """Scores of one page. Error rates and edits: 0 is right. F1 and accuracy: 1 is right.

    `order_edit` is None where fewer than MIN_ANCHORS words could tell the order.
    """

    cer: float
    cer_raw: float
    wer: float
    word_f1: float
    words_in_order: float
    order_edit: float | None


def error_rate(truth: str | list[str], prediction: str | list[str]) -> float:
    """Levenshtein distance over the length of the truth, clipped at 1 (ISRI's rate is not).

    Empty truth: 0 for an empty prediction, else 1.
    """
    if not truth:
        return float(bool(prediction))
    return min(1.0, Levenshtein.distance(truth, prediction) / len(truth))


def word_bag_f1(truth: list[str], prediction: list[str]) -> float:
    """F1 over the two multisets of words; order does not count."""
    if not truth and not prediction:
        return 1.0
    common = sum((Counter(truth) & Counter(prediction)).values())
    return 2 * common / (len(truth) + len(prediction))


def in_order_accuracy(truth: list[str], prediction: list[str]) -> float:
    """Share of the truth's words that the longest common subsequence holds."""
    if not truth:
        return float(not prediction)
    return LCSseq.similarity(truth, prediction) / len(truth)


def order_edit_distance(truth: list[str], prediction: list[str]) -> float | None:
    """How much of the reading order has to be moved: 0 same order, towards 1 scrambled.

    Anchors are words that occur exactly once in both texts; with the longest run of anchors in the
    same order held fixed, the result is the share of anchors outside it. Misread words are no
    anchors, so this does not repeat the character error rate.
    """
    once_in_truth = {word for word, count in Counter(truth).items() if count == 1}
    once_in_prediction = {word for word, count in Counter(prediction).items() if count == 1}
    anchors = once_in_truth & once_in_prediction
    if len(anchors) < MIN_ANCHORS:
        return None
    position = {word: index for index, word in enumerate(prediction) if word in anchors}
    ascending: list[int] = []
    for place in (position[word] for word in truth if word in anchors):
        index = bisect_left(ascending, place)
        ascending[index : index + 1] = [place]
    return 1.0 - len(ascending) / len(anchors)


def score_text(truth: str, prediction: str, *, truth_is_markdown: bool) -> TextScores:
    """Score the Markdown `prediction` of one page against `truth`."""
    truth_plain = normalise(plain_from_markdown(truth) if truth_is_markdown else truth)
    found_plain = normalise(plain_from_markdown(prediction))
    truth_words, found_words = words(truth_plain), words(found_plain)
    return TextScores(
        cer=error_rate(truth_plain, found_plain),
        cer_raw=error_rate(truth.strip(), prediction.strip()),
        wer=error_rate(truth_words, found_words),
        word_f1=word_bag_f1(truth_words, found_words),
        words_in_order=in_order_accuracy(truth_words, found_words),
        order_edit=order_edit_distance(truth_words, found_words),
    )
