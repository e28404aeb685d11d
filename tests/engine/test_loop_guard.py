"""What counts as a loop, and what it may cost."""

import random

import pytest

from ocria.engine.loop_guard import WASTE_TOKENS, Loop, LoopGuard


def first_loop(tokens: list[int]) -> tuple[Loop | None, int]:
    """The loop found and how many tokens it took."""
    guard = LoopGuard()
    for count, token in enumerate(tokens, 1):
        loop = guard.observe([token])
        if loop is not None:
            return loop, count
    return None, len(tokens)


@pytest.mark.parametrize("period", [1, 2, 3, 7, 20, 64, 100, 256])
def test_a_loop_costs_at_most_64_tokens_past_its_second_copy(period: int) -> None:
    text = [-n for n in range(1, 40)]
    tail = list(range(period))
    loop, count = first_loop(text + tail * 300)
    assert loop == Loop(len(text) + period, period)
    assert count == len(text) + 2 * period + WASTE_TOKENS


def test_the_shortest_period_is_reported() -> None:
    loop, _ = first_loop([7] * 500)
    assert loop == Loop(1, 1)


def test_text_is_no_loop() -> None:
    generator = random.Random(0)
    assert first_loop([generator.randrange(300) for _ in range(20_000)])[0] is None


def test_rows_that_differ_in_one_number_are_no_loop() -> None:
    rows = [token for row in range(300) for token in (5, 6, 1000 + row, 7, 8, 9)]
    assert first_loop(rows)[0] is None


def test_a_paragraph_printed_twice_is_no_loop() -> None:
    paragraph = list(range(100))
    assert first_loop(paragraph * 2 + [500, 501] + paragraph)[0] is None


def test_windows_and_single_tokens_find_the_same() -> None:
    tokens = [1, 2, 3] + [4, 5] * 200
    guard, found = LoopGuard(), None
    for start in range(0, len(tokens), 13):
        found = guard.observe(tokens[start : start + 13])
        if found:
            break
    assert found == first_loop(tokens)[0]
