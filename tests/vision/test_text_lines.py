"""Lines of print are found where they were drawn, on level pages and leaning ones."""

import math

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.vision import PageLines

WIDTH, HEIGHT = 800, 1000
PITCH = 24
FONT = ImageFont.load_default(18)
WORDS = "fond deep lamb hold bulk had dog help field bald flag held jump hobby kept"
Box = tuple[float, float, float, float]
ALL = (0.0, 0.0, float(WIDTH), float(HEIGHT))


def blank() -> Image.Image:
    return Image.new("L", (WIDTH, HEIGHT), 245)


def write(image: Image.Image, lines: list[str], x: int, y: int, pitch: int = PITCH) -> list[Box]:
    """Draws lines; the boxes of their ink."""
    boxes = []
    for number, line in enumerate(lines):
        place = (x, y + pitch * number)
        ImageDraw.Draw(image).text(place, line, fill=20, font=FONT)
        boxes.append(tuple(map(float, ImageDraw.Draw(image).textbbox(place, line, font=FONT))))
    return boxes  # type: ignore[return-value]


def rgb(image: Image.Image) -> NDArray[np.uint8]:
    return np.repeat(np.asarray(image)[..., None], 3, axis=2)


def paragraph(num_lines: int, per_line: int = 9) -> list[str]:
    words = WORDS.split() * num_lines
    return [" ".join(words[per_line * n : per_line * (n + 1)]) for n in range(num_lines)]


@pytest.mark.parametrize("inverted", [False, True])
def test_lines_are_where_they_were_drawn(inverted: bool) -> None:
    image = blank()
    drawn = write(image, [*paragraph(5), "end."], 100, 200)
    pixels = rgb(image)
    page = PageLines(255 - pixels if inverted else pixels)
    assert page.slope == 0.0
    found = page.lines(ALL, 0.0)
    assert len(found) == 6
    for line, box in enumerate(drawn):
        edges = (found.left[line], found.top[line], found.right[line], found.bottom[line])
        assert np.allclose(edges, box, atol=2.0)
    assert found.width[-1] == pytest.approx(drawn[-1][2] - drawn[-1][0], abs=2)


def test_only_lines_within_reach_and_between_the_sides_are_told() -> None:
    image = blank()
    left = write(image, paragraph(8, 4), 60, 200)
    write(image, paragraph(8, 4), 420, 212)
    right_end = max(box[2] for box in left)
    assert right_end < 400
    page = PageLines(rgb(image))
    third = left[2]
    found = page.lines((60.0, third[1], right_end, third[3]), 1.2 * PITCH)
    assert len(found) == 3
    assert found.right.max() <= right_end + 2
    assert not len(page.lines((60.0, 700.0, 300.0, 720.0), 10.0))


@pytest.mark.parametrize("degrees", [-2.0, 1.0, 2.5])
def test_a_leaning_page_is_made_level(degrees: float) -> None:
    image = blank()
    boxes = write(image, paragraph(10), 100, 300)
    leaning = image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=245)
    page = PageLines(rgb(leaning))
    # Pillow turns against the clock, and a picture's rows count down.
    assert page.slope == pytest.approx(-math.tan(math.radians(degrees)), abs=0.002)
    found = page.lines((80.0, 200.0, 780.0, 800.0), 0.0)
    assert len(found) == len(boxes)
    # The box around a line of the picture is its level box and what it leans by.
    box = (found.left[4], found.top[4], found.right[4], found.bottom[4])
    x0, y0, x1, y1 = page.on_page(box)
    leans = abs(page.slope) * (x1 - x0) * WIDTH
    assert (y1 - y0) * HEIGHT == pytest.approx(found.bottom[4] - found.top[4] + leans, abs=1)
    assert np.allclose(page.level((x0, y0, x1, y1)), box, atol=1.0)


def test_lines_that_touch_are_parted() -> None:
    image = blank()
    write(image, paragraph(12), 100, 200, pitch=15)
    assert len(PageLines(rgb(image)).lines(ALL, 0.0)) == 12


def test_dots_and_accents_belong_to_their_line() -> None:
    image = blank()
    write(image, ["iiii iiii jiji", "ÀÉÎ ÈÔÛ", "iji"], 100, 200, pitch=32)
    write(image, paragraph(10), 100, 400)
    page = PageLines(rgb(image))
    assert len(page.lines((90.0, 180.0, 400.0, 320.0), 0.0)) == 3


def test_leaders_are_no_part_of_a_lines_width() -> None:
    image = blank()
    plain = write(image, ["Of the hobby"], 100, 200)[0]
    number = write(image, ["274"], 600, 200)[0]
    for x in range(int(plain[2]) + 6, int(number[0]) - 4, 8):
        ImageDraw.Draw(image).rectangle((x, plain[3] - 6, x + 1, plain[3] - 5), fill=20)
    write(image, paragraph(10), 100, 400)
    found = PageLines(rgb(image)).lines((90.0, 190.0, 700.0, 230.0), 0.0)
    assert len(found) == 1
    assert (found.left[0], found.right[0]) == pytest.approx((plain[0], number[2]), abs=2)
    letters = plain[2] - plain[0] + number[2] - number[0]
    assert found.width[0] == pytest.approx(letters, abs=14)


def test_odd_pictures_are_looked_at() -> None:
    noise = np.random.default_rng(5).integers(0, 256, (300, 200, 3), np.uint8)
    flat = np.full((40, 33, 3), 90, np.uint8)
    black = np.zeros((500, 500, 3), np.uint8)
    for picture in (noise, flat, black):
        height, width = picture.shape[:2]
        page = PageLines(picture)
        page.lines((0.0, 0.0, float(width), float(height)), float(height))
        assert not len(page.lines((float(width), 0.0, float(width), 0.0), 0.0))
