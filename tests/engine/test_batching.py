"""Many requests at once on a fake target: order, fairness, memory, failures, cancelling."""

from collections.abc import Sequence

import pytest
import torch
from fake_drafters import Constant, Hostile, Oracle
from fake_target import STOP, FakeTarget
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine import state as state_module
from ocria.engine.memory import free_bytes, is_out_of_memory, slot_bytes, slots_that_fit
from ocria.engine.speculative import Drafter, TapDrafter
from ocria.errors import DeviceError, PageError
from ocria.models.base import ImagePatches, Output, Prompt, SequenceState, Window


def make_engine(target: FakeTarget, num_slots: int, **changes: object) -> Engine:
    config = EngineConfig(
        stop_ids=frozenset({STOP}),
        forbidden_ids=frozenset({0, 2, STOP}),
        max_positions=2048,
        num_slots=num_slots,
        **changes,  # type: ignore[arg-type]
    )
    return Engine(target, config)


def make_request(
    length: int = 4, *, max_tokens: int = 60, drafter: Drafter | None = None
) -> Request:
    prompt = Prompt(tuple(3 + n % 40 for n in range(length)))
    return Request(prompt=prompt, image=None, max_tokens=max_tokens, drafter=drafter)


def finish(engine: Engine) -> dict[int, Result]:
    results = {}
    for ticket, outcome in engine.stream():
        assert isinstance(outcome, Result), outcome
        results[ticket] = outcome
    return results


def alone(length: int, max_tokens: int = 60) -> Result:
    return make_engine(FakeTarget(), 1).run(make_request(length, max_tokens=max_tokens))


@pytest.mark.parametrize("num_slots", [1, 2, 8])
@pytest.mark.parametrize("chunks_per_step", [1, 8])
def test_results_do_not_depend_on_company(num_slots: int, chunks_per_step: int) -> None:
    lengths = [4, 300, 5, 257, 256, 6, 700, 7, 8, 33]
    expected = [alone(length) for length in lengths]
    engine = make_engine(FakeTarget(), num_slots, chunks_per_step=chunks_per_step)
    drafters = [Oracle(expected[n].token_ids, n / 10) for n in range(len(lengths))]
    tickets = [
        engine.submit(make_request(length, drafter=drafter))
        for length, drafter in zip(lengths, drafters, strict=True)
    ]
    results = finish(engine)
    assert [results[t].token_ids for t in tickets] == [r.token_ids for r in expected]
    assert [results[t].logprobs for t in tickets] == [r.logprobs for r in expected]


def test_one_pass_serves_everybody() -> None:
    target = FakeTarget()
    engine = make_engine(target, 4)
    for length in (4, 5, 6, 7):
        engine.submit(make_request(length))
    finish(engine)
    assert target.num_passes == 60
    assert all(sizes == [1, 1, 1, 1] for sizes in target.pass_sizes)


def test_first_come_first_served() -> None:
    engine = make_engine(FakeTarget(), 2)
    tickets = [engine.submit(make_request(4 + n)) for n in range(6)]
    finished = [ticket for ticket, _ in engine.stream()]
    assert finished == tickets


def test_a_long_prompt_does_not_stop_the_others() -> None:
    target = FakeTarget()
    engine = make_engine(target, 2, chunks_per_step=1)
    engine.submit(make_request(4))
    engine.step()
    engine.submit(make_request(1500))
    passes = target.num_passes
    for _ in range(5):
        engine.step()
    # Six chunks of prompt, and a pass beside each of them.
    assert target.num_passes == passes + 5
    assert target.pass_sizes[-1] == [1]
    engine.step()
    assert target.pass_sizes[-1] == [1, 1]


def test_an_eager_drafter_starves_nobody() -> None:
    target = FakeTarget()
    engine = make_engine(target, 3, window=32)
    tickets = [
        engine.submit(make_request(5, drafter=drafter))
        for drafter in (Constant(9), None, Hostile())
    ]
    results = finish(engine)
    assert results[tickets[1]].steps == 60
    assert all(len(sizes) == 3 for sizes in target.pass_sizes[:40])


class Cramped(FakeTarget):
    """Runs out of memory when a pass has more than `room` sequences, and while `is_full`."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.is_full = False
        self.num_failures = 0

    def _check(self, num_sequences: int) -> None:
        if self.is_full or num_sequences > self.room:
            self.num_failures += 1
            raise torch.OutOfMemoryError("CUDA out of memory")

    def verify(self, windows: Sequence[Window]) -> Output:
        self._check(len(windows))
        return super().verify(windows)

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        self._check(1)
        return super().prefill(state, prompt, image_ND)


@pytest.mark.parametrize(("room", "left"), [(1, 1), (2, 2), (3, 2), (7, 4), (8, 8)])
def test_out_of_memory_halves_the_batch(room: int, left: int) -> None:
    target = Cramped(room)
    engine = make_engine(target, 8)
    lengths = list(range(4, 16))
    expected = [alone(length) for length in lengths]
    tickets = [
        engine.submit(make_request(length, drafter=Oracle(result.token_ids, 0.3)))
        for length, result in zip(lengths, expected, strict=True)
    ]
    results = finish(engine)
    assert [results[t].token_ids for t in tickets] == [r.token_ids for r in expected]
    assert engine.num_slots == left
    assert target.num_failures == {8: 0, 4: 1, 2: 2, 1: 3}[left]


def test_a_page_that_does_not_fit_alone_fails_alone() -> None:
    target = Cramped(1)
    engine = make_engine(target, 2)
    big, small = engine.submit(make_request(900)), engine.submit(make_request(5))
    target.is_full = True
    engine.step()
    outcomes = dict(engine.step())
    error = outcomes[big]
    assert isinstance(error, PageError) and error.code == "out_of_memory"
    target.is_full = False
    assert finish(engine)[small].token_ids == alone(5).token_ids


def test_other_errors_are_not_taken_for_want_of_memory() -> None:
    class Broken(FakeTarget):
        def verify(self, windows: Sequence[Window]) -> Output:
            raise RuntimeError("mat1 and mat2 shapes cannot be multiplied")

    with pytest.raises(RuntimeError, match="shapes"):
        make_engine(Broken(), 2).run(make_request())
    assert is_out_of_memory(MemoryError())
    with pytest.raises(RuntimeError) as caught:
        torch.empty(1 << 60)
    assert is_out_of_memory(caught.value)


def test_a_page_of_bad_numbers_fails_alone() -> None:
    class Sick(FakeTarget):
        def _logits(self, history: list[int]) -> Tensor:
            logits = super()._logits(history)
            return logits * torch.nan if len(history) > 20 and history[0] == 42 else logits

    engine = make_engine(Sick(), 3)
    prompts = [(5, 6), (42, 6), (7, 8)]
    tickets = [
        engine.submit(Request(prompt=Prompt(ids), image=None, max_tokens=60)) for ids in prompts
    ]
    outcomes = dict(engine.stream())
    assert isinstance(outcomes[tickets[1]], PageError)
    for ticket, ids in ((tickets[0], (5, 6)), (tickets[2], (7, 8))):
        result = outcomes[ticket]
        assert isinstance(result, Result)
        request = Request(prompt=Prompt(ids), image=None, max_tokens=60)
        assert result.token_ids == make_engine(FakeTarget(), 1).run(request).token_ids


def test_cancelling_frees_the_slot_and_leaves_the_rest_alone() -> None:
    engine = make_engine(FakeTarget(), 2)
    tickets = [engine.submit(make_request(4 + n)) for n in range(4)]
    engine.step()
    assert engine.cancel(tickets[0]) and engine.cancel(tickets[2])
    assert not engine.cancel(tickets[0]) and not engine.cancel(99)
    results = finish(engine)
    assert sorted(results) == [tickets[1], tickets[3]]
    assert results[tickets[3]].token_ids == alone(7).token_ids
    assert engine.num_requests == 0


def test_a_request_that_fits_no_slot_is_refused_at_once() -> None:
    with pytest.raises(DeviceError, match="do not fit"):
        make_engine(FakeTarget(), 2).submit(make_request(2000, max_tokens=100))


class Listener(Constant):
    """Keeps the hidden rows that it hears: on the fake target, tokens."""

    def __init__(self) -> None:
        super().__init__(9)
        self.rows: list[int] = []

    def prepare(self, prompt: Prompt) -> None:
        self.rows.clear()

    def tap(self, rows_TLD: Tensor) -> None:
        assert rows_TLD.shape[1:] == (2, 1)
        self.rows += rows_TLD[:, 0, 0].int().tolist()


def test_drafters_hear_the_hidden_rows_of_what_is_real() -> None:
    target = FakeTarget()
    target.tap_layers = (0, 3)
    engine = make_engine(target, 2)
    listeners = [Listener(), Listener()]
    assert isinstance(listeners[0], TapDrafter)
    requests = [
        make_request(length, drafter=listener)
        for length, listener in zip((300, 7), listeners, strict=True)
    ]
    tickets = [engine.submit(request) for request in requests]
    results = finish(engine)
    for request, ticket, listener in zip(requests, tickets, listeners, strict=True):
        page = [*request.prompt.token_ids, *results[ticket].token_ids]
        assert listener.rows[: len(page) - 1] == page[:-1]
        # Behind the last emitted token there can only be its own row.
        assert len(listener.rows) <= len(page)


def test_images_are_seen_once_each() -> None:
    seen: list[int] = []

    class Watched(FakeTarget):
        def encode_image(self, image: ImagePatches) -> Tensor:
            seen.append(image.grid_h)
            return super().encode_image(image)

    engine = make_engine(Watched(), 2)
    for height in (2, 4, 6):
        image = ImagePatches(torch.zeros(2 * height, 768), height, 2)
        prompt = Prompt((5,) * 600, 1, height // 2, 1)
        engine.submit(Request(prompt=prompt, image=image, max_tokens=5))
    finish(engine)
    assert seen == [2, 4, 6]


class TestMemory:
    def test_a_slot_takes_what_it_is_said_to(self) -> None:
        target = FakeTarget()
        pool = state_module.StatePool(target, num_slots=3, max_positions=300)
        _, state = pool.acquire()
        names = ("keys_LJSD", "values_LJSD", "conv_in_LEX", "conv_out_LEX")
        names += ("decay_LER", "beta_LER", "checkpoint_LRKW")
        taken = sum(getattr(state, name).nbytes for name in names)
        assert taken == slot_bytes(target, 300)

    def test_slots_do_not_overlap(self) -> None:
        pool = state_module.StatePool(FakeTarget(), num_slots=3, max_positions=300)
        states = [pool.acquire()[1] for _ in range(3)]
        for number, state in enumerate(states):
            state.keys_LJSD.fill_(number)
            state.decay_LER.fill_(number)
        for number, state in enumerate(states):
            assert bool((state.keys_LJSD == number).all() and (state.decay_LER == number).all())

    def test_what_is_free_decides(self, monkeypatch: pytest.MonkeyPatch) -> None:
        target, one = FakeTarget(), slot_bytes(FakeTarget(), 512)
        assert free_bytes(target.device) > 1 << 20
        for free, slots in ((one // 2, 1), (one * 5, 4), (one * 1000, 16)):
            monkeypatch.setattr("ocria.engine.memory.free_bytes", lambda device, free=free: free)
            assert slots_that_fit(target, 512, 16) == slots

    def test_a_pool_that_does_not_fit_is_a_device_error(
        self, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        def refuse(*shape: object, **options: object) -> Tensor:
            raise torch.OutOfMemoryError("no")

        monkeypatch.setattr(state_module.torch, "zeros", refuse)
        with pytest.raises(DeviceError, match="2 pages of 512 positions"):
            state_module.StatePool(FakeTarget(), num_slots=2, max_positions=300)
