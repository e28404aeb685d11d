"""Invention and loops."""

import random

import pytest

from ocria.eval import honesty
from ocria.eval.honesty import invented_words, is_looping, longest_loop, visible_chars


def test_only_what_shows_is_counted() -> None:
    assert visible_chars("") == 0
    assert visible_chars("<!-- page 1 -->\n![](x.png)\n\n") == 0
    assert visible_chars("# Ab c") == 3


def test_misread_words_are_not_invented() -> None:
    assert invented_words("the quick brown animal", "the qu1ck brovvn animal") == 0.0
    assert invented_words("the quick brown animal", "quick elephant zoology") == pytest.approx(
        2 / 3
    )
    assert invented_words("", "elephant") == 1.0
    assert invented_words("text", "") == 0.0


def test_a_loop_is_found_with_its_unit() -> None:
    loop = longest_loop("start " + "the same line, " * 30)
    assert loop is not None
    assert loop.period == len("the same line, ")
    assert loop.num_chars >= 30 * loop.period - 1


def test_ordinary_text_and_rulers_are_no_loops() -> None:
    source = random.Random(1)
    text = " ".join(str(source.randint(0, 99999)) for _ in range(2000))
    assert longest_loop(text) is None
    assert longest_loop("- " * 500) is None
    assert longest_loop("") is None


def test_a_page_that_repeats_itself_is_not_a_loop() -> None:
    page = "0.00 12.50 " * 60
    assert not is_looping(page, page)
    assert is_looping(page, page * 3)
    assert is_looping("short text", page)


def test_rows_that_lose_their_numbers_are_no_loop_unless_there_are_more_of_them() -> None:
    row = "five words make a row"
    page = " ".join(f"{number}. {row}" for number in range(1, 51))
    assert longest_loop(page) is None
    assert not is_looping(page, f"{row} " * 48)
    assert is_looping(page, f"{row} " * 100)
    assert is_looping(page, f"{page} " + "row row " * 40)


def test_a_page_without_truth_may_not_loop() -> None:
    page = "0.00 12.50 " * 60
    assert is_looping(None, page)


def test_loops_cost_one_vector_comparison_a_period(monkeypatch: pytest.MonkeyPatch) -> None:
    calls = []
    run = honesty._longest_run
    monkeypatch.setattr(honesty, "_longest_run", lambda equal: calls.append(1) or run(equal))
    longest_loop("abcdefghij" * 5000)
    assert len(calls) == honesty.MAX_LOOP_PERIOD
