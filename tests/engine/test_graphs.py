"""The graph runner with captures that are plain calls: sizes, padding, pools."""

import pytest
import torch

from ocria.engine import graphs
from ocria.engine.engine import Engine, EngineConfig
from ocria.engine.graphs import Captured, GraphRunner, Landing, StaticPass, rounded_rows
from ocria.engine.request import Request
from ocria.engine.speculative import Sampling
from ocria.engine.state import StatePool
from ocria.models.base import Prompt, Window
from ocria.models.finding import SHIPPED
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35, fused_decoder


@pytest.mark.parametrize(
    ("num_rows", "expected"), [(1, 1), (2, 2), (3, 4), (9, 16), (16, 16), (17, 32), (70, 80)]
)
def test_sizes(num_rows: int, expected: int) -> None:
    assert rounded_rows(num_rows) == expected


def call(static: StaticPass) -> Captured:
    """Instead of a capture: a replay runs the pass again into the same output."""
    output = static.run()

    @torch.inference_mode()
    def replay() -> None:
        again = static.run()
        output.logits_TV.copy_(again.logits_TV)
        if output.taps_TLD is not None and again.taps_TLD is not None:
            output.taps_TLD.copy_(again.taps_TLD)
        assert output.best is not None and again.best is not None
        output.best.token_T.copy_(again.best.token_T)
        output.best.logprob_T.copy_(again.best.logprob_T)

    return Captured(static, output, replay, Landing())


@pytest.fixture
def model() -> Qwen35:
    """The shipped architecture with random weights; its fused decoder runs as references."""
    folder = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir())
    made = Qwen35(Qwen35Config.from_folder(folder))
    generator = torch.Generator().manual_seed(0)
    for parameter in made.parameters():
        noise = torch.randn(parameter.shape, generator=generator)
        parameter.data = noise * (0.1 if parameter.dim() < 2 else parameter.shape[-1] ** -0.5)
    made.fused = fused_decoder(made, None)
    made.prepare(torch.float32, torch.device("cpu"))
    return made


def test_padded_passes_equal_plain_ones(model: Qwen35, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "capture", call)
    model.tap_layers = (1, 4)
    pool = StatePool(model, num_slots=3, max_positions=256)
    states = [pool.acquire()[1] for _ in range(3)]
    for n, state in enumerate(states):
        pool.read(state, Prompt(tuple(range(5, 20 + 7 * n))), None)
    runner = GraphRunner(model)
    for lengths in ((3, 1, 5), (2, 2), (1,), (4, 1, 4), (30,)):
        windows = [Window(s, range(40, 40 + n)) for s, n in zip(states, lengths, strict=False)]
        found, expected = runner.verify(windows), model.verify(windows)
        torch.testing.assert_close(found.logits_TV, expected.logits_TV, rtol=1e-4, atol=1e-4)
        torch.testing.assert_close(found.taps_TLD, expected.taps_TLD, rtol=1e-4, atol=1e-4)
        pool.commit((state, 1) for state in states[: len(lengths)])
    # A pool of another size has other strides: what was captured for the old one is dropped.
    captured = {key[:3] for key in runner._captured}
    assert captured == {(16, 4, True), (4, 2, True), (1, 1, True), (32, 1, True)}
    pool.resize(1)
    _, state = pool.acquire()
    pool.read(state, Prompt((5, 6, 7)), None)
    runner.verify([Window(state, (9, 10))])
    assert set(runner._captured) == {(2, 1, True, (1, 4))}


def test_best_tokens_need_no_logits(model: Qwen35, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "capture", call)
    pool = StatePool(model, num_slots=1, max_positions=256)
    _, state = pool.acquire()
    pool.read(state, Prompt(tuple(range(5, 40))), None)
    window = [Window(state, (40, 41, 42))]
    logits_TV = model.verify(window).logits_TV
    forbidden = int(logits_TV[1].argmax())
    logits_TV = logits_TV.index_fill(-1, torch.tensor([forbidden]), -torch.inf)
    runner = GraphRunner(model, (forbidden,))
    for with_logits in (False, True, False):
        output = runner.verify(window, with_logits=with_logits)
        assert output.logits_TV.shape == (3 if with_logits else 0, model.vocab_size)
        assert output.best is not None
        assert torch.equal(output.best.token_T, logits_TV.argmax(-1))
        expected = logits_TV.log_softmax(-1).amax(-1)
        torch.testing.assert_close(output.best.logprob_T, expected, rtol=1e-5, atol=1e-5)


def test_best_tokens_land_on_the_host(model: Qwen35, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "capture", call)
    pool = StatePool(model, num_slots=1, max_positions=256)
    _, state = pool.acquire()
    pool.read(state, Prompt(tuple(range(5, 40))), None)
    runner = GraphRunner(model)
    assert runner.launch([Window(state, (9, 8))], with_logits=False).best() is not None
    for ids in ((40, 41, 42), (50, 51, 52, 53), (60, 61, 62)):
        best = runner.launch([Window(state, ids)], with_logits=False).best()
        logits_TV = model.verify([Window(state, ids)]).logits_TV
        assert best is not None and best.token_ids == logits_TV.argmax(-1).tolist()
        expected = logits_TV.log_softmax(-1).amax(-1).tolist()
        assert best.logprobs == pytest.approx(expected, abs=1e-5)


def test_an_engine_s_greedy_page_comes_from_best_tokens(
    model: Qwen35, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(graphs, "capture", call)
    config = EngineConfig(
        stop_ids=frozenset(), forbidden_ids=frozenset({7}), max_positions=256, num_slots=2
    )
    sampled = Sampling(temperature=0.7, top_p=0.9, seed=3)
    pages = []
    for company in (
        None,
        Request(prompt=Prompt((9, 10)), image=None, max_tokens=9, sampling=sampled),
    ):
        engine = Engine(model, config)
        if company is not None:
            engine.submit(company)
        pages.append(engine.run(Request(prompt=Prompt((5, 6, 8)), image=None, max_tokens=9)))
    assert pages[0].token_ids == pages[1].token_ids
    assert pages[0].logprobs == pytest.approx(pages[1].logprobs, abs=1e-4)
    monkeypatch.setattr(Qwen35, "static_pass", lambda *args, **options: None)
    plain = Engine(model, config).run(Request(prompt=Prompt((5, 6, 8)), image=None, max_tokens=9))
    assert plain.token_ids == pages[0].token_ids
    assert plain.logprobs == pytest.approx(pages[0].logprobs, abs=1e-4)
