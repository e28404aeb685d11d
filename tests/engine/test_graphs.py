"""The graph runner with captures that are plain calls: sizes, padding, pools."""

from collections.abc import Callable

import pytest
import torch

from ocria.engine import graphs
from ocria.engine.engine import Engine, EngineConfig
from ocria.engine.graphs import (
    Captured,
    CapturedPrefill,
    CapturedVision,
    GraphRunner,
    Landing,
    StaticPass,
    StaticPrefill,
    StaticVision,
    rounded_rows,
)
from ocria.engine.request import Request
from ocria.engine.speculative import Sampling
from ocria.engine.state import StatePool
from ocria.models.base import Chunk, ImagePatches, Output, Prompt, Window
from ocria.models.finding import SHIPPED
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.registry import load


@pytest.mark.parametrize(
    ("num_rows", "expected"), [(1, 1), (2, 2), (3, 4), (9, 16), (16, 16), (17, 32), (70, 80)]
)
def test_sizes(num_rows: int, expected: int) -> None:
    assert rounded_rows(num_rows) == expected


def again_into(output: Output, run: Callable[[], Output]) -> Callable[[], None]:
    """Instead of a capture: a replay runs the pass again into the same output."""

    @torch.inference_mode()
    def replay() -> None:
        again = run()
        output.logits_TV.copy_(again.logits_TV)
        if output.taps_TLD is not None and again.taps_TLD is not None:
            output.taps_TLD.copy_(again.taps_TLD)
        if output.best is not None and again.best is not None:
            output.best.token_T.copy_(again.best.token_T)
            output.best.logprob_T.copy_(again.best.logprob_T)

    return replay


def call(static: StaticPass) -> Captured:
    output = static.run()
    assert output.best is not None
    return Captured(static, output, again_into(output, static.run), Landing())


def call_prefill(static: StaticPrefill) -> CapturedPrefill:
    """It runs once before anything is loaded, as a capture does."""
    output = static.run()
    return CapturedPrefill(static, output, again_into(output, static.run))


def call_vision(static: StaticVision) -> CapturedVision:
    """The same of the vision tower."""
    image_ND = static.run()

    @torch.inference_mode()
    def replay() -> None:
        image_ND.copy_(static.run())

    return CapturedVision(static, image_ND, replay)


@pytest.fixture(autouse=True)
def _calls_for_captures(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    if request.node.get_closest_marker("gpu"):
        return
    monkeypatch.setattr(graphs, "capture", call)
    monkeypatch.setattr(graphs, "capture_prefill", call_prefill)
    monkeypatch.setattr(graphs, "capture_vision", call_vision)


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


def test_padded_passes_equal_plain_ones(model: Qwen35) -> None:
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


def test_prompts_read_side_by_side_equal_prompts_read_alone(model: Qwen35) -> None:
    model.tap_layers = (1, 4)
    generator = torch.Generator().manual_seed(5)
    grids = ((9, 31), (0, 0), (3, 4), (20, 17))
    prompts, images = [], []
    for height, width in grids:
        num_image = height * width
        ids = (*range(5, 12), *[17] * num_image, *range(20, 29))
        prompts.append(Prompt(ids, 7 if num_image else -1, height, width))
        image_ND = torch.randn(num_image, model.hidden_size, generator=generator)
        images.append(image_ND if num_image else None)
    beside, alone = (StatePool(model, num_slots=4, max_positions=512) for _ in range(2))
    states, expected_states = ([p.acquire()[1] for _ in grids] for p in (beside, alone))
    runner, num_read = GraphRunner(model), 0
    while together := [n for n in range(4) if states[n].length < len(prompts[n].token_ids)]:
        chunks = [Chunk(states[n], prompts[n], images[n]) for n in together]
        for n, output, chunk in zip(together, runner.prefill(chunks), chunks, strict=True):
            expected = model.prefill(expected_states[n], prompts[n], images[n])
            torch.testing.assert_close(output.logits_TV, expected.logits_TV, rtol=1e-4, atol=1e-4)
            torch.testing.assert_close(output.taps_TLD, expected.taps_TLD, rtol=1e-4, atol=1e-4)
            assert len(output.logits_TV) == chunk.is_last
            num_read += chunk.is_last
        for n, chunk in zip(together, chunks, strict=True):
            count = chunk.num_rows
            beside.commit_prompt(states[n], count)
            alone.commit_prompt(expected_states[n], count)
    assert num_read == 4 and {key[0] for key in runner._prefills} == {4, 2}
    for state, expected_state in zip(states, expected_states, strict=True):
        assert state.rope_delta == expected_state.rope_delta
        for name in ("checkpoint_LRKW", "conv_in_LEX", "keys_LJSD"):
            found, wanted = getattr(state, name), getattr(expected_state, name)
            torch.testing.assert_close(found, wanted, rtol=1e-4, atol=1e-4)


def test_pages_of_a_known_shape_go_by_a_captured_tower(
    model: Qwen35, monkeypatch: pytest.MonkeyPatch
) -> None:
    captured = []
    monkeypatch.setattr(
        graphs, "capture_vision", lambda static: captured.append(static) or call_vision(static)
    )
    generator = torch.Generator().manual_seed(8)
    runner, kept = GraphRunner(model), []
    for height, width in ((4, 6), (2, 2), (4, 6), (4, 6), (2, 2)):
        values_PC = torch.randn(height * width, 768, generator=generator)
        image = ImagePatches(values_PC, height, width)
        kept.append((runner.encode_image(image), model.encode_image(image)))
    # One page's tokens are not written over by the next one's.
    for found, expected in kept:
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-4)
    assert len(captured) == 2
    for side in range(2, 22, 2):
        runner.encode_image(ImagePatches(torch.randn(side * 2, 768), side, 2))
    assert len(runner._visions) == 8


def test_best_tokens_need_no_logits(model: Qwen35) -> None:
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


def test_best_tokens_land_on_the_host(model: Qwen35) -> None:
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


@pytest.mark.gpu
def test_a_captured_tower_equals_a_plain_one_bit_for_bit() -> None:
    folder = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir())
    target = load(folder, device=torch.device("cuda:0")).target
    runner = GraphRunner(target)
    generator = torch.Generator().manual_seed(9)
    for _ in range(3):
        image = ImagePatches(torch.randn(88 * 64, 768, generator=generator), 88, 64)
        assert torch.equal(runner.encode_image(image), target.encode_image(image))


@pytest.mark.gpu
def test_captured_prompts_equal_plain_ones_bit_for_bit() -> None:
    folder = next(path for path in sorted(SHIPPED.iterdir()) if path.is_dir())
    target = load(folder, device=torch.device("cuda:0")).target
    assert isinstance(target, Qwen35)
    generator = torch.Generator().manual_seed(6)
    prompts, images = [], []
    for height, width in ((20, 31), (44, 32), (3, 4), (20, 17)):
        ids = (*range(5, 12), *[17] * (height * width), *range(20, 29))
        prompts.append(Prompt(ids, 7, height, width))
        image_ND = torch.randn(height * width, target.hidden_size, generator=generator)
        images.append(image_ND.to(target.device, target.dtype))
    pool = StatePool(target, num_slots=8, max_positions=2048)
    states = [pool.acquire()[1] for _ in range(8)]
    runner = graphs.GraphRunner(target)
    while together := [n for n in range(4) if states[n].length < len(prompts[n].token_ids)]:
        chunks = [Chunk(states[n], prompts[n], images[n]) for n in together]
        for n, output, chunk in zip(together, runner.prefill(chunks), chunks, strict=True):
            expected = target.prefill(states[4 + n], prompts[n], images[n])
            assert torch.equal(output.logits_TV, expected.logits_TV)
            assert len(output.logits_TV) == chunk.is_last
        for n, chunk in zip(together, chunks, strict=True):
            count = chunk.num_rows
            for state in (states[n], states[4 + n]):
                pool.commit_prompt(state, count)
    for state, expected_state in zip(states[:4], states[4:], strict=True):
        length = state.length
        assert torch.equal(state.checkpoint_LRKW, expected_state.checkpoint_LRKW)
        assert torch.equal(state.conv_in_LEX, expected_state.conv_in_LEX)
        assert torch.equal(state.keys_LJSD[:, :, :length], expected_state.keys_LJSD[:, :, :length])
