"""Text read across columns is found where the picture shows columns of prose."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, BlockType, Page
from ocria.pipeline.leaps import find_leaps
from ocria.vision import PageLines

WIDTH, HEIGHT = 800, 1000
LINE = "Nobody came to see the second ship"
LEFT, RIGHT = 40, 430
PITCH = 24
NUM_LINES = 36
Box = tuple[float, float, float, float]


def drawn(line: str = LINE) -> NDArray[np.bool_]:
    """Two columns of 36 lines."""
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for x in (LEFT, RIGHT):
        for number in range(NUM_LINES):
            place = (x, 60 + PITCH * number)
            ImageDraw.Draw(image).text(place, line, fill=20, font=ImageFont.load_default(19))
    return PageLines(np.asarray(image.convert("RGB"))).ink_HW


def page(boxes: Sequence[Box], type: BlockType = "paragraph") -> Page:
    """A reading with blocks of these boxes and as much text as fits them, a pixel a point."""
    return Page(
        number=1,
        width_pt=WIDTH,
        height_pt=HEIGHT,
        status="ok",
        blocks=tuple(
            Block(id="", type=type, text=text, markdown=text, bbox=box)
            for box in boxes
            for text in [LINE * round((box[2] - box[0]) * (box[3] - box[1]) / 330 / PITCH)]
        ),
    )


def lines(x: float, first: int, last: int, width: float = 330) -> Box:
    return x, 60 + PITCH * first, x + width, 60 + PITCH * last


PARAGRAPHS = [lines(x, first, first + 6) for x in (LEFT, RIGHT) for first in range(0, 36, 6)]
ZIGZAG = [lines(x, number, number + 1) for number in range(36) for x in (LEFT, RIGHT)]
ACROSS = [lines(LEFT, number, number + 1, RIGHT + 330 - LEFT) for number in range(36)]


def test_columns_read_one_after_the_other_do_not_leap() -> None:
    assert not find_leaps(page(PARAGRAPHS), drawn())
    each_line = sorted(ZIGZAG)
    assert not find_leaps(page(each_line), drawn())


def test_lines_read_in_a_zigzag_leap() -> None:
    found = find_leaps(page(ZIGZAG), drawn())
    assert found >= set(range(2, 70))


def test_lines_read_across_the_gutter_leap() -> None:
    assert len(find_leaps(page(ACROSS), drawn())) > 30
    whole = lines(LEFT, 0, NUM_LINES, RIGHT + 330 - LEFT)
    assert find_leaps(page([whole]), drawn()) == {0}


def test_a_heading_over_both_columns_is_none() -> None:
    heading = (LEFT, 20.0, RIGHT + 330.0, 50.0)
    assert not find_leaps(page([heading, *PARAGRAPHS]), drawn())


def test_three_leaps_are_none() -> None:
    assert not find_leaps(page([*ZIGZAG[:4], *PARAGRAPHS[1:6], *PARAGRAPHS[7:]]), drawn())


def test_tables_and_forms_are_read_across() -> None:
    assert not find_leaps(page(ACROSS, "table"), drawn())
    # Two words a line do not fill a column of prose.
    assert not find_leaps(page(ZIGZAG), drawn("harbour"))


def test_blocks_without_boxes_or_a_page_without_extent_are_let_be() -> None:
    block = Block(id="", type="paragraph", text=LINE, markdown=LINE)
    bare = Page(number=1, width_pt=WIDTH, height_pt=HEIGHT, status="ok", blocks=(block,))
    assert not find_leaps(bare, drawn())
    assert not find_leaps(
        Page(number=1, width_pt=0.0, height_pt=0.0, status="ok", blocks=page(ZIGZAG).blocks),
        drawn(),
    )
