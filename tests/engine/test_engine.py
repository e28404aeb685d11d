"""The engine's rules on a fake target: stops, limits, loops, proposals, states, slots."""

import contextlib
from collections.abc import Sequence

import pytest
from fake_drafters import Constant, Hostile, Oracle
from fake_target import STOP, FakeTarget

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import Drafter
from ocria.models.base import FOLD_BLOCK, Prompt


def make_engine(target: FakeTarget, **changes: object) -> Engine:
    config = EngineConfig(
        stop_ids=frozenset({STOP}),
        forbidden_ids=frozenset({0, 2}),
        max_positions=1024,
        **changes,  # type: ignore[arg-type]
    )
    return Engine(target, config)


def make_request(max_tokens: int = 300, drafter: Drafter | None = None) -> Request:
    return Request(prompt=Prompt((5, 6, 7, 8)), image=None, max_tokens=max_tokens, drafter=drafter)


def read(drafter: Drafter | None = None, *, window: int = 16, max_tokens: int = 300) -> Result:
    return make_engine(FakeTarget(), window=window).run(make_request(max_tokens, drafter))


@pytest.mark.parametrize("window", [1, 2, 3, 8, 16, 31, 32])
@pytest.mark.parametrize("error_rate", [0.0, 0.1, 0.5, 1.0])
def test_proposals_never_change_the_result(window: int, error_rate: float) -> None:
    plain = read()
    drafted = read(Oracle(plain.token_ids, error_rate), window=window)
    assert drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    assert drafted.finish == plain.finish


def test_a_hostile_drafter_costs_speed_only() -> None:
    assert read(Hostile()).token_ids == read().token_ids


def test_a_right_drafter_saves_passes() -> None:
    plain = read()
    drafted = read(Oracle(plain.token_ids, 0.0), window=16)
    assert drafted.steps <= -(-plain.steps // 16) + 1
    assert sum(n * count for n, count in enumerate(drafted.accepted)) >= len(plain.token_ids) - 1


def test_a_drafter_hears_every_token_once() -> None:
    plain = read()
    oracle = Oracle(plain.token_ids, 0.2)
    drafted = read(oracle)
    assert oracle.prompts == [(5, 6, 7, 8)]
    assert tuple(token for emitted, _ in oracle.heard for token in emitted) == plain.token_ids
    assert oracle.heard[0] == (plain.token_ids[:1], 0)
    sizes = [len(emitted) for emitted, _ in oracle.heard[1:]]
    assert [sizes.count(n) for n in range(len(drafted.accepted))] == list(drafted.accepted)
    assert all(accepted == len(emitted) - 1 for emitted, accepted in oracle.heard[1:-1])


def test_a_drafter_cannot_change_what_was_emitted() -> None:
    class Forger(Constant):
        def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
            with contextlib.suppress(TypeError):
                emitted[-1] = 7  # type: ignore[index]
            return super().propose(emitted, most)

    assert read(Forger(9)).token_ids == read().token_ids


def test_the_stop_token_ends_and_is_not_emitted() -> None:
    result = make_engine(FakeTarget(script=[9, 10, 11, STOP])).run(make_request())
    assert (result.token_ids, result.finish) == ((9, 10, 11), "eos")
    assert len(result.logprobs) == 3


def test_an_empty_page() -> None:
    result = make_engine(FakeTarget(script=[STOP])).run(make_request())
    assert (result.token_ids, result.finish, result.steps) == ((), "eos", 0)


@pytest.mark.parametrize("limit", [1, 2, 7])
@pytest.mark.parametrize("drafter", [None, Constant(9)])
def test_the_token_limit(limit: int, drafter: Drafter | None) -> None:
    script = [9] * 20 + [STOP]
    result = make_engine(FakeTarget(script=script)).run(make_request(limit, drafter))
    assert (result.token_ids, result.finish) == ((9,) * limit, "length")


def test_a_page_of_exactly_the_limit_is_not_truncated() -> None:
    result = make_engine(FakeTarget(script=[9, 10, STOP])).run(make_request(2))
    assert (result.token_ids, result.finish) == ((9, 10), "eos")


@pytest.mark.parametrize("window", [1, 16])
def test_a_loop_is_cut_to_its_first_copy(window: int) -> None:
    text = [9, 10, 11, 12]
    target = FakeTarget(script=text + [20, 21, 22] * 500)
    truth = text + [20, 21, 22] * 500
    engine = make_engine(target, window=window)
    result = engine.run(make_request(900, Oracle(truth, 0.1)))
    assert result.finish == "loop"
    assert list(result.token_ids) == [*text, 20, 21, 22]
    assert len(result.logprobs) == len(result.token_ids)
    # Two copies may be text; past them the loop may cost at most 64 tokens and one window.
    assert target.num_passes <= len(text) + 2 * 3 + 64 + 1


def test_folds_happen_once_at_absolute_positions() -> None:
    for error_rate in (0.0, 0.4, 1.0):
        truth = FakeTarget(script=list(range(3, 43)) * 5)
        oracle = Oracle(list(range(3, 43)) * 5, error_rate)
        make_engine(truth).run(make_request(150, oracle))
        # The prefill folds its own whole blocks; 4 prompt rows hold none.
        assert truth.folded == list(range((4 + 150) // FOLD_BLOCK))


def test_several_requests_share_the_slots() -> None:
    target = FakeTarget()
    engine = make_engine(target, num_slots=2)
    tickets = [engine.submit(make_request(20 + n)) for n in range(5)]
    results = dict(engine.stream())
    assert sorted(results) == tickets
    for n, ticket in enumerate(tickets):
        assert results[ticket].token_ids == read(max_tokens=20 + n).token_ids


def test_forbidden_tokens_are_never_chosen() -> None:
    assert not {0, 2} & set(read().token_ids)


def test_a_closed_engine_takes_new_requests() -> None:
    engine = make_engine(FakeTarget())
    engine.submit(make_request())
    engine.step()
    engine.close()
    assert engine.run(make_request()).token_ids == read().token_ids


def test_what_may_not_open_a_page_may_stand_in_it() -> None:
    first, *rest = read(max_tokens=40).token_ids
    banned = Request(
        prompt=Prompt((5, 6, 7, 8)), image=None, max_tokens=40, not_first=frozenset({first})
    )
    opened = make_engine(FakeTarget()).run(banned).token_ids
    assert opened[0] != first
    inside = Request(
        prompt=Prompt((5, 6, 7, 8)), image=None, max_tokens=40, not_first=frozenset({rest[0]})
    )
    assert make_engine(FakeTarget()).run(inside).token_ids == (first, *rest)
