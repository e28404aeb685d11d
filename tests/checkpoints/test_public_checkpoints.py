"""Every preset's kind of folder: loaded, held against `transformers`, and read a page with."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw

from ocria.engine import Engine, EngineConfig, Request
from ocria.engine.speculative import MtpDrafter
from ocria.engine.state import StatePool
from ocria.errors import WeightsError
from ocria.models.base import ImagePatches, Window
from ocria.models.presets import preset_named
from ocria.models.registry import LoadedModel, load, open_checkpoint
from ocria.options import ParseOptions
from ocria.pipeline.mtp import brings_mtp, mtp_maker
from ocria.pipeline.page_reader import image_settings, load_page_reader

from .conftest import FolderOf
from .random_checkpoint import RECIPES, Recipe, mtp_shapes, shrunk

CPU = torch.device("cpu")


def loaded(folder: Path, **options: Any) -> LoadedModel:
    return load(folder, device=CPU, dtype=torch.float32, **options)


def test_settings_of_each_folder_are_understood(recipe: Recipe, folder_of: FolderOf) -> None:
    model = loaded(folder_of(recipe))
    expected = preset_named(recipe.name.lower()) or preset_named("generic")
    assert model.preset is expected
    ids = recipe.ids
    assert model.tokens.stop_ids == {ids["<|im_end|>"], ids["<|endoftext|>"]}
    assert model.tokens.prompt.image_id == ids["<|image_pad|>"]
    text = model.tokenizer.spell(model.tokens.prompt.fill(1, 1).token_ids).text
    assert text == (
        "<|im_start|>user\n<|vision_start|><|image_pad|><|vision_end|>"
        f"{model.preset.instruction}<|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    assert model.info.precision == "bf16" and model.info.name == recipe.name
    settings, budget = image_settings(model), model.preset.budget
    assert settings.max_pixels == (131_072 if budget is None else budget.max_pixels)


def test_what_the_model_has_no_place_for_is_reported(recipe: Recipe, folder_of: FolderOf) -> None:
    report = loaded(folder_of(recipe)).report
    text = shrunk(recipe.size, vocab_size=320, ids={})["text_config"]
    assert report.unexpected == (tuple(sorted(mtp_shapes(text))) if recipe.with_mtp else ())
    assert report.renamed == ()


def test_logits_are_those_of_transformers(recipe: Recipe, folder_of: FolderOf) -> None:
    transformers = pytest.importorskip("transformers")
    folder = folder_of(recipe)
    reference = transformers.Qwen3_5ForConditionalGeneration.from_pretrained(
        folder, dtype=torch.float32
    ).eval()
    model = loaded(folder)
    values = torch.randn(8 * 12, 768, generator=torch.Generator().manual_seed(3))
    image = ImagePatches(values, 8, 12)
    prompt = model.tokens.prompt.fill(4, 6)
    text = torch.randint(20, 200, (40,), generator=torch.Generator().manual_seed(5)).tolist()
    tokens = torch.tensor([[*prompt.token_ids, *text]])
    with torch.inference_mode():
        expected = reference(
            input_ids=tokens,
            pixel_values=values.view(-1, 3, 1, 256).expand(-1, -1, 2, -1).reshape(-1, 1536),
            image_grid_thw=torch.tensor([[1, 8, 12]]),
            mm_token_type_ids=(tokens == model.tokens.prompt.image_id).int(),
        ).logits[0, len(prompt.token_ids) - 1 :]
    pool = StatePool(model.target, num_slots=1, max_positions=768)
    _, state = pool.acquire()
    found = [pool.read(state, prompt, model.target.encode_image(image))]
    for start in range(0, len(text), 8):
        window = text[start : start + 8]
        found += list(model.target.verify([Window(state, window)]).logits_TV)
        pool.commit([(state, len(window))])
    error = (torch.stack(found) - expected).norm() / expected.norm()
    assert float(error) < 1e-4


def page_picture(path: Path) -> Path:
    image = Image.new("RGB", (400, 300), "white")
    draw = ImageDraw.Draw(image)
    for line in range(8):
        draw.text(
            (20, 20 + 30 * line), f"Line {line} of a page with some words on it", fill="black"
        )
    image.save(path)
    return path


def run_parse(document: Path, *arguments: str) -> tuple[int, dict[str, Any], str]:
    """Exit code, JSON and standard error of `ocria parse`."""
    done = subprocess.run(
        [sys.executable, "-m", "ocria", "parse", str(document), "-f", "json", *arguments],
        capture_output=True,
        text=True,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
        timeout=300,
    )
    return done.returncode, json.loads(done.stdout or "{}"), done.stderr


def check_result(result: dict[str, Any], recipe: Recipe, folder: Path) -> None:
    preset = preset_named(recipe.name.lower()) or preset_named("generic")
    assert preset is not None
    assert result["generator"]["settings"]["preset"] == preset.name
    model = result["generator"]["model"]
    assert model["name"] == recipe.name and len(model["digest"]) == 64
    (page,) = result["pages"]
    assert page["status"] in ("ok", "repaired", "truncated") and page["num_tokens"] <= 12
    assert (page["width_pt"], page["height_pt"]) == (300.0, 225.0)


# One in the fast tests; a process each, the rest with the slow ones.
SLOW = [
    pytest.param(
        recipe, marks=[] if recipe.size == "0.8B" and recipe.with_mtp else pytest.mark.slow
    )
    for recipe in RECIPES
]


@pytest.mark.parametrize("recipe", SLOW, ids=lambda recipe: recipe.name)
def test_a_page_is_parsed_end_to_end(recipe: Recipe, folder_of: FolderOf, tmp_path: Path) -> None:
    folder = folder_of(recipe)
    document = page_picture(tmp_path / "page.png")
    code, result, errors = run_parse(document, "--model", str(folder), "--max-tokens", "12")
    assert code in (0, 7), errors
    check_result(result, recipe, folder)
    again, second, _ = run_parse(
        document, "--model", str(folder), "--max-tokens", "12", "--drafter", "none"
    )
    assert (again, second) == (code, result)


@pytest.mark.slow
def test_a_page_in_mixed_precision(folder_of: FolderOf, tmp_path: Path) -> None:
    recipe = RECIPES[0]
    document = page_picture(tmp_path / "page.png")
    arguments = ("--model", str(folder_of(recipe)), "--max-tokens", "4", "--precision", "mixed")
    code, result, errors = run_parse(document, *arguments)
    assert code in (0, 7) and "rounded to nearest as they load, without calibration" in errors
    assert result["generator"]["model"]["precision"] == "nvfp4+fp8, rounded to nearest"


def test_mixed_has_the_formats_that_quantising_stores(folder_of: FolderOf, tmp_path: Path) -> None:
    from ocria.calibration import QuantizeOptions, quantize

    folder, target = folder_of(RECIPES[0]), tmp_path / "quantised"
    options = QuantizeOptions(source=folder, target=target, calibration=False, device="cpu")
    quantize(options, lambda what, done, total: None)
    made = open_checkpoint(folder, device=CPU, precision="mixed")
    stored = open_checkpoint(target, device=CPU)
    # The new folder has another name: its config says how it is to be asked.
    assert stored.preset is made.preset and stored.preset.name == "chandra-ocr-2"
    assert set(made.source.names()) == set(stored.source.names())
    for name in made.source.names():
        schemes = made.source.scheme(name), stored.source.scheme(name)
        assert (schemes[0] and schemes[0].name) == (schemes[1] and schemes[1].name), name
        ours, theirs = (
            made.source.read(name, torch.float32),
            stored.source.read(name, torch.float32),
        )
        assert float((ours - theirs).norm() / theirs.norm()) < (0.15 if schemes[0] else 1e-9), name


@pytest.mark.parametrize("recipe", [r for r in RECIPES if r.with_mtp], ids=lambda r: r.name)
def test_pages_with_the_folder_s_own_mtp_head_are_those_without(
    recipe: Recipe, folder_of: FolderOf
) -> None:
    model = loaded(folder_of(recipe))
    make = mtp_maker(model, needed=True)
    assert make is not None and brings_mtp(folder_of(recipe))
    # Few tokens to choose from, so that chance alone accepts some proposals.
    forbidden = frozenset(range(320)) - frozenset(range(60, 64))
    config = EngineConfig(stop_ids=frozenset(), forbidden_ids=forbidden, max_positions=1024)
    image = ImagePatches(torch.randn(48, 768, generator=torch.Generator().manual_seed(1)), 6, 8)
    results = []
    for drafter in (None, make()):
        if isinstance(drafter, MtpDrafter):
            drafter = MtpDrafter(drafter._head, drafter._host, forbidden_ids=forbidden)
        request = Request(
            prompt=model.tokens.prompt.fill(3, 4), image=image, max_tokens=90, drafter=drafter
        )
        results.append(Engine(model.target, config).run(request))
    plain, drafted = results
    assert drafted.token_ids == plain.token_ids and drafted.logprobs == plain.logprobs
    assert drafted.steps < plain.steps


def test_folders_without_a_head_draft_without_it(folder_of: FolderOf) -> None:
    folder = folder_of(RECIPES[0])
    assert not brings_mtp(folder) and mtp_maker(loaded(folder)) is None
    with pytest.raises(WeightsError, match="has no MTP head"):
        load_page_reader(ParseOptions(model=str(folder), drafter="mtp", device="cpu"))


def test_names_lead_to_a_snapshot_of_the_hub_s_cache(
    folder_of: FolderOf, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ocria.models.finding import find_checkpoint

    snapshot = tmp_path / "models--datalab-to--chandra-ocr-2" / "snapshots" / "abc"
    snapshot.parent.mkdir(parents=True)
    snapshot.symlink_to(folder_of(RECIPES[0]), target_is_directory=True)
    (tmp_path / "models--datalab-to--chandra-ocr-2" / "refs").mkdir()
    (tmp_path / "models--datalab-to--chandra-ocr-2" / "refs" / "main").write_text("abc")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    found = find_checkpoint("chandra-ocr-2")
    assert found == snapshot
    model = loaded(found)
    assert model.info.name == "datalab-to/chandra-ocr-2" and model.preset.name == "chandra-ocr-2"


def test_pictures_of_any_size_fill_the_budget(folder_of: FolderOf) -> None:
    model = loaded(folder_of(RECIPES[0]))
    rule = image_settings(model).size_rule
    for height, width in ((300, 400), (2200, 1700), (5000, 7000)):
        area = float(np.prod(rule(height, width)))
        budget = model.preset.budget
        assert budget is not None and budget.min_pixels * 0.95 <= area <= budget.max_pixels
