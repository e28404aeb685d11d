"""A page that was read badly is read again in regions, and the better reading is kept."""

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Page
from ocria.engine import Finish, Request, Result
from ocria.errors import PageError
from ocria.models.base import Prompt
from ocria.models.finding import find_checkpoint
from ocria.models.presets import NATIVE
from ocria.options import ParseOptions
from ocria.pipeline import regions
from ocria.pipeline.draft_costs import draft_costs
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.losses import NO_LOSS
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.page_job import PageJob, ReadingRules
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import PageImage, TextLayer, TextLine
from ocria.tokenizer import Tokenizer
from ocria.vision import PreprocessorConfig

FOLDER = find_checkpoint("ocria-nano")
TOKENIZER = Tokenizer(FOLDER / "tokenizer.json")
COSTS = draft_costs(torch.device("cpu"))


LINE = "Nobody came to see the second ship."
SHOWN = " ".join([LINE] * 54)


def picture() -> PageImage:
    """720 x 1024 pixels, 360 x 512 points, with lines between 40 and 475 points."""
    page = lines([LINE] * 54, pitch_px=16, size=(720, 1024))
    return replace(page, number=4, seconds=0.5)


def lines(
    texts: Sequence[str], *, pitch_px: int = 36, size: tuple[int, int] | None = None
) -> PageImage:
    """Lines of text, 2 pixels to a point."""
    image = Image.new("L", size or (448, 32 + pitch_px * len(texts)), 250)
    font, top = ImageFont.load_default(pitch_px * 0.55), 80 if size else 16
    for number, text in enumerate(texts):
        place = (60 if size else 12, top + pitch_px * number)
        ImageDraw.Draw(image).text(place, text, fill=10, font=font)
    return PageImage(
        number=1,
        rgb=np.asarray(image.convert("RGB")),
        width_pt=image.width / 2,
        height_pt=image.height / 2,
        rotation=0,
        seconds=0.0,
    )


def make_job(max_tokens: int = 500) -> PageJob:
    prompt = SimpleNamespace(fill=lambda rows, columns: Prompt((1, 2), -1, rows, columns))
    model = SimpleNamespace(
        tokenizer=TOKENIZER,
        preset=NATIVE,
        tokens=SimpleNamespace(prompt=prompt),
        target=SimpleNamespace(device=torch.device("cpu"), dtype=torch.float32),
    )
    rules = ReadingRules(
        model=model,  # type: ignore[arg-type]
        preprocessor=PreprocessorConfig.from_folder(FOLDER),
        markup=markup_ids(TOKENIZER),
        max_tokens=max_tokens,
        stats=True,
    )
    return PageJob(picture(), rules, Drafting("none", TOKENIZER, rules.markup, COSTS))


def said(text: str, finish: Finish = "eos", logprob: float = -0.05) -> Result:
    """A reading of one paragraph that covers the whole picture."""
    corners = [TOKENIZER.special_ids[f"<|{place}|>"] for place in (0, 0, 511, 511)]
    ids = (TOKENIZER.special_ids["<|paragraph|>"], *corners, *TOKENIZER.encode(text))
    return Result(
        token_ids=ids,
        logprobs=(logprob,) * len(ids),
        finish=finish,
        steps=2,
        accepted=(0, 1, 1),
        vision_s=1.0,
        prefill_s=0.25,
        decode_s=0.125,
    )


def said_twice(text: str, between: str, finish: Finish = "eos") -> Result:
    """A reading of three paragraphs, the last of which says under the first one's box the same."""
    ids: list[int] = []
    for part, places in (
        (text, (40, 40, 470, 250)),
        (between, (40, 251, 470, 480)),
        (text, (42, 41, 468, 248)),
    ):
        ids.append(TOKENIZER.special_ids["<|paragraph|>"])
        ids += [TOKENIZER.special_ids[f"<|{place}|>"] for place in places]
        ids += TOKENIZER.encode(part)
    return replace(
        said("", finish), token_ids=tuple(ids), logprobs=(-0.05,) * len(ids), finish=finish
    )


def read(job: PageJob, outcomes: Sequence[Result | PageError]) -> tuple[Page, list[Request]]:
    """What becomes of a page for which the engine says these things, and what it was asked."""
    asked, following, left = list[Request](), job.begin(), list(outcomes)
    while left:
        assert not isinstance(following, Page)
        asked += following
        now, left = left[: len(following)], left[len(following) :]
        following = job.conclude(now)
    assert isinstance(following, Page)
    return following, asked


def test_boxes_end_around_the_ink_if_the_checkpoint_is_our_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(regions.Reading, "is_doubtful", False)
    said_so = said(SHOWN)
    corners = [TOKENIZER.special_ids[f"<|{place}|>"] for place in (40, 20, 156, 400)]
    said_so = replace(said_so, token_ids=(said_so.token_ids[0], *corners, *said_so.token_ids[5:]))
    page, _ = read(make_job(), [said_so])
    assert page.blocks[0].bbox == pytest.approx((30, 43, 107, 471), abs=3)
    job = make_job()
    job._rules.model.preset = replace(NATIVE, name="another")  # type: ignore[misc]
    page, _ = read(job, [said_so])
    assert page.blocks[0].bbox == pytest.approx((28, 20, 110, 401), abs=1)


def test_a_reading_is_examined_with_snapped_boxes(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: dict[str, Page] = {}

    def heard(name: str, found: Any) -> Any:
        def found_of(page: Page, _: object) -> Any:
            seen[name] = page
            return found

        return found_of

    monkeypatch.setattr(regions, "find_loss", heard("loss", NO_LOSS))
    monkeypatch.setattr(regions, "find_leaps", heard("leaps", frozenset()))
    said_so = said(SHOWN)
    corners = [TOKENIZER.special_ids[f"<|{place}|>"] for place in (40, 20, 156, 400)]
    said_so = replace(said_so, token_ids=(said_so.token_ids[0], *corners, *said_so.token_ids[5:]))
    page, _ = read(make_job(), [said_so])
    assert page.blocks[0].bbox == pytest.approx((30, 43, 107, 471), abs=3)
    assert [seen[name].blocks[0].bbox for name in ("loss", "leaps")] == [page.blocks[0].bbox] * 2


def test_a_loop_is_read_again_in_regions() -> None:
    page, asked = read(
        make_job(), [said("one one", "loop"), said("one two three"), said("four five six")]
    )
    assert [block.text for block in page.blocks] == ["one two three", "four five six"]
    assert [block.id for block in page.blocks] == ["p4-b1", "p4-b2"]
    assert page.status == "ok" and page.number == 4
    assert (page.width_pt, page.height_pt) == (360.0, 512.0)
    assert page.num_tokens == sum(
        len(said(text).token_ids) for text in ("one two three", "four five six")
    )
    above, below = (block.bbox for block in page.blocks)
    assert above is not None and below is not None
    # Lines stand between 40 and 475 points; the cut is near their middle.
    assert 25 < above[1] < 40 and 200 < above[3] < 320
    assert 200 < below[1] < 320 and 475 < below[3] < 490
    assert all(request.not_first for request in asked[1:]) and not asked[0].not_first


def said_table(*rows: str, logprob: float = -0.05) -> Result:
    """A reading of one table over the lines of the picture; cells by bars."""
    ids = [TOKENIZER.special_ids[f"<|{name}|>"] for name in ("table", 60, 30, 480, 490)]
    for row in rows:
        for cell in row.split("|"):
            ids += [TOKENIZER.special_ids["<|fcel|>"], *TOKENIZER.encode(cell)]
        ids.append(TOKENIZER.special_ids["<|nl|>"])
    return replace(said(""), token_ids=tuple(ids), logprobs=(logprob,) * len(ids))


def test_a_table_that_fills_the_page_is_read_in_two_parts_and_joined() -> None:
    unsure = said_table("one|two", "three|four", logprob=-0.5)
    page, asked = read(make_job(), [unsure, said_table("one|2", "three|4"), said_table("five|6")])
    (table,) = page.blocks
    assert len(asked) == 3 and table.id == "p4-b1"
    assert table.text == "one\t2\nthree\t4\nfive\t6"
    assert table.bbox is not None and table.bbox[1] < 60 and table.bbox[3] > 450
    below = said("what stands below")
    page, _ = read(make_job(), [unsure, said_table("one|2", "three|4"), below])
    assert [block.type for block in page.blocks] == ["table", "paragraph"]


def test_seconds_of_both_readings_add_up_and_figures_are_those_of_the_kept_one() -> None:
    page, _ = read(make_job(), [said("one", "loop"), said("one two"), said("three four")])
    assert page.stats is not None and page.stats.decoding is not None
    seconds = page.stats.seconds
    assert (seconds.rasterize, seconds.prefill, seconds.decode) == (0.5, 0.75, 0.375)
    assert seconds.vision > 3.0
    assert page.stats.decoding.steps == 4
    assert page.stats.decoding.accepted_histogram == (0, 2, 2)
    assert page.stats.decoding.tokens_per_step == page.num_tokens / 4


@pytest.mark.parametrize(
    "second",
    [
        [said("one", "loop"), said("two", "loop")],
        [said("what could this be, if not a page", logprob=-3.0), said("two")],
        [PageError("decode_failed", "the model said nonsense")],
    ],
)
def test_the_first_reading_stays_where_the_second_is_no_better(
    second: list[Result | PageError],
) -> None:
    page, _ = read(make_job(), [said("one two three four five six", "loop"), *second])
    assert [block.text for block in page.blocks] == ["one two three four five six"]
    assert page.status == "repaired"
    assert page.stats is not None
    assert page.stats.seconds.prefill == 0.25 * (1 + sum(isinstance(s, Result) for s in second))


def test_a_kept_region_that_was_cut_off_is_said() -> None:
    page, _ = read(make_job(), [said("one", "loop"), said("one two"), said("three four", "loop")])
    assert len(page.blocks) == 2 and page.status == "repaired"


def test_sure_pages_and_those_at_their_limit_are_read_once() -> None:
    for outcome, status in ((said(SHOWN), "ok"), (said("one", "length"), "truncated")):
        page, _ = read(make_job(), [outcome])
        assert page.status == status
    unsure = said(SHOWN, logprob=-1.0)
    page, asked = read(make_job(2000), [unsure, said(SHOWN[:800]), said(SHOWN[800:])])
    assert len(asked) == 3 and len(page.blocks) == 2


def test_a_page_of_which_much_was_left_out_is_read_again() -> None:
    halves = [said(SHOWN[:900]), said(SHOWN[900:])]
    page, asked = read(make_job(2000), [said(SHOWN[:600]), *halves])
    assert len(asked) == 3
    assert (
        "".join(block.text for block in page.blocks) == SHOWN[:900].rstrip() + SHOWN[900:].lstrip()
    )
    assert (page.status, page.confidence) == ("ok", 0.95)


def test_what_stays_left_out_lowers_confidence() -> None:
    lost = PageError("decode_failed", "the model said nonsense")
    page, asked = read(make_job(2000), [said(SHOWN[:600]), lost, lost])
    assert len(asked) == 3
    assert page.confidence is not None
    assert 0.2 < page.confidence < 0.6


TWICE = "The harbour office opens at eight and closes when the last boat is in."


@pytest.mark.parametrize("finish", ["eos", "length"])
def test_a_page_that_repeats_itself_is_read_again_and_text_counts_once(finish: Finish) -> None:
    first = said_twice(TWICE, "one two three", finish)
    page, asked = read(make_job(), [first, said(TWICE), said("one two three four five")])
    assert len(asked) == 3
    assert [block.text for block in page.blocks] == [TWICE, "one two three four five"]
    assert page.status == "ok"


def test_a_repeat_is_left_out_where_the_first_reading_is_kept() -> None:
    first = said_twice(TWICE, "one two three four five")
    lost = PageError("decode_failed", "the model said nonsense")
    for second in ([lost], [said("one", logprob=-3.0), said("two", logprob=-3.0)]):
        page, _ = read(make_job(), [first, *second])
        assert [block.text for block in page.blocks] == [TWICE, "one two three four five"]
        assert [block.id for block in page.blocks] == ["p4-b1", "p4-b2"]
        assert page.status == "repaired"


def test_a_repeat_in_a_region_is_left_out() -> None:
    first = said_twice(TWICE, "one")
    page, _ = read(make_job(), [first, said_twice(TWICE, "one two three"), said("four five six")])
    assert [block.text for block in page.blocks] == [TWICE, "one two three", "four five six"]
    assert page.status == "repaired"


def test_regions_share_the_pages_limit() -> None:
    half = said("one two three four")
    spent = len(half.token_ids)
    outcomes = [said("one", "loop"), half, half]
    page, asked = read(make_job(2 * spent), outcomes)
    assert page.status == "ok" and page.num_tokens == 2 * spent
    # None has more than the page, nor all more than a few times that.
    limits = [request.max_tokens for request in asked[1:]]
    assert max(limits) <= 2 * spent and sum(limits) <= 8 * spent + 2
    page, _ = read(make_job(2 * spent - 1), outcomes)
    assert page.status == "truncated" and page.num_tokens == spent


def test_a_region_brings_its_part_of_the_text_layer() -> None:
    layer = TextLayer(
        (
            TextLine("above", (0.1, 0.2, 0.5, 0.3)),
            TextLine("below", (0.1, 0.8, 0.5, 0.9)),
        )
    )
    part = regions._layer_part(layer, (0.0, 0.5, 1.0, 1.0))
    (line,) = part.lines
    assert line.text == "below"
    assert line.box == pytest.approx((0.1, 0.6, 0.5, 0.8))


@pytest.fixture(scope="module")
def reader() -> PageReader:
    return load_page_reader(ParseOptions(device="cpu", max_tokens=96, drafter="none"))


def test_the_shipped_model_reads_regions_the_same_alone_and_among_others(
    reader: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(regions, "DOUBTFUL_CONFIDENCE", 1.01)
    monkeypatch.setattr(
        regions.SecondReading,
        "better",
        lambda _, joined: joined.page,
        raising=True,
    )
    texts = [
        "The old bridge was closed in 1924.",
        "Payment of 1,250.00 EUR is due.",
        "The harbour office opens at eight.",
        "Nobody came to see the second ship.",
    ]
    shown = [lines(texts), lines(texts[::-1])]
    alone = [reader.read(page) for page in shown]
    words = " ".join(block.text for block in alone[0].blocks)
    assert " ".join(words.split()) == " ".join(texts)
    for block in alone[0].blocks:
        assert block.bbox is not None
        assert 0 <= block.bbox[1] < block.bbox[3] <= alone[0].height_pt
    many = PageReader(
        reader.model, ParseOptions(device="cpu", max_tokens=96, drafter="auto"), most_pages=2
    )
    drafting = many.new_drafting()
    keys = [many.submit(many.job(page, drafting)) for page in shown]
    pages = {}
    while many.num_pages:
        pages.update(many.step())
    assert [replace(pages[key], stats=None) for key in keys] == alone


def test_pictures_are_wanted_finer_than_a_whole_page_is_read(reader: PageReader) -> None:
    a4_at_150_dpi = (1754, 1240)
    read = PreprocessorConfig.from_folder(FOLDER).size_rule(*a4_at_150_dpi)
    drawn = reader.size_rule(*a4_at_150_dpi)
    assert read == (1408, 992) and drawn == (1760, 1248)
