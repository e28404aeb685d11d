"""Lines of text are found on level, leaning and drawn-upon pages, and pictures are none."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.vision import ink_map, line_cells

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
    cells = line_cells(ink_map(rgb(page(12, lean=lean)), 4_000_000))
    ems_L = np.bincount(cells.line_C, cells.ems_C)
    long = ems_L > 15
    assert long.sum() == 12
    # 34 letters without blanks; the page's density makes letters of ems.
    assert ems_L[long] == pytest.approx(np.median(ems_L[long]), rel=0.25)
    assert 25 < np.median(ems_L[long]) < 45


def test_cells_lie_where_the_lines_are() -> None:
    cells = line_cells(ink_map(rgb(page(3)), 4_000_000))
    assert cells.x_C.min() * WIDTH == pytest.approx(100, abs=10)
    assert cells.x_C.max() * WIDTH == pytest.approx(460, abs=25)
    assert cells.y_C.min() * HEIGHT == pytest.approx(70, abs=8)
    assert cells.y_C.max() * HEIGHT == pytest.approx(122, abs=8)
    assert np.all(cells.height_C * HEIGHT < 22)


def test_rules_pictures_and_dots_are_no_lines() -> None:
    image = page(0)
    draw = ImageDraw.Draw(image)
    draw.rectangle((80, 80, 700, 300), outline=20, width=2)
    draw.rectangle((100, 400, 500, 700), fill=60)
    draw.line((60, 760, 740, 760), fill=20, width=3)
    for x in range(100, 700, 6):
        draw.rectangle((x, 840, x + 1, 841), fill=20)
    assert line_cells(ink_map(rgb(image), 4_000_000)).num_lines == 0


def test_a_line_on_a_rule_is_found() -> None:
    image = page(2)
    ImageDraw.Draw(image).line((60, 84, 740, 84), fill=20, width=2)
    cells = line_cells(ink_map(rgb(image), 4_000_000))
    assert np.count_nonzero(np.bincount(cells.line_C, cells.ems_C) > 15) == 2


@pytest.mark.parametrize("size", [(1, 1), (16, 16), (64, 700), (700, 64)])
def test_odd_pages_raise_nothing(size: tuple[int, int]) -> None:
    assert line_cells(np.zeros(size, np.bool_)).num_lines == 0
    line_cells(np.ones(size, np.bool_))
    line_cells(np.random.default_rng(0).random(size) < 0.3)
