"""From a bf16 folder to a quantised one: what changes, what may not, and what is refused."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ocria.calibration import QuantizeOptions, QuantizeResult, folder, quantize
from ocria.calibration.options import DEFAULT_SHARE
from ocria.calibration.passages import Passage
from ocria.calibration.run import Parent
from ocria.calibration.sites import EMBEDDING
from ocria.errors import OutputError, UsageError, WeightsError
from ocria.models.qwen3_5.config import read_config
from ocria.models.registry import load
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader, verify
from ocria.weights.shards import SINGLE_FILE

KEPT = ("visual.", "norm", "in_proj_a", "in_proj_b", "conv1d", "A_log", "dt_bias")
CPU = torch.device("cpu")


def run(options: QuantizeOptions) -> QuantizeResult:
    return quantize(options, lambda what, done, total: None)


@pytest.fixture
def options(checkpoint: Path, tmp_path: Path) -> QuantizeOptions:
    return QuantizeOptions(
        source=checkpoint,
        target=tmp_path / "child",
        num_pages=4,
        max_tokens=6,
        max_loss=1e9,
        device="cpu",
    )


def opened(path: Path) -> QuantizedSource:
    return QuantizedSource(CheckpointReader(path), read_quantization(path, read_config(path)))


def test_what_is_never_quantised_keeps_its_bytes(options: QuantizeOptions) -> None:
    result = run(options)
    source = load_file(options.source / SINGLE_FILE)
    child = opened(options.target)
    kept = [name for name in source if any(part in name for part in KEPT)]
    assert len(kept) > 20
    for name in kept:
        assert child.scheme(name) is None
        found = child.read_packed(name)
        assert isinstance(found, torch.Tensor)
        assert torch.equal(found.view(torch.uint8), source[name].view(torch.uint8)), name
    assert set(child.names()) == set(source)
    quantised = {name for name in source if child.scheme(name)}
    assert quantised == set(source) - set(kept)
    assert not verify(options.target)
    assert result.target_bytes < result.source_bytes / 2
    assert load(options.target, device=CPU).info.digest == result.manifest.digest


def test_weights_stay_near_their_parents(options: QuantizeOptions) -> None:
    run(options)
    source, child = load_file(options.source / SINGLE_FILE), opened(options.target)
    for name in source:
        if child.scheme(name) is None:
            continue
        before, after = source[name].float(), child.read(name, torch.float32)
        assert (after - before).norm() < 0.3 * before.norm(), name


def test_products_that_run_as_one_share_a_global_scale(options: QuantizeOptions) -> None:
    run(options)
    reader = CheckpointReader(options.target)
    layers = "model.language_model.layers"
    for names in (
        (f"{layers}.0.mlp.gate_proj", f"{layers}.0.mlp.up_proj"),
        (f"{layers}.0.linear_attn.in_proj_qkv", f"{layers}.0.linear_attn.in_proj_z"),
        tuple(f"{layers}.1.self_attn.{leaf}_proj" for leaf in "qkv"),
    ):
        scales = {reader.read(f"{name}.weight_global_scale").item() for name in names}
        assert len(scales) == 1, names


def test_same_bytes_twice_and_with_either_layout_the_same_weights(
    options: QuantizeOptions, tmp_path: Path
) -> None:
    first = run(options)
    again = run(replace(options, target=tmp_path / "again", name="child"))
    assert first.manifest == again.manifest
    other = replace(options, target=tmp_path / "other", layout="modelopt")
    run(other)
    assert (other.target / "hf_quant_config.json").is_file()
    ours, theirs = opened(options.target), opened(other.target)
    assert set(ours.names()) == set(theirs.names())
    for name in ours.names():
        assert torch.equal(ours.read(name, torch.bfloat16), theirs.read(name, torch.bfloat16))
    assert load(other.target, device=CPU).info.precision == first.manifest.precision


def test_a_budget_buys_what_it_can(options: QuantizeOptions) -> None:
    least = run(options)
    assert set(least.plan.values()) == {"nvfp4", "fp8"}
    assert [site for site, format in least.plan.items() if format == "fp8"] == [
        EMBEDDING,
        "lm_head",
    ]
    wide = run(replace(options, max_loss=0.0, overwrite=True))
    assert wide.target_bytes > least.target_bytes
    spare = least.target_bytes + 2000
    some = run(replace(options, budget_bytes=spare, max_loss=None, overwrite=True))
    assert least.target_bytes < some.target_bytes <= spare + 500
    usual = run(replace(options, max_loss=None, overwrite=True))
    assert usual.target_bytes <= DEFAULT_SHARE * usual.source_bytes + 500
    with pytest.raises(UsageError, match="too small"):
        run(replace(options, budget_bytes=1000, overwrite=True))
    assert (options.target / "config.json").is_file()


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_damaged_weights_are_named(options: QuantizeOptions, bad: float) -> None:
    tensors = load_file(options.source / SINGLE_FILE)
    name = "model.language_model.layers.1.mlp.up_proj.weight"
    tensors[name][3, 4] = bad
    save_file(tensors, options.source / SINGLE_FILE)
    with pytest.raises(WeightsError, match=r"1\.mlp\.up_proj\.weight` holds NaN or infinity"):
        run(options)
    assert sorted(path.name for path in options.target.parent.iterdir()) == ["parent"]


def test_a_quantised_parent_is_refused(options: QuantizeOptions, tmp_path: Path) -> None:
    run(options)
    with pytest.raises(WeightsError, match="quantised already"):
        run(replace(options, source=options.target, target=tmp_path / "third"))


def test_an_existing_folder_is_left_alone(options: QuantizeOptions) -> None:
    options.target.mkdir()
    (options.target / "mine").write_text("kept")
    with pytest.raises(OutputError, match="exists already"):
        run(options)
    assert (options.target / "mine").read_text() == "kept"


def test_a_failure_half_way_leaves_nothing(
    options: QuantizeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full_disk(*_: object, **__: object) -> None:
        raise OSError("No space left on device")

    monkeypatch.setattr(folder, "save_file", full_disk)
    with pytest.raises(OutputError, match="cannot write"):
        run(options)
    assert sorted(path.name for path in options.target.parent.iterdir()) == ["parent"]


def test_a_half_written_folder_is_not_loaded(options: QuantizeOptions) -> None:
    run(options)
    shard = next(options.target.glob("decoder-*.safetensors"))
    shard.write_bytes(shard.read_bytes()[:-100])
    with pytest.raises(WeightsError, match="damaged checkpoint"):
        load(options.target, device=CPU)
    shard.unlink()
    with pytest.raises(WeightsError):
        load(options.target, device=CPU)


def test_lacking_scales_are_named(options: QuantizeOptions) -> None:
    run(options)
    shard = next(options.target.glob("decoder-*.safetensors"))
    tensors = load_file(shard)
    gone = next(name for name in tensors if name.endswith("up_proj.weight_global_scale"))
    del tensors[gone]
    save_file(tensors, shard)
    index = options.target / "model.safetensors.index.json"
    content = json.loads(index.read_text())
    del content["weight_map"][gone]
    index.write_text(json.dumps(content))
    with pytest.raises(WeightsError, match="lacks weight_global_scale"):
        opened(options.target)


@pytest.mark.parametrize(
    "bad", [{"budget_bytes": 0}, {"max_loss": -1.0}, {"max_loss": float("nan")}, {"num_pages": 1}]
)
def test_numbers_that_make_no_sense(options: QuantizeOptions, bad: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        replace(options, **bad)


def test_passages_that_are_known_need_no_reading(options: QuantizeOptions) -> None:
    def known(parent: Parent) -> list[Passage]:
        image = torch.zeros(4, 32, dtype=parent.target.dtype)
        prompt = parent.model.tokens.prompt.fill(2, 2)
        return [Passage(prompt, image, tuple(range(10 + n, 30 + n))) for n in range(5)]

    result = quantize(options, lambda what, done, total: None, known)
    # The first and the fifth are held out: 20 tokens and the place before them, twice.
    assert result.divergence.num_places == 42
