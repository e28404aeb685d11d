"""Lines of text are found on level, leaning and drawn-upon pages, and pictures are none."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.vision import PageLines

WIDTH, HEIGHT = 800, 1000
TEXT = "Nobody came to see the second ship, since"


def page(num_lines: int, *, lean: float = 0.0, pitch_px: int = 26) -> Image.Image:
    """Lines of 41 characters and about 360 pixels, from 60 pixels down on."""
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for number in range(num_lines):
        place = (100, 60 + pitch_px * number)
        ImageDraw.Draw(image).text(place, TEXT, fill=20, font=ImageFont.load_default(18))
    return image.rotate(lean, Image.Resampling.BICUBIC, fillcolor=245)


def rgb(image: Image.Image) -> NDArray[np.uint8]:
    return np.asarray(image.convert("RGB"))


@pytest.mark.parametrize("lean", [0.0, 1.5, -2.0])
def test_each_line_is_found_with_about_its_letters(lean: float) -> None:
    cells = PageLines(rgb(page(12, lean=lean))).cells()
    ems_L = np.bincount(cells.line_C, cells.ems_C)
    long = ems_L > 15
    assert long.sum() == 12
    # 34 letters without blanks; the page's density makes letters of ems.
    assert ems_L[long] == pytest.approx(np.median(ems_L[long]), rel=0.25)
    assert 25 < np.median(ems_L[long]) < 45


def test_cells_lie_where_the_lines_are() -> None:
    cells = PageLines(rgb(page(3))).cells()
    assert cells.x_C.min() == pytest.approx(100, abs=10)
    assert cells.x_C.max() == pytest.approx(460, abs=25)
    assert cells.y_C.min() == pytest.approx(70, abs=8)
    assert cells.y_C.max() == pytest.approx(122, abs=8)
    assert np.all(cells.height_C < 22)


def test_rules_pictures_and_dots_are_no_lines() -> None:
    image = page(0)
    draw = ImageDraw.Draw(image)
    draw.rectangle((80, 80, 700, 300), outline=20, width=2)
    draw.rectangle((100, 400, 500, 700), fill=60)
    draw.line((60, 760, 740, 760), fill=20, width=3)
    for x in range(100, 700, 6):
        draw.rectangle((x, 840, x + 1, 841), fill=20)
    assert PageLines(rgb(image)).cells().num_lines == 0


def test_a_line_on_a_rule_is_found() -> None:
    image = page(2)
    ImageDraw.Draw(image).line((60, 84, 740, 84), fill=20, width=2)
    cells = PageLines(rgb(image)).cells()
    assert np.count_nonzero(np.bincount(cells.line_C, cells.ems_C) > 15) == 2


@pytest.mark.parametrize("size", [(16, 16), (64, 700), (700, 64)])
def test_odd_pages_raise_nothing(size: tuple[int, int]) -> None:
    white = np.full((*size, 3), 255, np.uint8)
    assert PageLines(white).cells().num_lines == 0
    PageLines(white * 0).cells()
    PageLines(np.random.default_rng(0).integers(0, 256, (*size, 3), np.uint8)).cells()
