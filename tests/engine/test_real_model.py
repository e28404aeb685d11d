"""A small random model of the real architecture: windows, near-ties, company, rejected states."""

import random
from collections.abc import Sequence

import pytest
import torch
from fake_drafters import Hostile, Oracle
from small_model import VOCABULARY, build
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import AutoDrafter, Drafter, NgramDrafter, PassCost, Source
from ocria.engine.state import StatePool
from ocria.kernels.gated_delta.reference import delta_rows
from ocria.models.base import Prompt, SequenceState, Window
from ocria.models.qwen3_5 import delta
from ocria.models.qwen3_5.model import Qwen35


@pytest.fixture(scope="module")
def target() -> Qwen35:
    return build()


def make_engine(target: Qwen35, window: int = 16, num_slots: int = 1) -> Engine:
    config = EngineConfig(
        stop_ids=frozenset({0}),
        forbidden_ids=frozenset(range(88, VOCABULARY)) | {0},
        max_positions=1024,
        num_slots=num_slots,
        window=window,
    )
    return Engine(target, config)


def make_prompt(length: int = 37) -> Prompt:
    return Prompt(tuple(3 + n * 5 % 80 for n in range(length)))


def read(target: Qwen35, drafter: Drafter | None, window: int) -> Result:
    request = Request(prompt=make_prompt(), image=None, max_tokens=320, drafter=drafter)
    return make_engine(target, window).run(request)


@pytest.fixture(scope="module")
def plain(target: Qwen35) -> Result:
    return read(target, None, 16)


def test_the_pairs_nearly_tie(plain: Result) -> None:
    assert len(plain.token_ids) == 320
    # Both rows of a pair win now and then, so the last bits decide.
    assert {token % 2 for token in plain.token_ids} == {0, 1}


def make_drafter(kind: str, truth: Sequence[int]) -> Drafter | None:
    """`truth` is what the page will say."""
    wrong = Oracle(truth, 0.25, VOCABULARY)
    kinds: dict[str, Drafter | None] = {
        "none": None,
        "right": Oracle(truth, 0.0),
        "often wrong": wrong,
        "hostile": Hostile(),
        "ngram": NgramDrafter(),
        "auto": AutoDrafter(
            [Source("x", wrong, 0.001, 0.5, 0.5)], PassCost(points=((1, 1.0), (16, 1.3)))
        ),
    }
    return kinds[kind]


@pytest.mark.parametrize(
    ("kind", "window"),
    [
        *(("often wrong", window) for window in (2, 3, 7, 16, 17, 32)),
        *((kind, 32) for kind in ("right", "hostile", "ngram", "auto")),
    ],
)
def test_every_drafter_gives_the_same_bits(
    target: Qwen35, plain: Result, kind: str, window: int
) -> None:
    drafted = read(target, make_drafter(kind, plain.token_ids), window)
    assert drafted.token_ids == plain.token_ids
    assert drafted.logprobs == plain.logprobs
    if kind == "often wrong":
        assert len([n for n, count in enumerate(drafted.accepted) if count]) >= min(3, window)


# Lengths that end inside tiles, fold blocks and prefill chunks, and on their edges.
LENGTHS = (1, 31, 32, 37, 64, 255, 256, 300)
KINDS = ("none", "often wrong", "right", "hostile", "ngram", "auto", "often wrong", "none")


def limit_of(length: int) -> int:
    return 330 - length


@pytest.fixture(scope="module")
def alone(target: Qwen35) -> list[Result]:
    """Eight pages of different lengths, each decoded plainly and by itself."""
    return [
        make_engine(target).run(
            Request(prompt=make_prompt(length), image=None, max_tokens=limit_of(length))
        )
        for length in LENGTHS
    ]


def check_company(
    target: Qwen35, alone: list[Result], *, window: int, num_slots: int, seed: int
) -> None:
    """Reads the eight pages side by side with various drafters and compares every bit."""
    engine = make_engine(target, window, num_slots)
    order = list(range(len(LENGTHS)))
    random.Random(seed).shuffle(order)
    tickets = {
        engine.submit(
            Request(
                prompt=make_prompt(LENGTHS[page]),
                image=None,
                max_tokens=limit_of(LENGTHS[page]),
                drafter=make_drafter(KINDS[(page + seed) % 8], alone[page].token_ids),
            )
        ): page
        for page in order
    }
    found = {tickets[ticket]: result for ticket, result in engine.stream()}
    for page, expected in enumerate(alone):
        result = found[page]
        assert isinstance(result, Result)
        assert result.token_ids == expected.token_ids, f"page {page}"
        assert result.logprobs == expected.logprobs, f"page {page}"


@pytest.mark.parametrize(("window", "num_slots"), [(32, 8), (16, 8), (5, 3)])
def test_company_changes_no_bit(
    target: Qwen35, alone: list[Result], window: int, num_slots: int
) -> None:
    check_company(target, alone, window=window, num_slots=num_slots, seed=window)


@pytest.mark.slow
@pytest.mark.parametrize("window", range(2, 33))
def test_company_changes_no_bit_at_any_block_size(
    target: Qwen35, alone: list[Result], window: int
) -> None:
    check_company(target, alone, window=window, num_slots=8, seed=window)


def sequential_blocks(
    state_RKV: Tensor,
    q_GCHK: Tensor,
    k_GCHK: Tensor,
    v_GCRV: Tensor,
    g_GCR: Tensor,
    beta_GCR: Tensor,
    *,
    num_states: int | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """The recurrence row by row, in place of the block form."""
    outputs, states = [], []
    for rows in zip(q_GCHK, k_GCHK, v_GCRV, g_GCR, beta_GCR, strict=True):
        out_CRV, state_RKV = delta_rows(state_RKV, *rows)
        outputs.append(out_CRV)
        states.append(state_RKV)
    return torch.stack(outputs), states[:num_states]


def advance(
    target: Qwen35, lengths: Sequence[int], *, most_rows: int, seed: int
) -> list[SequenceState]:
    """Reads 70 more tokens of several sequences, in windows of which some rows are rejected."""
    generator, pool = random.Random(seed), StatePool(target, num_slots=4, max_positions=512)
    states = []
    for length in lengths:
        _, state = pool.acquire()
        pool.read(state, make_prompt(length), None)
        states.append(state)
    ends = {id(state): state.length + 70 for state in states}
    while unfinished := [state for state in states if state.length < ends[id(state)]]:
        windows, kept = [], []
        for state in unfinished:
            num_real = min(generator.randint(1, most_rows), ends[id(state)] - state.length)
            num_wrong = generator.randint(0, most_rows - num_real)
            real = [3 + place * 7 % 80 for place in range(state.length, state.length + num_real)]
            windows.append(Window(state, real + [4] * num_wrong))
            kept.append((state, num_real))
        target.verify(windows)
        pool.commit(kept)
    return states


@pytest.mark.parametrize(
    ("dtype", "tolerance"), [(torch.float64, 1e-9), (torch.float32, 1e-4)], ids=["f64", "f32"]
)
def test_states_are_the_sequential_ones(
    dtype: torch.dtype, tolerance: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    target, lengths = build(dtype), (3, 32, 61)
    found = advance(target, lengths, most_rows=32, seed=5)
    with monkeypatch.context() as patch:
        patch.setattr(delta, "delta_blocks", sequential_blocks)
        expected = [advance(target, [n], most_rows=1, seed=0)[0] for n in lengths]
    for ours, theirs in zip(found, expected, strict=True):
        assert ours.length == theirs.length
        for name in ("checkpoint_LRKW", "conv_in_LEX", "keys_LJSD", "values_LJSD"):
            mine, other = getattr(ours, name), getattr(theirs, name)
            if name.endswith("LJSD"):
                mine, other = mine[:, :, : ours.length], other[:, :, : ours.length]
            if name == "conv_in_LEX":
                # The convolution reads the last three rows.
                last = [place % mine.shape[1] for place in range(ours.length - 3, ours.length)]
                mine, other = mine[:, last], other[:, last]
            assert float((mine - other).abs().max()) <= tolerance, name
