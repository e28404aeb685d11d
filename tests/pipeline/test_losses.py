"""Lines that no block's text accounts for are lost; lines beside their box are not."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, Page
from ocria.pipeline.box_snapping import snapped
from ocria.pipeline.losses import NO_LOSS, Loss, find_loss
from ocria.vision import PageLines

WIDTH, HEIGHT = 800, 1000
LINE = "Nobody came to see the second ship"
LEFT, RIGHT = 40, 420
PITCH = 24
NUM_LINES = 36
Box = tuple[float, float, float, float]


def drawn(columns: Sequence[int] = (LEFT, RIGHT)) -> PageLines:
    """Columns of 36 lines, the first at 60 pixels."""
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for x in columns:
        for number in range(NUM_LINES):
            place = (x, 60 + PITCH * number)
            ImageDraw.Draw(image).text(place, LINE, fill=20, font=ImageFont.load_default(18))
    return PageLines(np.asarray(image.convert("RGB")))


def loss(reading: Page, lines: PageLines) -> Loss:
    """Of the reading with its boxes snapped, as pages are looked at."""
    return find_loss(snapped(reading, lines), lines)


def box(x: int, first: int, last: int) -> Box:
    """Around lines `first` to `last`, which is not in it."""
    return x, 60 + PITCH * first, x + 310, 60 + PITCH * last


def block(num_lines: int, bbox: Box | None) -> Block:
    text = " ".join([LINE] * num_lines)
    return Block(id="", type="paragraph", text=text, markdown=text, bbox=bbox)


def page(blocks: Sequence[Block]) -> Page:
    """A reading, a pixel a point."""
    return Page(number=1, width_pt=WIDTH, height_pt=HEIGHT, status="ok", blocks=tuple(blocks))


def paragraphs(x: int) -> list[Block]:
    """The whole column, in paragraphs of six lines."""
    return [block(6, box(x, first, first + 6)) for first in range(0, NUM_LINES, 6)]


WHOLE = [*paragraphs(LEFT), *paragraphs(RIGHT)]


def test_a_whole_reading_has_lost_nothing() -> None:
    assert loss(page(WHOLE), drawn()) == NO_LOSS


@pytest.mark.parametrize("shift", [-60, -30, 30, 60])
def test_boxes_beside_their_ink_lose_nothing(shift: float) -> None:
    moved = [
        replace(b, bbox=(b.bbox[0] + 4, b.bbox[1] + shift, b.bbox[2] - 9, b.bbox[3] + shift))
        for b in WHOLE
        if b.bbox
    ]
    assert loss(page(moved), drawn()) == NO_LOSS


def squeezed(blocks: Sequence[Block]) -> list[Block]:
    return [
        replace(b, bbox=(b.bbox[0], b.bbox[1] * 0.96, b.bbox[2], b.bbox[3] * 0.96))
        for b in blocks
        if b.bbox
    ]


def test_boxes_that_pile_up_lose_nothing() -> None:
    assert loss(page(squeezed(WHOLE)), drawn()) == NO_LOSS


def test_boxes_that_pile_up_hide_no_loss() -> None:
    lost = loss(page(squeezed(WHOLE[:7] + WHOLE[8:])), drawn())
    assert 4 <= lost.num_lines <= 6


def test_lines_that_no_box_covers_are_lost() -> None:
    lost = loss(page(WHOLE[:6] + WHOLE[8:]), drawn())
    assert 7 <= lost.num_lines <= 12
    assert lost.share == pytest.approx(12 / 72, rel=0.45)


def test_a_box_with_too_little_text_has_lost_the_rest() -> None:
    short = [*WHOLE[:6], block(3, box(RIGHT, 0, 18)), *WHOLE[9:]]
    lost = loss(page(short), drawn())
    assert 9 <= lost.num_lines <= 15
    assert lost.share == pytest.approx(15 / 72, rel=0.45)


def test_a_column_that_was_left_out_is_lost_whole() -> None:
    lost = loss(page(WHOLE[:6]), drawn())
    assert lost.num_lines == NUM_LINES
    assert lost.share == pytest.approx(0.5, abs=0.02)


def test_text_of_one_column_pays_for_no_other() -> None:
    twice = [*WHOLE[:6], *(replace(b, id="again") for b in WHOLE[:6])]
    assert loss(page(twice), drawn()).num_lines == NUM_LINES


def test_a_line_or_two_are_no_matter() -> None:
    assert loss(page([*WHOLE[:-1], block(4, box(RIGHT, 30, 34))]), drawn()) == NO_LOSS


def test_ink_of_figures_and_formulas_needs_no_text() -> None:
    bare = Block(id="", type="figure", text="", markdown="", bbox=box(RIGHT, 0, NUM_LINES))
    assert loss(page([*WHOLE[:6], bare]), drawn()) == NO_LOSS
    formula = replace(bare, type="formula", text="x = 1")
    assert loss(page([*WHOLE[:6], formula]), drawn()) == NO_LOSS


def test_scattered_words_are_no_text() -> None:
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for number in range(12):
        place = (60 + 190 * (number % 3), 60 + 210 * (number // 3))
        ImageDraw.Draw(image).text(place, "some harbour", fill=20, font=ImageFont.load_default(18))
    shown = PageLines(np.asarray(image.convert("RGB")))
    assert loss(page([block(1, (600, 900, 780, 930))]), shown) == NO_LOSS


def test_a_page_of_which_nothing_was_read_is_lost() -> None:
    lost = loss(page([]), drawn())
    assert (lost.num_lines, lost.share) == (2 * NUM_LINES, pytest.approx(1.0))


def test_blocks_without_boxes_and_pages_without_ink_or_extent_tell_nothing() -> None:
    assert loss(page([block(1, None)]), drawn()) == NO_LOSS
    assert loss(page(WHOLE), PageLines(np.full((HEIGHT, WIDTH, 3), 245, np.uint8))) == NO_LOSS
    assert loss(replace(page(WHOLE[:1]), width_pt=0.0), drawn()) == NO_LOSS
