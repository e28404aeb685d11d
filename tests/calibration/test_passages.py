"""Forcing a passage computes what decoding computed; rounding changes it by what it should."""

from pathlib import Path

import pytest
import torch

from ocria.calibration.divergence import Judge
from ocria.calibration.layerwise import LayerRunner
from ocria.calibration.passages import Forcing, Passage, read_passages
from ocria.calibration.pictures import calibration_patches
from ocria.calibration.sequential import set_weight
from ocria.calibration.sites import decoder_sites
from ocria.errors import InputError
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import LoadedModel, load
from ocria.vision import PreprocessorConfig


@pytest.fixture
def model(checkpoint: Path) -> LoadedModel:
    return load(checkpoint, device=torch.device("cpu"))


@pytest.fixture
def target(model: LoadedModel) -> Qwen35:
    assert isinstance(model.target, Qwen35)
    return model.target


@pytest.fixture
def passages(model: LoadedModel, checkpoint: Path) -> list[Passage]:
    preprocessor = PreprocessorConfig.from_folder(checkpoint)
    images = calibration_patches((), preprocessor, num_self_made=2)
    return list(read_passages(model, images, merge=2, max_tokens=40))


def test_forced_tokens_are_the_ones_that_were_written(
    model: LoadedModel, target: Qwen35, passages: list[Passage]
) -> None:
    forbidden = torch.tensor(sorted(model.tokens.suppressed_ids))
    for passage in passages:
        logits = Forcing(target, passage.num_rows).logits(passage)
        assert logits.shape == (len(passage.token_ids) + 1, target.vocab_size)
        chosen = logits[:-1].index_fill(-1, forbidden, -torch.inf).argmax(-1)
        assert chosen.tolist() == list(passage.token_ids)
    assert sum(len(passage.token_ids) for passage in passages) > 0


def test_layer_by_layer_is_the_whole_model(target: Qwen35, passages: list[Passage]) -> None:
    runner = LayerRunner(target, passages)
    rows = runner.embed()
    sites = decoder_sites(target.config.text)
    for layer in range(2):
        names = [site.name for site in sites if f".layers.{layer}." in site.name]
        rows, seen = runner.run(layer, rows, names)
        assert set(seen) == set(names)
        for name, found in seen.items():
            width = target.get_submodule(name).in_features
            assert [part.shape for part in found] == [(p.num_rows, width) for p in passages]
    for passage, x_TD in zip(passages, rows, strict=True):
        whole = Forcing(target, passage.num_rows).hidden(passage)
        last = target.model.language_model.norm(x_TD)[len(passage.prompt.token_ids) - 1 :]
        assert torch.equal(last, whole)


def test_divergence_is_zero_for_the_parent_and_grows(
    model: LoadedModel, target: Qwen35, passages: list[Passage]
) -> None:
    judge = Judge(target, passages, model.tokens.suppressed_ids)
    same = judge.judge(target)
    assert same.kl < 1e-6 and same.agreement == 1.0
    assert same.num_places == sum(len(passage.token_ids) + 1 for passage in passages)
    name = "model.language_model.layers.1.mlp.down_proj"
    set_weight(target.get_submodule(name), torch.zeros(32, 48, dtype=target.dtype))
    other = judge.judge(target)
    assert other.kl > 1e-3 and other.agreement < 1.0


def test_files_can_be_given(checkpoint: Path, tmp_path: Path) -> None:
    preprocessor = PreprocessorConfig.from_folder(checkpoint)
    bad = tmp_path / "notes.txt"
    bad.write_text("no picture")
    with pytest.raises(InputError):
        calibration_patches([bad], preprocessor, num_self_made=0)
