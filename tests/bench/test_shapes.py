"""Random weights: stated acceptance, real equality."""

import math
from dataclasses import replace

import pytest
import torch

from ocria.bench import BenchOptions, bench
from ocria.bench.options import ShapeName
from ocria.bench.scripted_drafter import ScriptedDrafter
from ocria.bench.shapes import Noise, made_up_pages, mixed_weight_bytes, shape_config
from ocria.models.base import Prompt
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.quantization.nvfp4 import NVFP4Tensor, dequantize

from .conftest import CONFIG


@pytest.fixture
def small_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    config = Qwen35Config.from_mapping({**CONFIG, "tie_word_embeddings": False})
    monkeypatch.setattr("ocria.bench.run.shape_config", lambda name: config)
    monkeypatch.setattr("ocria.bench.shapes._FIRST_SPECIAL", 250)
    monkeypatch.setattr("ocria.bench.run.GRID", 8)


@pytest.mark.usefixtures("small_shape")
@pytest.mark.parametrize("accepted", [1, 4, 16])
def test_the_stated_acceptance_is_what_a_pass_emits(accepted: int) -> None:
    options = BenchOptions(shape="4b", device="cpu", rounds=1, accepted=accepted, batch=2)
    report = bench(replace(options, rungs=(f"accepted-{accepted}",)))
    plain, scripted = report.rungs
    assert (plain.status, scripted.status) == ("ok", "ok"), scripted.note
    assert report.accepted == accepted and report.digest is None
    assert scripted.tokens_per_step is not None and scripted.rows_per_step is not None
    # 63 tokens a page behind the prefill's, and a pass that finds the limit reached.
    assert scripted.tokens_per_step == pytest.approx(63 / (math.ceil(63 / accepted) + 1))
    assert scripted.rows_per_step > 8


def test_codes_and_plain_weights_are_the_same_noise() -> None:
    config = Qwen35Config.from_mapping(CONFIG)
    noise = Noise(config, torch.device("cpu"), mixed=True)
    kinds = {}
    for name in noise.names():
        packed, plain = noise.read_packed(name), noise.read(name, torch.float32)
        kinds[name.removeprefix("model.language_model.")] = type(packed).__name__
        assert tuple(plain.shape) == noise.shape(name)
        assert torch.equal(noise.read(name, torch.float32), plain)
        if isinstance(packed, NVFP4Tensor):
            assert torch.equal(dequantize(packed, torch.float32), plain)
    assert kinds["layers.0.mlp.gate_proj.weight"] == kinds["embed_tokens.weight"] == "NVFP4Tensor"
    assert kinds["layers.1.self_attn.q_proj.weight"] == "FP8Tensor"
    assert kinds["layers.0.linear_attn.in_proj_a.weight"] == "Tensor"


@pytest.mark.parametrize(("name", "ms"), [("0.8b", 0.110), ("4b", 0.612), ("9b", 1.12)])
def test_bytes_of_mixed_weights(name: ShapeName, ms: float) -> None:
    # Milliseconds in which an H200 streams them at 4.8 TB/s (performance anchors).
    assert mixed_weight_bytes(shape_config(name)) / 4.8e9 == pytest.approx(ms, rel=0.03)


def test_made_up_pages_are_the_same_every_time() -> None:
    config = Qwen35Config.from_mapping(CONFIG)
    one, two = (made_up_pages(config, num_pages=2, grid=8).pages for _ in range(2))
    assert [page.prompt for page in one] == [page.prompt for page in two]
    assert torch.equal(one[1].image.values_PC, two[1].image.values_PC)
    assert one[0].prompt != one[1].prompt
    assert one[0].prompt.token_ids.count(config.image_token_id) == 16


def test_a_script_is_wrong_where_it_was_told_to() -> None:
    drafter = ScriptedDrafter([5, 6, 7, 8], 3, vocab_size=9)
    drafter.prepare(Prompt((1,)))
    assert tuple(drafter.propose((5,), 3)) == (6, 7, 0)
    assert tuple(ScriptedDrafter([5, 6, 7, 8], None, 9).propose((5,), 2)) == (6, 7)
