"""Sampled tokens follow the target's own distribution, whatever is proposed."""

import random
from collections import Counter
from collections.abc import Mapping, Sequence

import pytest
import torch
from fake_drafters import Constant, Hostile, Oracle
from fake_target import STOP, FakeTarget
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import Draft, Drafter, Sampling
from ocria.engine.speculative.sampling import (
    Stream,
    draw,
    sample_window,
    target_distribution,
    uniform,
)
from ocria.models.base import Prompt

# Upper 0.1 % points of the chi-square distribution, by degrees of freedom.
CRITICAL = {5: 20.52, 35: 66.62}
VOCABULARY = 6
NUM_SEEDS = 2500


def chi_square(counts: Mapping[object, int], expected: Mapping[object, float]) -> float:
    total = sum(counts.values())
    assert set(counts) <= set(expected), "something was drawn that has no probability"
    return sum((counts.get(k, 0) - total * p) ** 2 / (total * p) for k, p in expected.items())


def logits(num_rows: int = 3) -> Tensor:
    generator = torch.Generator().manual_seed(2)
    return torch.randn(num_rows, VOCABULARY, generator=generator) * 1.2


def pairs(rows_TV: Tensor, sampling: Sampling) -> dict[object, float]:
    """Probability of each two tokens that follow each other, rows being independent."""
    first, second = (target_distribution(row, sampling).tolist() for row in rows_TV[:2])
    return {
        (a, b): first[a] * second[b]
        for a in range(VOCABULARY)
        for b in range(VOCABULARY)
        if first[a] * second[b] > 0
    }


def completed(emitted: list[int], rows_TV: Tensor, sampling: Sampling) -> tuple[int, int]:
    """The first two tokens, the second decoded by another pass if this one ended before."""
    if len(emitted) == 1:
        emitted = [*emitted, *sample_window(rows_TV[1:2], Draft(), sampling, 1)]
    return emitted[0], emitted[1]


@pytest.mark.parametrize(("temperature", "top_p"), [(0.7, 1.0), (1.5, 0.8)])
@pytest.mark.parametrize("kind", ["nothing", "sure", "right distribution", "wrong distribution"])
def test_two_tokens_follow_the_target(kind: str, temperature: float, top_p: float) -> None:
    rows_TV, counts = logits(), Counter[object]()
    generator = random.Random(1)
    lying = {0: 0.5, 3: 0.3, 5: 0.2}
    for seed in range(NUM_SEEDS):
        sampling = Sampling(temperature=temperature, top_p=top_p, seed=seed)
        honest = dict(enumerate(target_distribution(rows_TV[0], sampling).tolist()))
        if kind == "nothing":
            draft = Draft()
        elif kind == "sure":
            draft = Draft((2, 4))
        else:
            q = honest if kind == "right distribution" else lying
            q = {token: p for token, p in q.items() if p > 0}
            ids = generator.choices(list(q), list(q.values()), k=2)
            draft = Draft(tuple(ids), (q, q))
        rows = rows_TV[: len(draft.token_ids) + 1]
        emitted = sample_window(rows, draft, sampling, 0)
        counts[completed(emitted, rows_TV, sampling)] += 1
    expected = pairs(rows_TV, Sampling(temperature=temperature, top_p=top_p))
    likely = {key: p for key, p in expected.items() if p * NUM_SEEDS >= 5}
    rest = 1 - sum(likely.values())
    assert set(counts) <= set(expected)
    pooled = Counter({key: counts[key] for key in likely})
    pooled["rest"] = sum(n for key, n in counts.items() if key not in likely)
    table: dict[object, float] = {**likely, **({"rest": rest} if rest * NUM_SEEDS >= 5 else {})}
    if "rest" not in table:
        del pooled["rest"]
    # Wilson and Hilferty's form of the upper 0.1 % point.
    freedom = len(table) - 1
    critical = freedom * (1 - 2 / (9 * freedom) + 3.09 * (2 / (9 * freedom)) ** 0.5) ** 3
    assert chi_square(pooled, table) < critical


def test_the_test_would_see_a_wrong_rule() -> None:
    """Accepting a lie whenever it is likely at all shows at once."""
    rows_TV, counts = logits(), Counter[object]()
    sampling = Sampling()
    probs = target_distribution(rows_TV[0], sampling)
    for seed in range(NUM_SEEDS):
        token = 2 if uniform(seed, Stream.ACCEPT, 0) < 0.5 else draw(probs, uniform(seed, 0, 0))
        counts[token] += 1
    assert chi_square(counts, dict(enumerate(probs.tolist()))) > CRITICAL[5]


def test_a_right_distribution_is_always_accepted() -> None:
    rows_TV = logits()
    for seed in range(300):
        sampling = Sampling(seed=seed)
        q = dict(enumerate(target_distribution(rows_TV[0], sampling).tolist()))
        token = draw(torch.tensor(list(q.values())), uniform(seed, Stream.DRAFT, 0))
        assert sample_window(rows_TV[:2], Draft((token,), (q,)), sampling, 0)[0] == token


def test_top_p_keeps_the_fewest_tokens_that_reach_it() -> None:
    row_V = torch.tensor([0.5, 0.25, 0.125, 0.125]).log()
    kept = [
        int((target_distribution(row_V, Sampling(top_p=top_p)) > 0).sum())
        for top_p in (0.01, 0.5, 0.51, 0.75, 0.8, 0.9, 1.0)
    ]
    assert kept == [1, 1, 2, 2, 3, 4, 4]
    # Of equals the smaller id stays.
    assert float(target_distribution(row_V, Sampling(top_p=0.8))[2]) > 0


def test_forbidden_tokens_are_never_drawn() -> None:
    row_V = torch.tensor([-torch.inf, 0.0, -torch.inf, 1.0, -torch.inf])
    probs = target_distribution(row_V, Sampling(temperature=3.0))
    assert {draw(probs, n / 997) for n in range(997)} == {1, 3}
    assert draw(probs, 1 - 2.0**-53) == 3


def test_streams_are_independent_and_uniform() -> None:
    streams = [[uniform(seed, s, 7) for seed in range(2000)] for s in Stream]
    for number, stream in enumerate(streams):
        counts: Counter[object] = Counter(int(u * 6) for u in stream)
        assert chi_square(counts, dict.fromkeys(range(6), 1 / 6)) < CRITICAL[5]
        for other in streams[:number]:
            both: Counter[object] = Counter(
                (int(a * 6), int(b * 6)) for a, b in zip(stream, other, strict=True)
            )
            cells: dict[object, float] = {(a, b): 1 / 36 for a in range(6) for b in range(6)}
            assert chi_square(both, cells) < CRITICAL[35]
    assert uniform(3, Stream.TARGET, 7) == uniform(3, Stream.TARGET, 7)
    assert uniform(3, Stream.TARGET, 7) != uniform(3, Stream.TARGET, 8)


def read(
    drafter: Drafter | None, seed: int, *, window: int = 16, others: Sequence[Drafter | None] = ()
) -> Result:
    config = EngineConfig(
        stop_ids=frozenset({STOP}),
        forbidden_ids=frozenset({0, 2, STOP}),
        max_positions=1024,
        num_slots=1 + len(others),
        window=window,
    )
    engine = Engine(FakeTarget(), config)
    tickets = [
        engine.submit(
            Request(
                prompt=Prompt((5, 6)),
                image=None,
                max_tokens=300,
                drafter=one,
                sampling=Sampling(temperature=0.8, top_p=0.9, seed=seed + number),
            )
        )
        for number, one in enumerate((drafter, *others))
    ]
    result = dict(engine.stream())[tickets[0]]
    assert isinstance(result, Result)
    return result


def test_sure_proposals_change_no_sampled_token() -> None:
    plain = read(None, 4)
    assert plain.token_ids != read(None, 5).token_ids
    drafters = [Oracle(plain.token_ids, 0.0), Oracle(plain.token_ids, 0.4), Hostile(), Constant()]
    for window in (2, 9, 32):
        for drafter in drafters:
            assert read(drafter, 4, window=window).token_ids == plain.token_ids
    company = read(Oracle(plain.token_ids, 0.3), 4, others=(None, Hostile(), Constant()))
    assert company.token_ids == plain.token_ids


def test_a_right_drafter_saves_sampled_passes() -> None:
    plain = read(None, 4)
    assert read(Oracle(plain.token_ids, 0.0), 4).steps <= plain.steps / 15


def test_greedy_pages_ignore_how_a_proposal_was_drawn() -> None:
    class Drawn(Constant):
        def propose(self, emitted: Sequence[int], most: int) -> Draft:  # type: ignore[override]
            return Draft((3,) * most, ({3: 1.0},) * most)

    config = EngineConfig(
        stop_ids=frozenset({STOP}), forbidden_ids=frozenset({0, 2}), max_positions=512
    )
    results = [
        Engine(FakeTarget(), config).run(
            Request(prompt=Prompt((5, 6)), image=None, max_tokens=200, drafter=drafter)
        )
        for drafter in (None, Drawn())
    ]
    assert results[0].token_ids == results[1].token_ids


def test_a_proposal_that_cannot_have_been_drawn_ends_there() -> None:
    assert [Draft((3, 4), ({3: 1.0}, {5: 1.0})).explains(place) for place in (0, 1)] == [
        True,
        False,
    ]
    assert not Draft((3,), ()).explains(0)
