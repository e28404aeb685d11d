"""A page that lies on its side is turned, not read sideways."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ocria.document import Page, Rotation
from ocria.engine import Result
from ocria.models.base import Prompt
from ocria.models.finding import find_checkpoint
from ocria.models.presets import NATIVE
from ocria.pipeline.draft_costs import draft_costs
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.page_job import IsolatedPageJob, PageJob, ReadingRules
from ocria.pipeline.turning import opening_turn, turned
from ocria.rasterize import PageImage
from ocria.tokenizer import Tokenizer
from ocria.vision import PreprocessorConfig


def picture(rotation: Rotation = 0) -> PageImage:
    """240 x 360 pixels: a red patch at the top left, lines as of text."""
    rgb = np.full((240, 360, 3), 255, np.uint8)
    for row in range(3):
        rgb[40 + row : 200 : 12, 60:300] = 0
    rgb[:40, :60] = (255, 0, 0)
    return PageImage(
        number=4, rgb=rgb, width_pt=30.0, height_pt=20.0, rotation=rotation, seconds=0.5
    )


@pytest.mark.parametrize(
    ("turn", "corner", "size"),
    [(90, (0, -1), (20.0, 30.0)), (180, (-1, -1), (30.0, 20.0)), (270, (-1, 0), (20.0, 30.0))],
)
def test_a_turn_is_clockwise(
    turn: Rotation, corner: tuple[int, int], size: tuple[float, float]
) -> None:
    found = turned(picture(rotation=270), turn)
    assert tuple(found.rgb[corner]) == (255, 0, 0)
    assert (found.width_pt, found.height_pt) == size
    assert found.rotation == (270 + turn) % 360
    assert found.rgb.flags.c_contiguous


def test_only_a_reading_that_opens_with_a_turn_asks_for_one() -> None:
    tokenizer = Tokenizer(find_checkpoint("ocria-nano") / "tokenizer.json")
    markup = markup_ids(tokenizer)
    turn, paragraph = tokenizer.special_ids["<|rot270|>"], tokenizer.special_ids["<|paragraph|>"]
    assert opening_turn((turn, 1), markup) == 270
    assert opening_turn((paragraph, turn), markup) == 0
    assert opening_turn((), markup) == 0


def make_job(rotation: Rotation = 0) -> PageJob:
    folder = find_checkpoint("ocria-nano")
    tokenizer = Tokenizer(folder / "tokenizer.json")
    prompt = SimpleNamespace(fill=lambda rows, columns: Prompt((1, 2), -1, rows, columns))
    model = SimpleNamespace(
        tokenizer=tokenizer,
        preset=NATIVE,
        tokens=SimpleNamespace(prompt=prompt),
        target=SimpleNamespace(device=torch.device("cpu"), dtype=torch.float32),
    )
    rules = ReadingRules(
        model=model,  # type: ignore[arg-type]
        preprocessor=PreprocessorConfig.from_folder(folder),
        markup=markup_ids(tokenizer),
        max_tokens=50,
        stats=True,
    )
    costs = draft_costs(torch.device("cpu"))
    return PageJob(picture(rotation), rules, Drafting("none", tokenizer, rules.markup, costs))


def test_an_unforeseen_error_fails_the_page_where_asked_to(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def surprise(*_: object, **__: object) -> None:
        raise KeyError("no such block")

    job = make_job()
    job.begin()
    monkeypatch.setattr("ocria.pipeline.page_job.build_page_blocks", surprise)
    with pytest.raises(KeyError):
        job.conclude([result("<|paragraph|>")])
    isolated = IsolatedPageJob(job.picture, job._rules, job._drafting)
    isolated.begin()
    page = isolated.conclude([result("<|paragraph|>")])
    assert isinstance(page, Page) and page.status == "failed" and page.error is not None
    assert "no such block" in page.error.message


def result(text: str) -> Result:
    """What the engine says of a page on which the model wrote one token."""
    token = Tokenizer(find_checkpoint("ocria-nano") / "tokenizer.json").special_ids[text]
    return Result(
        token_ids=(token,),
        logprobs=(-0.1,),
        finish="eos",
        steps=1,
        accepted=(0, 1),
        vision_s=1.0,
        prefill_s=0.25,
        decode_s=0.125,
    )


def test_a_turned_page_is_read_again_and_its_seconds_add_up() -> None:
    job = make_job(rotation=90)
    assert not isinstance(job.begin(), Page)
    again = job.conclude([result("<|rot90|>")])
    assert not isinstance(again, Page) and job.picture.rotation == 180
    page = job.conclude([result("<|paragraph|>")])
    assert isinstance(page, Page) and page.rotation == 180
    assert page.stats is not None
    seconds = page.stats.seconds
    assert (seconds.rasterize, seconds.prefill, seconds.decode) == (0.5, 0.5, 0.25)
    assert 2.0 < seconds.vision < 7.0


def test_a_model_that_would_turn_a_turned_page_must_read_it_as_it_came() -> None:
    job, lay = make_job(rotation=270), []
    following = job.begin()
    for _ in range(3):
        assert not isinstance(following, Page)
        (request,) = following
        lay.append((job.picture.rotation, bool(request.not_first)))
        token = "<|paragraph|>" if request.not_first else "<|rot90|>"
        following = job.conclude([result(token)])
    assert lay == [(270, False), (0, False), (270, True)]
    assert isinstance(following, Page) and following.rotation == 270
    assert following.stats is not None and following.stats.seconds.prefill == 0.75
