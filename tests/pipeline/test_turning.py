"""A page that lies on its side is turned, not read sideways."""

from types import SimpleNamespace

import numpy as np
import pytest

from ocria.document import Page, PageSeconds, PageStats, Rotation
from ocria.models.registry import find_checkpoint
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.page_reader import PageReader
from ocria.pipeline.turning import opening_turn, turned
from ocria.rasterize import PageImage
from ocria.tokenizer import Tokenizer

SECONDS = PageSeconds(rasterize=0.5, vision=1.0, prefill=0.25, decode=0.125)


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


class ScriptedReader(PageReader):
    """Asks for the given turns, one a reading; remembers how each picture lay."""

    def __init__(self, turns: list[Rotation]) -> None:
        self._turns = turns
        self._options = SimpleNamespace(stats=True)  # type: ignore[assignment]
        self.lay: list[Rotation] = []

    def _read_once(self, picture: PageImage, started: float) -> tuple[Page, Rotation]:
        self.lay.append(picture.rotation)
        page = Page(
            number=picture.number,
            width_pt=picture.width_pt,
            height_pt=picture.height_pt,
            rotation=picture.rotation,
            status="ok",
            stats=PageStats(seconds=SECONDS, decoding=None),
        )
        return page, self._turns.pop(0)


def test_a_turned_page_is_read_again_and_its_seconds_add_up() -> None:
    reader = ScriptedReader([90, 0])
    page = reader._read(picture(rotation=90))
    assert reader.lay == [90, 180]
    assert (page.status, page.rotation) == ("ok", 180)
    assert page.stats is not None
    assert page.stats.seconds == PageSeconds(rasterize=0.5, vision=2.0, prefill=0.5, decode=0.25)


def test_a_model_that_turns_forever_is_stopped() -> None:
    reader = ScriptedReader([90, 90, 90, 90])
    page = reader._read(picture())
    assert reader.lay == [0, 90, 180, 270]
    assert page.status == "repaired"
