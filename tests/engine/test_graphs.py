"""The graph runner with captures that are plain calls: sizes, padding, pools."""

import pytest
import torch

from ocria.engine import graphs
from ocria.engine.graphs import Captured, GraphRunner, StaticPass, rounded_rows
from ocria.engine.state import StatePool
from ocria.models.base import Prompt, Window
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.registry import SHIPPED


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

    return Captured(static, output, replay)


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
    before = runner._captured
    assert set(before) == {(16, 4), (4, 2), (1, 1), (32, 1)}
    pool.resize(1)
    _, state = pool.acquire()
    pool.read(state, Prompt((5, 6, 7)), None)
    runner.verify([Window(state, (9, 10))])
    assert set(runner._captured) == {(2, 1)}
