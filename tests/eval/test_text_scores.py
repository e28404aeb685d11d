"""Character and word scores, at their ends and against a known library."""

import random
import string

import jiwer
import pytest

from ocria.eval.text_scores import (
    error_rate,
    in_order_accuracy,
    order_edit_distance,
    score_text,
    word_bag_f1,
)

TRUTH = "one two three four five six seven eight"


def test_the_same_text_is_perfect() -> None:
    scores = score_text(TRUTH, TRUTH, truth_is_markdown=False)
    assert (scores.cer, scores.wer, scores.order_edit) == (0.0, 0.0, 0.0)
    assert (scores.word_f1, scores.words_in_order) == (1.0, 1.0)


def test_empty_prediction_is_wholly_wrong() -> None:
    scores = score_text(TRUTH, "", truth_is_markdown=False)
    assert (scores.cer, scores.wer, scores.word_f1, scores.words_in_order) == (1.0, 1.0, 0.0, 0.0)
    assert scores.order_edit is None


def test_empty_truth_allows_only_an_empty_prediction() -> None:
    assert score_text("", "", truth_is_markdown=False).cer == 0.0
    assert score_text("", "", truth_is_markdown=False).word_f1 == 1.0
    invented = score_text("", "words", truth_is_markdown=False)
    assert (invented.cer, invented.word_f1, invented.words_in_order) == (1.0, 0.0, 0.0)


def test_the_rate_is_clipped_at_one() -> None:
    assert error_rate("ab", "completely different and longer") == 1.0


def test_order_counts_in_some_scores_only() -> None:
    truth = TRUTH.split()
    scrambled = truth[4:] + truth[:4]
    assert word_bag_f1(truth, scrambled) == 1.0
    assert in_order_accuracy(truth, scrambled) == 0.5
    assert order_edit_distance(truth, scrambled) == 0.5


def test_repeated_words_count_as_often_as_they_stand() -> None:
    assert word_bag_f1(["a", "a", "b"], ["a"]) == pytest.approx(0.5)


def test_raw_rate_sees_what_normalisation_removes() -> None:
    scores = score_text("a - b", "**a** – b", truth_is_markdown=False)
    assert scores.cer == 0.0
    assert scores.cer_raw > 0.0


def test_unicode_forms_are_equal() -> None:
    assert score_text("café", "cafe\u0301", truth_is_markdown=False).cer == 0.0


def test_rates_equal_those_of_jiwer() -> None:
    source = random.Random(7)
    for _ in range(60):
        truth = "".join(source.choices(string.ascii_lowercase + "  ", k=200)).strip()
        changed = "".join(c for c in truth if source.random() > 0.1).strip() or "x"
        assert error_rate(truth, changed) == pytest.approx(min(1.0, jiwer.cer(truth, changed)))
        assert error_rate(truth.split(), changed.split()) == pytest.approx(
            min(1.0, jiwer.wer(truth, changed))
        )


def test_a_long_page_is_scored_by_bit_parallel_distances() -> None:
    # 50,000 characters: a distance in plain Python would need 2.5e9 steps and time out.
    source = random.Random(3)
    truth = " ".join(
        "".join(source.choices(string.ascii_lowercase, k=source.randint(2, 9))) for _ in range(7700)
    )[:50_000]
    prediction = truth[:20_000] + truth[20_400:]
    scores = score_text(truth, prediction, truth_is_markdown=False)
    assert scores.cer == pytest.approx(400 / 50_000, rel=0.05)
