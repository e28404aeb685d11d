"""A checkpoint that is streamed layer by layer: the same model, resumable, and never half there."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from ocria.calibration import QuantizeOptions, QuantizeResult, quantize
from ocria.calibration.divergence import divergence_by_tiles
from ocria.calibration.layerwise import LayerRunner
from ocria.calibration.options import DEFAULT_SHARE
from ocria.calibration.passages import Forcing
from ocria.calibration.streamed import StoredParent, StreamedModel
from ocria.calibration.streamed_pages import streamed_pages
from ocria.calibration.work_folder import WorkFolder
from ocria.errors import OutputError, UsageError, WeightsError
from ocria.models.qwen3_5.config import read_config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import load
from ocria.quantization.layouts import LayoutName, read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader, verify
from ocria.weights.shards import SINGLE_FILE

CPU = torch.device("cpu")
KEPT = ("visual.", "norm", "in_proj_a", "in_proj_b", "conv1d", "A_log", "dt_bias")


@pytest.fixture
def options(checkpoint: Path, tmp_path: Path) -> QuantizeOptions:
    return QuantizeOptions(
        source=checkpoint,
        target=tmp_path / "child",
        num_pages=4,
        max_tokens=12,
        device="cpu",
        stream=True,
    )


def run(options: QuantizeOptions) -> QuantizeResult:
    return quantize(options, lambda what, done, total: None)


def opened(path: Path) -> QuantizedSource:
    return QuantizedSource(CheckpointReader(path), read_quantization(path, read_config(path)))


def test_lent_layers_are_the_whole_model(options: QuantizeOptions) -> None:
    parent = StoredParent(options.source)
    model = StreamedModel(parent, CPU)
    pages = streamed_pages(parent, model, options).passages
    runner = LayerRunner(model.target, pages)
    rows = runner.embed()
    for index in range(2):
        with model.layer(index):
            rows, _ = runner.run(index, rows)
    whole = load(options.source, device=CPU).target
    assert isinstance(whole, Qwen35)
    for page, x_TD in zip(pages, rows, strict=True):
        last = model.target.model.language_model.norm(x_TD)[len(page.prompt.token_ids) - 1 :]
        assert torch.equal(last, Forcing(whole, page.num_rows).hidden(page))


@pytest.mark.parametrize("layout", ["compressed-tensors", "modelopt"])
def test_a_whole_folder(options: QuantizeOptions, layout: LayoutName) -> None:
    result = run(replace(options, layout=layout))
    source, child = load_file(options.source / SINGLE_FILE), opened(options.target)
    assert set(child.names()) == set(source)
    for name, before in source.items():
        is_kept = any(part in name for part in KEPT)
        assert (child.scheme(name) is None) == is_kept or result.plan.get(name) == "bf16"
        if is_kept:
            assert torch.equal(child.read(name, before.dtype), before), name
        else:
            after = child.read(name, torch.float32)
            assert (after - before.float()).norm() < 0.3 * before.float().norm(), name
    assert not verify(options.target)
    assert load(options.target, device=CPU).info.digest == result.manifest.digest
    assert result.target_bytes <= DEFAULT_SHARE * result.source_bytes + 500
    assert result.divergence is not None and 0 <= result.divergence.kl < 1
    assert sorted(p.name for p in options.target.parent.iterdir()) == ["child", "parent"]
    assert not list(options.target.glob(".*"))


def test_divergence_is_that_of_the_written_folder(options: QuantizeOptions) -> None:
    found = run(options).divergence
    parent = StoredParent(options.source)
    pages = streamed_pages(parent, StreamedModel(parent, CPU), options)
    held_out = pages.passages[pages.num_learnt :]
    hidden, heads = [], []
    for folder in (options.source, options.target):
        target = load(folder, device=CPU).target
        assert isinstance(target, Qwen35)
        hidden.append(torch.cat([Forcing(target, page.num_rows).hidden(page) for page in held_out]))
        heads.append(opened(folder).read("model.language_model.embed_tokens.weight", target.dtype))
    expected = divergence_by_tiles(
        (hidden[0], hidden[1]), lambda: [(heads[0], heads[1])], pages.forbidden_ids
    )
    assert found == expected and expected.num_places > 0


@pytest.mark.parametrize("tile", [5, 100, 272])
def test_tiles_of_a_head_add_up(tile: int) -> None:
    generator = torch.Generator().manual_seed(4)
    rows, heads = (torch.randn(2, n, 8, generator=generator) for n in (7, 272))
    forbidden = frozenset({0, 3, 250})
    found = divergence_by_tiles(
        (rows[0], rows[1]),
        lambda: zip(heads[0].split(tile), heads[1].split(tile), strict=True),
        forbidden,
    )
    logprobs = [
        (x @ head.T).index_fill(-1, torch.tensor(sorted(forbidden)), -1e9).log_softmax(-1)
        for x, head in zip(rows, heads, strict=True)
    ]
    kl = torch.nn.functional.kl_div(logprobs[1], logprobs[0], log_target=True, reduction="none")
    assert found.kl == pytest.approx(float(kl.sum(-1).mean()), rel=1e-4)
    same = logprobs[0].argmax(-1) == logprobs[1].argmax(-1)
    assert found.agreement == pytest.approx(float(same.double().mean()))


class _Killed(Exception):
    pass


@pytest.mark.parametrize("calibration", [True, False])
def test_a_killed_run_goes_on_where_it_was(
    options: QuantizeOptions, monkeypatch: pytest.MonkeyPatch, calibration: bool
) -> None:
    options = replace(options, calibration=calibration, name="child")
    expected = run(replace(options, target=options.target.parent / "undisturbed"))
    saved: list[str] = []
    save = WorkFolder.save

    def dies_at_the_second_layer(self: WorkFolder, part: str, tensors: dict) -> None:
        if part.startswith("decoder-00002"):
            raise _Killed
        saved.append(part)
        save(self, part, tensors)

    with monkeypatch.context() as patched:
        patched.setattr(WorkFolder, "save", dies_at_the_second_layer)
        with pytest.raises(_Killed):
            run(options)
        assert not options.target.exists() and "decoder-00001-of-00003" in saved
        saved.clear()
        with pytest.raises(_Killed):
            run(options)
        assert "decoder-00001-of-00003" not in saved, "the first layer was rounded again"
    assert run(options).manifest == expected.manifest
    assert sorted(p.name for p in options.target.parent.iterdir()) == [
        "child",
        "parent",
        "undisturbed",
    ]


def test_other_settings_start_afresh(
    options: QuantizeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dies(*_: object) -> None:
        raise _Killed

    with monkeypatch.context() as patched:
        patched.setattr("ocria.calibration.stream_run._Run.finish", dies)
        with pytest.raises(_Killed):
            run(replace(options, calibration=False))
    calibrated = run(options)
    assert calibrated.divergence is not None and calibrated.losses


def test_without_calibration_no_model_runs(
    options: QuantizeOptions, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr("ocria.calibration.stream_run.StreamedModel")
    result = run(replace(options, calibration=False, stream=None))
    assert result.divergence is None and result.losses == ()
    mixers = {format for name, format in result.plan.items() if "_attn" in name}
    assert mixers == {"nvfp4"}, "40 % of so small a decoder leave no room for FP8"
    wide = replace(options, calibration=False, budget_bytes=result.source_bytes, overwrite=True)
    plan = run(wide).plan
    assert {format for name, format in plan.items() if "_attn" in name} == {"fp8"}
    assert {format for name, format in plan.items() if ".mlp." in name} == {"nvfp4"}


def test_own_pages_tell_of_prefill(options: QuantizeOptions, tmp_path: Path) -> None:
    from PIL import Image

    from ocria.calibration.pages import draw_pages

    path = tmp_path / "mine.png"
    Image.fromarray(draw_pages(1, seed=9)[0].rgb).save(path)
    again = tmp_path / "mine-again.png"
    again.write_bytes(path.read_bytes())
    options = replace(options, calibrate=(path, again))
    parent = StoredParent(options.source)
    pages = streamed_pages(parent, StreamedModel(parent, CPU), options)
    assert [len(page.token_ids) for page in pages.passages[:3]] == [0, 0, 12]
    assert run(options).divergence is not None


def test_what_cannot_be_done(options: QuantizeOptions) -> None:
    with pytest.raises(UsageError, match="whole model in memory"):
        run(replace(options, max_loss=0.1))
    with pytest.raises(UsageError, match="too small"):
        run(replace(options, budget_bytes=1000))
    with pytest.raises(UsageError, match="contradict"):
        replace(options, calibrate=(Path("a.png"),), calibration=False)
    with pytest.raises(UsageError, match="needs calibration"):
        replace(options, max_loss=1.0, calibration=False)
    options.target.mkdir()
    with pytest.raises(OutputError, match="exists already"):
        run(options)


@pytest.mark.parametrize("bad", [float("nan"), float("-inf")])
def test_damaged_weights_are_named_before_any_work(options: QuantizeOptions, bad: float) -> None:
    tensors = load_file(options.source / SINGLE_FILE)
    tensors["model.language_model.layers.1.mlp.up_proj.weight"][3, 4] = bad
    save_file(tensors, options.source / SINGLE_FILE)
    with pytest.raises(WeightsError, match=r"1\.mlp\.up_proj\.weight` holds NaN or infinity"):
        run(options)
    assert sorted(path.name for path in options.target.parent.iterdir()) == ["parent"]


def test_two_runs_at_once_are_refused(options: QuantizeOptions) -> None:
    from ocria.calibration.work_folder import work_folder

    with (
        work_folder(options.target, {}, overwrite=False),
        pytest.raises(OutputError, match="another process"),
    ):
        run(options)


def test_an_untied_head_is_rounded_too(options: QuantizeOptions) -> None:
    tensors = load_file(options.source / SINGLE_FILE)
    generator = torch.Generator().manual_seed(8)
    tensors["lm_head.weight"] = (torch.randn(272, 32, generator=generator) * 0.2).bfloat16()
    save_file(tensors, options.source / SINGLE_FILE)
    config = read_config(options.source)
    (options.source / "config.json").write_text(
        json.dumps({**config, "tie_word_embeddings": False})
    )
    run(replace(options, budget_bytes=10**6))
    child = opened(options.target)
    for module in ("lm_head", "model.language_model.embed_tokens"):
        scheme = child.scheme(f"{module}.weight")
        assert scheme is not None and scheme.name == "fp8"
    load(options.target, device=CPU)
