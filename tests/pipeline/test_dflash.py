"""`--drafter dflash` through the pipeline: weights found or missed, pages as without."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Page
from ocria.errors import ExitCode, UsageError, WeightsError
from ocria.models.drafter import DrafterConfig
from ocria.models.finding import SHIPPED
from ocria.models.recipes.drafter.design import Sizes, new_drafter, public_config
from ocria.models.recipes.drafter.export import save_drafter
from ocria.models.recipes.nano.model import Geometry
from ocria.options import DrafterName, ParseOptions
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import PageImage


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained drafter of the shipped model."""
    content = public_config(Sizes(layers=1, inner=32, rank=4, block=8), Geometry())
    drafter = new_drafter(DrafterConfig.from_mapping(content), torch.ones(512), 1)
    out = tmp_path_factory.mktemp("drafter")
    save_drafter(out, {n: p.detach() for n, p in drafter.named_parameters()}, content, "fp8")
    return out


@pytest.fixture(scope="module")
def plain() -> PageReader:
    return load_page_reader(options("none"))


def options(drafter: DrafterName, folder: Path | None = None) -> ParseOptions:
    return ParseOptions(
        device="cpu",
        max_tokens=40,
        stats=True,
        drafter=drafter,
        drafter_model=None if folder is None else str(folder),
    )


def picture() -> PageImage:
    image = Image.new("RGB", (448, 96), (250, 250, 250))
    ImageDraw.Draw(image).text((12, 24), "A bridge of 1924", "black", ImageFont.load_default(20))
    return PageImage(
        number=1, rgb=np.asarray(image), width_pt=300.0, height_pt=64.0, rotation=0, seconds=0.0
    )


def without_stats(page: Page) -> Page:
    return replace(page, stats=None)


@pytest.mark.parametrize("name", ["dflash", "auto"])
def test_the_page_is_that_of_plain_decoding(
    plain: PageReader, folder: Path, name: DrafterName
) -> None:
    wanted = plain.read(picture())
    drafted = PageReader(plain.model, options(name, folder)).read(picture())
    assert wanted.num_tokens > 5
    assert without_stats(drafted) == without_stats(wanted)
    assert drafted.stats is not None and drafted.stats.decoding is not None
    assert drafted.stats.decoding.drafter in ({"dflash"} if name == "dflash" else {"none", "ngram"})


def test_it_proposes(plain: PageReader, folder: Path) -> None:
    """The rows of the engine reach the drafter: with any missing it would be silent."""
    reader = PageReader(plain.model, options("dflash", folder))
    drafting = reader.new_drafting()
    job = reader.job(picture(), drafting)
    reader.submit(job)
    heard = []
    drafter = job._asked[0].drafter
    assert drafter is not None
    ask = drafter.propose
    drafter.propose = lambda *asked: heard.append(ask(*asked)) or heard[-1]  # type: ignore
    while not reader.step():
        pass
    assert heard and all(len(proposal) == 7 for proposal in heard[:-8])


def test_a_model_without_one_says_what_to_do(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    for file in (SHIPPED / "ocria-nano").iterdir():
        if file.is_file():
            (bare / file.name).symlink_to(file)
    with pytest.raises(WeightsError, match="the model bare has no dflash drafter") as caught:
        load_page_reader(replace(options("dflash"), model=str(bare)))
    assert caught.value.exit_code == ExitCode.WEIGHTS
    assert "--drafter-model" in str(caught.value.hint)


def test_a_folder_without_one_is_refused(tmp_path: Path) -> None:
    with pytest.raises(WeightsError, match="no drafter in"):
        load_page_reader(options("dflash", tmp_path))


def test_one_for_another_model_is_refused(plain: PageReader, folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    shutil.copytree(folder, other)
    content = json.loads((other / "config.json").read_text())
    (other / "config.json").write_text(json.dumps({**content, "vocab_size": 6000}))
    with pytest.raises(WeightsError, match="made for another target"):
        PageReader(plain.model, options("dflash", other))


def test_naming_one_for_another_kind_of_drafter_is_a_mistake() -> None:
    with pytest.raises(UsageError, match="no use with --drafter ngram"):
        ParseOptions(drafter="ngram", drafter_model="x")
