"""Weight-less drafters, and what `auto` may cost."""

import random
from collections.abc import Sequence

import pytest
from fake_drafters import Constant, Hostile, Oracle
from fake_target import STOP, FakeTarget
from hypothesis import given, settings
from hypothesis import strategies as st

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import AutoDrafter, Drafter, NgramDrafter, PassCost, Past, Source
from ocria.engine.speculative.auto import GRANT, SHARE
from ocria.models.base import Prompt

CHEAP = PassCost(points=((1, 1.0), (16, 1.3), (17, 2.0), (32, 2.4)))
DEAR = PassCost(points=((1, 1.0), (16, 6.0), (32, 12.0)))


def read(drafter: Drafter | None, *, window: int = 16, script: list[int] | None = None) -> Result:
    config = EngineConfig(
        stop_ids=frozenset({STOP}),
        # Without a script the target would stop by chance.
        forbidden_ids=frozenset({0, 2}) if script else frozenset({0, 2, STOP}),
        max_positions=2048,
        window=window,
    )
    target = FakeTarget(script=script)
    request = Request(prompt=Prompt((5, 6)), image=None, max_tokens=400, drafter=drafter)
    return Engine(target, config).run(request)


def source(drafter: Drafter, *, name: str = "x", call_cost: float = 0.001) -> Source:
    return Source(name, drafter, call_cost, first=0.5, later=0.8)


def heard(drafter: NgramDrafter, *pages: Sequence[int]) -> NgramDrafter:
    for page in pages:
        drafter.prepare(Prompt(()))
        drafter.observe(page, 0)
    return drafter


class TestNgram:
    def test_it_goes_on_as_before(self) -> None:
        drafter = heard(NgramDrafter(), [1, 2, 3, 4, 5, 6, 9, 1, 2, 3])
        assert list(drafter.propose((), 3)) == [4, 5, 6]

    def test_the_longest_past_wins_over_the_newest(self) -> None:
        page = [7, 1, 2, 3, 4, 50, 8, 9, 2, 3, 4, 60, 7, 1, 2, 3, 4]
        assert heard(NgramDrafter(), page).propose((), 1) == [50]

    def test_of_equal_pasts_the_newest_wins(self) -> None:
        page = [1, 2, 50, 9, 1, 2, 60, 8, 1, 2]
        assert heard(NgramDrafter(), page).propose((), 1) == [60]

    def test_earlier_pages_are_known_and_pages_are_apart(self) -> None:
        drafter = heard(NgramDrafter(), [1, 2, 3, 4, 5], [1, 2])
        assert list(drafter.propose((), 9)) == [3, 4, 5]
        assert not heard(NgramDrafter(), [8, 1], [2, 3, 8, 1]).propose((), 9)

    def test_a_repeating_tail_goes_on_repeating(self) -> None:
        drafter = heard(NgramDrafter(), [5, 6, 7, 5, 6, 7])
        assert list(drafter.propose((), 8)) == [5, 6, 7, 5, 6, 7, 5, 6]

    def test_nothing_known_nothing_proposed(self) -> None:
        assert NgramDrafter().propose((), 9) == ()
        assert not heard(NgramDrafter(), [1, 2, 3, 4]).propose((), 9)

    def test_its_memory_is_bounded(self) -> None:
        document = Past(max_tokens=100)
        drafter = NgramDrafter(document)
        generator = random.Random(0)
        for _ in range(50):
            heard(drafter, [generator.randrange(30) for _ in range(70)])
            assert len(document.tokens) <= 100
            assert sum(map(len, document._indexes[2].values())) <= 100
        heard(drafter, [101, 102, 103, 104, 9, 101, 102, 103])
        assert drafter.propose((), 1) == [104]

    @given(st.lists(st.lists(st.integers(3, 6), max_size=40), max_size=5), st.integers(1, 31))
    def test_what_it_proposes_has_been_written(self, pages: list[list[int]], most: int) -> None:
        drafter = heard(NgramDrafter(), *pages)
        proposed = list(drafter.propose((), most))
        assert len(proposed) <= most and set(proposed) <= {3, 4, 5, 6}
        again = heard(NgramDrafter(), *pages)
        assert list(again.propose((), most)) == proposed


@pytest.mark.parametrize(("rows", "cost"), [(1, 1.0), (16, 1.3), (17, 2.0), (31, 2.373), (8, 1.14)])
def test_pass_costs_are_joined_by_lines(rows: int, cost: float) -> None:
    assert CHEAP.of(rows) == pytest.approx(cost, abs=1e-3)


def all_kinds() -> dict[str, Drafter]:
    truth = read(None).token_ids
    return {
        "ngram": NgramDrafter(),
        "auto, nobody": AutoDrafter((), CHEAP),
        "auto, hostile": AutoDrafter((source(Hostile()), source(Constant())), CHEAP),
        "auto, half right": AutoDrafter((source(Oracle(truth, 0.4)), source(Hostile())), CHEAP),
        "auto, right": AutoDrafter((source(Oracle(truth, 0.0)), source(NgramDrafter())), DEAR),
    }


@pytest.mark.parametrize("window", [2, 3, 5, 16, 17, 32])
@pytest.mark.parametrize("kind", list(all_kinds()))
def test_no_drafter_changes_the_result(kind: str, window: int) -> None:
    plain, drafted = read(None), read(all_kinds()[kind], window=window)
    assert drafted.token_ids == plain.token_ids and len(plain.token_ids) >= 300
    assert drafted.logprobs == plain.logprobs


def test_a_document_of_equal_pages_is_drafted_from_its_first() -> None:
    generator = random.Random(3)
    script = [generator.randrange(3, 50) for _ in range(200)]
    drafter = NgramDrafter()
    first, second = (read(drafter, script=script) for _ in range(2))
    assert first.token_ids == second.token_ids == tuple(script)
    assert second.steps < first.steps / 8


def replay(drafter: AutoDrafter, truth: Sequence[int], cost: PassCost, window: int) -> float:
    """What decoding `truth` costs in passes of one row, calls left out."""
    drafter.prepare(Prompt(()))
    drafter.observe(truth[:1], 0)
    done, spent = 1, 0.0
    while done < len(truth):
        proposed = drafter.propose(truth[:done], window - 1)
        right = 0
        while right < len(proposed) and truth[done : done + 1] == [proposed[right]]:
            right, done = right + 1, done + 1
        emitted = truth[done - right : done + 1]
        done += 1
        spent += cost.of(1 + len(proposed))
        drafter.observe(emitted, right)
    return spent


class Trickster:
    """Right where its plan says so, wrong elsewhere, and counts what its calls cost."""

    def __init__(self, truth: Sequence[int], plan: Sequence[bool], call_cost: float) -> None:
        self._truth, self._plan = truth, plan
        self._call_cost = call_cost
        self.spent = 0.0

    def prepare(self, prompt: Prompt) -> None:
        pass

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        self.spent += self._call_cost
        places = range(len(emitted), min(len(self._truth), len(emitted) + most))
        return [self._truth[n] if self._plan[n % len(self._plan)] else -1 for n in places]

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        pass


PLANS = {
    "never": [False],
    "first tokens only": [True, False],
    "good, then bad": [True] * 200 + [False] * 400,
    "bad, then good": [False] * 200 + [True] * 400,
    "in bursts": ([True] * 15 + [False]) * 6 + [False] * 60,
}


@pytest.mark.parametrize("cost", [CHEAP, DEAR], ids=["cheap rows", "dear rows"])
@pytest.mark.parametrize("plan", list(PLANS))
def test_auto_costs_little_where_drafting_does_not_help(plan: str, cost: PassCost) -> None:
    check_bound(PLANS[plan], cost, 16)


@settings(max_examples=150, deadline=None)
@given(st.lists(st.booleans(), min_size=1, max_size=60), st.booleans(), st.integers(2, 32))
def test_auto_s_bound_on_any_trace(plan: list[bool], is_dear: bool, window: int) -> None:
    check_bound(plan, DEAR if is_dear else CHEAP, window)


def check_bound(plan: Sequence[bool], cost: PassCost, window: int) -> None:
    truth = [3 + n % 47 for n in range(600)]
    tricksters = [Trickster(truth, plan, call) for call in (0.001, 0.01)]
    auto = AutoDrafter([source(t, call_cost=t._call_cost) for t in tricksters], cost)
    spent = replay(auto, truth, cost, window) + sum(t.spent for t in tricksters)
    plain = len(truth) - 1.0
    assert spent <= plain + GRANT + SHARE * len(truth)
    assert spent <= 1.03 * plain


def test_auto_follows_who_is_right_and_finds_who_becomes_so() -> None:
    truth = [3 + n * 7 % 47 for n in range(900)]
    late = Trickster(truth, [False] * 300 + [True] * 600, 0.001)
    auto = AutoDrafter([source(Constant(-1), name="wrong"), source(late, name="late")], CHEAP)
    spent = replay(auto, truth, CHEAP, 16)
    assert auto.used == "late"
    # 300 plain passes, then 600 tokens of which 16 go in a pass of 1.3.
    assert spent < 300 * 1.03 + 600 / 16 * 1.3 * 1.5


def test_auto_names_nobody_when_nobody_helped() -> None:
    auto = AutoDrafter([source(Constant(-1))], CHEAP)
    replay(auto, [3 + n % 47 for n in range(100)], CHEAP, 16)
    assert auto.used == "none"


def test_auto_leaves_a_dear_source_alone_while_a_cheap_one_is_right() -> None:
    truth = [3 + n * 7 % 47 for n in range(900)]
    cheap, dear = (Trickster(truth, [True], call) for call in (0.001, 0.35))
    sources = [source(cheap, name="cheap", call_cost=0.001), source(dear, call_cost=0.35)]
    spent = replay(AutoDrafter(sources, CHEAP), truth, CHEAP, 16)
    assert spent < 900 / 16 * 1.3 * 1.2
    assert dear.spent <= SHARE * spent + 2 * 0.35


def test_auto_pays_for_a_dear_source_that_is_worth_it() -> None:
    truth = [3 + n * 7 % 47 for n in range(900)]
    wrong, dear = Trickster(truth, [False], 0.001), Trickster(truth, [True], 0.35)
    auto = AutoDrafter([source(wrong, name="w"), source(dear, name="d", call_cost=0.35)], CHEAP)
    spent = replay(auto, truth, CHEAP, 16) + dear.spent
    assert auto.used == "d"
    assert spent < 900 / 16 * (1.3 + 0.35) * 1.3


def test_auto_goes_on_with_a_good_source_that_begins_with_bad_luck() -> None:
    truth = [3 + n * 7 % 47 for n in range(400)]
    # Half a pass a call: after two lost ones 0.85 would be gone.
    plan = [False] * 5 + ([True] * 3 + [False]) * 99
    dear = Trickster(truth, plan, 0.49)
    auto = AutoDrafter([Source("d", dear, 0.49, first=0.7, later=0.8)], CHEAP)
    spent = replay(auto, truth, CHEAP, 16) + dear.spent
    # Four tokens for a call and a pass.
    assert spent < 5 * 1.8 + 400 / 4 * (1.3 + 0.49)


def test_what_was_known_long_ago_weighs_less() -> None:
    fresh, old = source(Constant()), source(Constant())
    for drafted, passes in ((fresh, 0), (old, 50)):
        for _ in range(passes):
            drafted.judge([7])
        drafted.expected, drafted.is_fresh = [3], True
        drafted.judge([3])
    assert fresh.first == pytest.approx(0.525)
    assert old.first == pytest.approx(0.65)


def test_auto_asks_a_useless_source_seldom_enough_to_pay_for_it() -> None:
    useless = Constant(-1)
    auto = AutoDrafter([source(useless, call_cost=0.5)], CHEAP)
    replay(auto, [3 + n % 47 for n in range(400)], CHEAP, 16)
    assert useless.num_calls * 0.5 <= GRANT + SHARE * 400
