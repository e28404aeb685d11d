"""Counts against models of known size."""

import pytest
import torch

from ocria.bench.bench_model import BenchModel
from ocria.bench.launches import per_step
from ocria.bench.options import ShapeName
from ocria.bench.shapes import shape_config
from ocria.bench.traffic import (
    Counter,
    parameter_shapes,
    stored_weight_bytes,
    vision_flops,
)
from ocria.models.finding import SHIPPED
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35

NANO = SHIPPED / "ocria-nano"


# Millions of parameters of the published sizes: all, vision tower, embedding.
@pytest.mark.parametrize(
    ("name", "total", "vision", "embedding"),
    [("0.8b", 853, 100.6, 254.3), ("4b", 4539, 333.5, 635.7), ("9b", 9410, 456, 1017)],
)
def test_published_sizes(name: ShapeName, total: float, vision: float, embedding: float) -> None:
    shapes = parameter_shapes(shape_config(name))
    counts = {key: torch.Size(shape).numel() / 1e6 for key, shape in shapes.items()}
    seen = sum(number for key, number in counts.items() if ".visual." in key)
    assert sum(counts.values()) == pytest.approx(total, rel=1e-3)
    assert seen == pytest.approx(vision, rel=2e-3)
    assert counts["model.language_model.embed_tokens.weight"] == pytest.approx(embedding, rel=1e-3)


def test_a_pass_reads_the_layers_and_the_head(model: BenchModel) -> None:
    counter = model.counter
    layers = {
        name: torch.Size(shape).numel()
        for name, shape in parameter_shapes(counter.config).items()
        if name.startswith("model.language_model.") and "embed_tokens" not in name
    }
    head = 272 * 32
    assert counter.num_weights == sum(layers.values()) + head
    wide = sum(n for name, n in layers.items() if name.endswith(("A_log", "dt_bias")))
    narrow = counter.num_weights - wide
    assert counter.weight_bytes() == narrow * counter.dtype.itemsize + 4 * wide


def test_stored_bytes_are_those_of_the_files() -> None:
    stored = stored_weight_bytes(NANO, Qwen35Config.from_folder(NANO))
    shards = [path for path in NANO.glob("*.safetensors") if "vision" not in path.name]
    files = sum(path.stat().st_size for path in shards)
    assert files * 0.99 < stored < files


def test_longer_sequences_and_more_of_them_have_more_state(model: BenchModel) -> None:
    counter = model.counter
    short, long = (counter.step_bytes(100, length, 1).state for length in (10.0, 110.0))
    # One attention layer, one key-value head of 16, keys and values.
    assert long - short == 100 * 2 * 16 * counter.cache_bytes
    assert counter.step_bytes(100, 10.0, 3).state == pytest.approx(3 * short, abs=3)
    assert counter.step_bytes(100, 10.0, 3).weights == 100


def test_state_of_a_published_size() -> None:
    config = shape_config("0.8b")
    with torch.device("meta"):
        layout = Qwen35(config).layout
    counter = Counter(config=config, layout=layout, dtype=torch.bfloat16, cache_bytes=2)
    empty, grown = (counter.step_bytes(0, length, 1).state for length in (0, 1000))
    # 12.3 kB a token; 18 states of 16 x 128 x 128 in float32, 19 MB, and half a block of rows.
    assert grown - empty == 12_288 * 1000
    assert 18 * 16 * 128 * 128 * 4 < empty < 1.25 * 18 * 16 * 128 * 128 * 4


def test_operations_grow_with_rows(model: BenchModel) -> None:
    one, four = (model.counter.step_flops(rows, 100.0) for rows in (1, 4))
    assert four == 4 * one > 8 * model.counter.num_weights


def test_vision_operations_of_a_published_page() -> None:
    # A page of 1536 x 2048 in the 4B's tower: 7.4 + 0.2 for products, 14.8 TFLOP for attention.
    flops = vision_flops(shape_config("4b").vision, 12_288)
    assert flops == pytest.approx(22.4e12, rel=0.02)


def test_runtime_calls_are_sorted_into_launches_and_waits() -> None:
    counts = {"cudaLaunchKernel": 80, "cudaMemcpyAsync": 8, "cudaStreamSynchronize": 8, "mm": 9}
    found = per_step(counts, 8)
    assert (found.launches, found.synchronisations) == (11.0, 1.0)
