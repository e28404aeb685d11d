"""AUROC and the judgement of blocks."""

import random

import pytest

from ocria.eval.bootstrap import estimate
from ocria.eval.confidence import JudgedBlock, auroc_of_wrong, judge_block


def blocks(*pairs: tuple[float, bool]) -> list[JudgedBlock]:
    return [JudgedBlock(confidence=value, wrong=wrong) for value, wrong in pairs]


def test_auroc() -> None:
    assert auroc_of_wrong(blocks((0.1, True), (0.9, False))) == 1.0
    assert auroc_of_wrong(blocks((0.9, True), (0.1, False))) == 0.0
    assert auroc_of_wrong(blocks((0.5, True), (0.5, False))) == 0.5
    mixed = blocks((0.2, True), (0.6, True), (0.4, False), (0.6, False), (0.9, False))
    assert auroc_of_wrong(mixed) == pytest.approx((3 + 0 + 0.5 + 1) / 6)


def test_auroc_needs_both_kinds() -> None:
    assert auroc_of_wrong(blocks((0.5, True))) is None
    assert auroc_of_wrong([]) is None


def test_blocks_are_held_against_the_page() -> None:
    page = "a page with some words and a number 1234 in it"
    right = judge_block("**some** words and a number 1234", 0.9, page)
    wrong = judge_block("some quite other words", 0.9, page)
    assert right is not None and not right.wrong
    assert wrong is not None and wrong.wrong
    assert judge_block("  ", 0.9, page) is None


def test_a_block_longer_than_the_page_is_wrong() -> None:
    judged = judge_block("tiny and much more than that", 0.9, "tiny")
    assert judged is not None and judged.wrong


def test_estimate() -> None:
    value = estimate([0.0, 0.0, 1.0, 1.0])
    assert value is not None
    assert (value.mean, value.median, value.n) == (0.5, 0.5, 4)
    assert 0.0 <= value.low < 0.5 < value.high <= 1.0
    assert estimate([0.0, 0.0, 1.0, 1.0]) == value
    assert estimate([]) is None


def test_a_block_as_long_as_a_page_is_judged_by_its_pieces() -> None:
    source = random.Random(2)
    words = ["".join(source.choices("abcdefghij", k=6)) for _ in range(3000)]
    truth = " ".join(words)
    for share_wrong, wrong in ((0.02, False), (0.5, True)):
        read = " ".join(w if source.random() > share_wrong else "######" for w in words)
        block = judge_block(read, 0.5, truth)
        assert block is not None and block.wrong is wrong
