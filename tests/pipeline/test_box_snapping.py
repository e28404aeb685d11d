"""Boxes that drift as a model's do come to lie around the ink of their blocks."""

import random
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, BlockType, Page
from ocria.pipeline import box_snapping
from ocria.vision import PageLines

WIDTH, HEIGHT = 800, 1000
"""A pixel a point."""
PITCH, SIZE, COLUMN = 24, 18, 320
FONT = ImageFont.load_default(SIZE)
TEXT = (
    "the harbour office opens at eight and closes when the last boat is in or at noon on Sundays "
    "payment of fees is due within thirty days without deduction to the account given below "
    "nobody came to see a second ship since it had been told that the first one was the last"
)
WORDS = TEXT.split()
Box = tuple[float, float, float, float]


def snapped(page: Page, rgb: NDArray[np.uint8]) -> Page:
    return box_snapping.snapped(page, PageLines(rgb))


class Sheet:
    """A page drawn block by block, with the boxes of their ink."""

    def __init__(self) -> None:
        self.image = Image.new("L", (WIDTH, HEIGHT), 245)
        self.texts: list[str] = []
        self.types: list[BlockType] = []
        self.boxes: list[Box] = []
        self._rng = random.Random(3)

    def block(self, x: int, y: int, num_lines: int, width: int = COLUMN, size: int = SIZE) -> int:
        """Draws so many lines, the last one shorter; where the next block may begin."""
        font, pitch = ImageFont.load_default(size), round(size * PITCH / SIZE)
        lines = [
            self._line(font, width if n + 1 < num_lines else width * self._rng.uniform(0.3, 0.9))
            for n in range(num_lines)
        ]
        draw = ImageDraw.Draw(self.image)
        places = [(x, y + n * pitch) for n in range(num_lines)]
        for place, line in zip(places, lines, strict=True):
            draw.text(place, line, fill=20, font=font)
        inked = [
            draw.textbbox(place, line, font=font) for place, line in zip(places, lines, strict=True)
        ]
        self._add("paragraph", " ".join(lines), hull(inked))
        return y + num_lines * pitch + 12

    def picture(self, x0: int, y0: int, x1: int, y1: int) -> int:
        """A chart of a few bars in a frame."""
        draw = ImageDraw.Draw(self.image)
        draw.rectangle((x0, y0, x1 - 1, y1 - 1), outline=30, width=2)
        for x in range(x0 + 20, x1 - 30, 40):
            draw.rectangle((x, self._rng.randrange(y0 + 10, y1 - 40), x + 20, y1 - 10), fill=90)
        self._add("figure", "", (x0, y0, x1, y1))
        return y1 + 16

    def _line(self, font: ImageFont.FreeTypeFont, width: float) -> str:
        words = [self._rng.choice(WORDS)]
        while font.getlength(" ".join(words)) < width:
            words.append(self._rng.choice(WORDS))
        return " ".join(words[: max(1, len(words) - 1)])

    def _add(self, type: BlockType, text: str, box: Box) -> None:
        self.types.append(type)
        self.texts.append(text)
        self.boxes.append(box)

    def rgb(self) -> NDArray[np.uint8]:
        return np.repeat(np.asarray(self.image)[..., None], 3, axis=2)

    def page(self, boxes: Sequence[Box | None]) -> Page:
        """A reading that says what was drawn, with these boxes."""
        return Page(
            number=2,
            width_pt=WIDTH,
            height_pt=HEIGHT,
            status="ok",
            blocks=tuple(
                Block(id=f"p2-b{n}", type=type, text=text, markdown=text, bbox=box)
                for n, (type, text, box) in enumerate(
                    zip(self.types, self.texts, boxes, strict=True), 1
                )
            ),
        )


def hull(boxes: Sequence[Box]) -> Box:
    x0, y0, x1, y1 = zip(*boxes, strict=True)
    return min(x0), min(y0), max(x1), max(y1)


def drifted(boxes: Sequence[Box], squeezed: float = 0.75) -> list[Box]:
    """As a model writes them: heights of several lines too small, gaps right, sides nearly so."""
    written, moved = [], 0.0
    for number, (above, box) in enumerate(pairwise([boxes[0], *boxes])):
        if box[1] < above[1]:
            moved = 0.0
        height = box[3] - box[1]
        lost = (1 - squeezed) * height if height > 1.5 * PITCH else 0.0
        side = 3.0 * (-1) ** number
        written.append((box[0] + side, box[1] - moved, box[2] - side, box[3] - moved - lost))
        moved += lost
    return written


def overlap(a: Box, b: Box | None) -> float:
    """Intersection over union."""
    if b is None:
        return 0.0
    width, height = min(a[2], b[2]) - max(a[0], b[0]), min(a[3], b[3]) - max(a[1], b[1])
    shared = max(0.0, width) * max(0.0, height)
    areas = [(c[2] - c[0]) * (c[3] - c[1]) for c in (a, b)]
    return shared / (sum(areas) - shared)


def column(sheet: Sheet, x: int, lines: Sequence[int], y: int = 40) -> None:
    for num_lines in lines:
        y = sheet.block(x, y, num_lines)


LINES = (1, 4, 2, 5, 1, 3, 1, 1, 4, 2)


def two_columns() -> Sheet:
    sheet = Sheet()
    column(sheet, 40, LINES)
    column(sheet, 420, LINES[::-1])
    return sheet


def test_boxes_that_drift_down_a_column_come_back() -> None:
    sheet = two_columns()
    before = sheet.page(drifted(sheet.boxes))
    lost = [overlap(box, block.bbox) for box, block in zip(sheet.boxes, before.blocks, strict=True)]
    assert sum(value >= 0.5 for value in lost) < 0.5 * len(lost)
    after = snapped(before, sheet.rgb())
    for box, block in zip(sheet.boxes, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.85
    assert [replace(block, bbox=None) for block in after.blocks] == [
        replace(block, bbox=None) for block in before.blocks
    ]
    assert replace(after, blocks=()) == replace(before, blocks=())


def worn(rgb: NDArray[np.uint8], how: str) -> NDArray[np.uint8]:
    grain = np.random.default_rng(1).normal(0, 9, (HEIGHT, WIDTH, 1))
    match how:
        case "inverted":
            return 255 - rgb
        case "noise":
            return np.clip(rgb + grain, 0, 255).astype(np.uint8)
        case "coloured":
            return (rgb * np.array([1.0, 0.85, 0.6])).astype(np.uint8)
        case "pale":
            return (190 + (rgb - 190.0) * 0.25).astype(np.uint8)
        case "fine":
            return rgb.repeat(2, axis=0).repeat(2, axis=1)
    raise ValueError(how)


@pytest.mark.parametrize("how", ["inverted", "noise", "coloured", "pale", "fine"])
def test_paper_and_scan_do_not_matter(how: str) -> None:
    sheet = two_columns()
    after = snapped(sheet.page(drifted(sheet.boxes)), worn(sheet.rgb(), how))
    for box, block in zip(sheet.boxes, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.75


@pytest.mark.parametrize("degrees", [-1.5, 0.7])
def test_a_leaning_page_gets_boxes_around_leaning_blocks(degrees: float) -> None:
    sheet = two_columns()
    sheet.image = sheet.image.rotate(degrees, Image.Resampling.BICUBIC, fillcolor=245)
    angle = np.radians(degrees)
    cos, sin = np.cos(angle), np.sin(angle)
    around = []
    for x0, y0, x1, y1 in sheet.boxes:
        corners = np.array([[x0, y0], [x1, y0], [x0, y1], [x1, y1]]) - (WIDTH / 2, HEIGHT / 2)
        turned = corners @ np.array([[cos, -sin], [sin, cos]]) + (WIDTH / 2, HEIGHT / 2)
        around.append((*turned.min(axis=0), *turned.max(axis=0)))
    after = snapped(sheet.page(drifted(around, 0.85)), sheet.rgb())
    found = [overlap(box, block.bbox) for box, block in zip(around, after.blocks, strict=True)]
    assert min(found) > 0.5 and np.median(found) > 0.8


def test_a_line_that_was_not_read_is_passed_over() -> None:
    sheet = Sheet()
    column(sheet, 40, (1,) * 12)
    boxes = drifted(sheet.boxes)
    page = sheet.page(boxes)
    read = [block for number, block in enumerate(page.blocks) if number != 6]
    after = snapped(replace(page, blocks=tuple(read)), sheet.rgb())
    wanted = [box for number, box in enumerate(sheet.boxes) if number != 6]
    for box, block in zip(wanted, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.85


def test_headings_and_pictures_between_text_are_found() -> None:
    sheet = Sheet()
    y = sheet.block(40, 40, 1, size=34)
    y = sheet.block(40, y + 10, 4)
    y = sheet.picture(60, y, 340, y + 160)
    y = sheet.block(40, y, 1)
    y = sheet.block(40, y + 10, 1, size=26)
    sheet.block(40, y, 6)
    after = snapped(sheet.page(drifted(sheet.boxes, 0.9)), sheet.rgb())
    for box, block in zip(sheet.boxes, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.8


def test_fields_in_one_row_stay_in_it() -> None:
    sheet = Sheet()
    for row in range(6):
        sheet.block(40, 40 + 60 * row, 1, 150)
        sheet.block(420, 40 + 60 * row, 1, 150)
    boxes = [(x0, y0 - 8, x1, y1 - 8) for x0, y0, x1, y1 in sheet.boxes]
    after = snapped(sheet.page(boxes), sheet.rgb())
    for box, block in zip(sheet.boxes, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.85


def test_a_block_that_is_nowhere_keeps_its_box() -> None:
    sheet = Sheet()
    column(sheet, 40, (1, 3, 2))
    nowhere: Box = (500.0, 800.0, 700.0, 840.0)
    sheet.texts.append("This stands on no paper at all.")
    sheet.types.append("paragraph")
    sheet.boxes.append(nowhere)
    after = snapped(sheet.page(sheet.boxes), sheet.rgb())
    assert after.blocks[-1].bbox == nowhere
    assert overlap(sheet.boxes[1], after.blocks[1].bbox) > 0.9


def test_boxes_that_were_right_stay_right() -> None:
    sheet = two_columns()
    after = snapped(sheet.page(sheet.boxes), sheet.rgb())
    for box, block in zip(sheet.boxes, after.blocks, strict=True):
        assert overlap(box, block.bbox) > 0.9


def test_odd_pages_keep_their_boxes() -> None:
    sheet = two_columns()
    page = sheet.page(drifted(sheet.boxes))
    bare = sheet.page([None] * len(sheet.boxes))
    assert snapped(bare, sheet.rgb()) == bare
    for odd in (replace(page, blocks=()), replace(page, width_pt=0.0)):
        assert snapped(odd, sheet.rgb()) is odd
    assert snapped(page, np.zeros((9, 400, 3), np.uint8)) is page
    white = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    assert snapped(page, white) == page
    many = replace(page, blocks=page.blocks * 60)
    assert snapped(many, sheet.rgb()) is many


def test_a_fault_costs_no_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def fault(*_: object) -> None:
        raise IndexError("no such line")

    sheet = two_columns()
    page = sheet.page(sheet.boxes)
    monkeypatch.setattr(box_snapping, "find_places", fault)
    assert snapped(page, sheet.rgb()) is page


@pytest.mark.parametrize("seed", range(6))
def test_any_boxes_on_any_ink_end_on_the_page(seed: int, caplog: pytest.LogCaptureFixture) -> None:
    rng = np.random.default_rng(seed)
    height, width = (int(side) for side in rng.integers(40, 700, 2))
    rgb = np.full((height, width, 3), 230, np.uint8)
    for _ in range(30):
        y, x = (int(rng.integers(0, side)) for side in (height, width))
        rgb[y : y + int(rng.integers(1, 30)), x : x + int(rng.integers(1, 200))] = 20
    types: list[BlockType] = ["paragraph", "table", "figure", "heading", "list_item", "formula"]
    blocks = []
    for number in range(40):
        x0, x1 = np.sort(rng.uniform(0, 600, 2)).tolist()
        y0, y1 = np.sort(rng.uniform(0, 800, 2)).tolist()
        text = "word " * int(rng.integers(0, 60))
        box = (x0, y0, x0 if number % 7 == 0 else x1, y0 if number % 5 == 0 else y1)
        type = types[number % len(types)]
        blocks.append(Block(id="", type=type, text=text, markdown=text, bbox=box))
    page = Page(number=1, width_pt=600.0, height_pt=800.0, status="ok", blocks=tuple(blocks))
    after = snapped(page, rgb)
    assert not caplog.records
    assert after == snapped(page, rgb)
    for block in after.blocks:
        assert block.bbox is not None
        x0, y0, x1, y1 = block.bbox
        assert 0 <= x0 <= x1 <= 600 and 0 <= y0 <= y1 <= 800
