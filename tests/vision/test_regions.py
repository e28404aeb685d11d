"""Pages cut into regions: between lines, in gutters, never through ink."""

from itertools import pairwise

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.vision import Region, page_regions
from ocria.vision.ink import ink_map, ink_maps

WIDTH, HEIGHT = 992, 1408
SENTENCE = "The harbour office opens at eight and closes when the last boat is in "


def sheet() -> Image.Image:
    return Image.new("L", (WIDTH, HEIGHT), 250)


def write(page: Image.Image, box: tuple[int, int, int, int], *, text: str = SENTENCE) -> None:
    """Lines of 14 pixels with 7 between them, that fill the box."""
    x0, y0, x1, y1 = box
    font, draw = ImageFont.load_default(14), ImageDraw.Draw(page)
    longest = int((x1 - x0) / draw.textlength(text, font) * len(text))
    for number, y in enumerate(range(y0, y1 - 14, 21)):
        draw.text((x0, y), (text[number % 5 :] + text * 3)[:longest], font=font, fill=20)


def rgb(page: Image.Image) -> np.ndarray:
    return np.repeat(np.asarray(page)[..., None], 3, axis=2)


def inked(pixels: np.ndarray) -> int:
    return int((pixels[..., 0] < 120).sum())


def places(regions: tuple[Region, ...]) -> list[tuple[int, ...]]:
    """Boxes in pixels of the page."""
    sides = (WIDTH, HEIGHT, WIDTH, HEIGHT)
    return [tuple(round(v * side) for v, side in zip(r.box, sides, strict=True)) for r in regions]


@pytest.mark.parametrize("angle", [0.0, 1.4, -1.4])
def test_a_full_page_is_cut_between_two_lines(angle: float) -> None:
    page = sheet()
    write(page, (90, 100, 900, 1310))
    page = page.rotate(angle, Image.Resampling.BICUBIC, fillcolor=250)
    regions = page_regions(rgb(page))
    assert len(regions) == 2
    # Every line is in one region, whole, and in no other.
    assert sum(inked(region.rgb) for region in regions) == inked(rgb(page))
    (above, below) = places(regions)
    assert 560 < (above[3] + below[1]) / 2 < 850
    for region, (x0, y0, x1, y1) in zip(regions, places(regions), strict=True):
        assert region.rgb.shape == (y1 - y0, x1 - x0, 3) and region.rgb.flags.c_contiguous


def test_columns_come_one_after_the_other_under_their_heading() -> None:
    page = sheet()
    draw = ImageDraw.Draw(page)
    draw.text((200, 70), "Notice to mariners, the fifth", font=ImageFont.load_default(40), fill=0)
    write(page, (80, 160, 470, 1310))
    write(page, (520, 165, 910, 1310))
    draw.line((495, 160, 495, 1310), fill=60, width=2)
    regions = page_regions(rgb(page))
    found = places(regions)
    assert len(found) == 5
    heading, *columns = found
    assert heading[3] < 200
    assert all(box[2] < 530 for box in columns[:2]) and all(box[0] > 460 for box in columns[2:])
    assert columns[0][1] < columns[1][1] and columns[2][1] < columns[3][1]


def test_cells_of_a_table_are_no_columns() -> None:
    page = sheet()
    for x in (90, 350, 560, 760):
        write(page, (x, 100, x + 60 + x % 70, 1310), text="1,204.50 ")
    for first, second in pairwise(places(page_regions(rgb(page)))):
        assert first[1] < second[1] and first[0] < 100 and second[0] < 100


def test_no_cut_crosses_what_must_stay_whole() -> None:
    page = sheet()
    write(page, (90, 60, 900, 1350))
    table = (0.0, 0.3, 1.0, 0.7)
    regions = page_regions(rgb(page), [table])
    assert all(
        box[1] > 0.66 or box[3] < 0.34 or (box[1] <= 0.3 and box[3] >= 0.7)
        for box in (region.box for region in regions)
    )


def table(page: Image.Image, top: int, pitch: int, rows: int) -> tuple[float, float, float, float]:
    """A ruled table of four columns; its box in fractions of the page."""
    draw, font = ImageDraw.Draw(page), ImageFont.load_default(14)
    edges, bottom = (90, 300, 520, 700, 900), top + pitch * rows
    for number in range(rows):
        for left in edges[:-1]:
            draw.text((left + 12, top + pitch * number + 6), f"{number * 371} kg", 20, font=font)
    for number in range(rows + 1):
        y = top + pitch * number
        draw.line((edges[0], y, edges[-1], y), fill=40, width=2)
    for x in edges:
        draw.line((x, top, x, bottom), fill=40, width=2)
    return 90 / WIDTH, top / HEIGHT, 900 / WIDTH, bottom / HEIGHT


def test_a_table_that_is_most_of_the_page_is_cut_between_its_rows() -> None:
    page = sheet()
    ImageDraw.Draw(page).text((90, 60), "Cargo", fill=0, font=ImageFont.load_default(20))
    box = table(page, 120, 30, 40)
    # Found as a table, it is none of two columns of text either.
    above, below = page_regions(rgb(page), [box])
    assert (above.goes_on, below.goes_on) == (False, True)
    middle = (above.box[3] + below.box[1]) / 2
    assert 0.35 < middle < 0.65
    assert above.box[2] - above.box[0] > 0.8 and below.box[2] - below.box[0] > 0.8


def test_a_table_among_text_stays_whole() -> None:
    page = sheet()
    write(page, (90, 80, 900, 500))
    box = table(page, 540, 30, 12)
    write(page, (90, 940, 900, 1330))
    regions = page_regions(rgb(page), [box])
    assert len(regions) >= 2 and not any(region.goes_on for region in regions)
    rows = [(region.box[1], region.box[3]) for region in regions]
    assert sum(top < box[1] + 0.01 and bottom > box[3] - 0.01 for top, bottom in rows) == 1


@pytest.mark.parametrize("fill", [250, 40])
def test_a_page_without_lines_stays_whole(fill: int) -> None:
    page = sheet()
    ImageDraw.Draw(page).rectangle((60, 60, 930, 1340), fill=fill)
    assert page_regions(rgb(page)) == ()


@pytest.mark.parametrize("size", [(1, 1), (10, 300), (100, 900), (900, 129)])
def test_small_pictures_and_noise_are_no_trouble(size: tuple[int, int]) -> None:
    noise = np.random.default_rng(3).integers(0, 256, (*size, 3), dtype=np.uint8)
    regions = page_regions(noise, [(0.1, 0.1, 0.9, 0.5)])
    assert min(size) > 128 or regions == ()


def test_a_region_shows_paper_where_another_one_was() -> None:
    page = sheet()
    write(page, (90, 100, 900, 1310))
    page = page.rotate(1.4, Image.Resampling.BICUBIC, fillcolor=250)
    above, below = page_regions(rgb(page))
    assert above.box[3] > below.box[1]
    assert abs(int(np.median(above.rgb[-1])) - 250) <= 1


def test_pale_print_is_ink_where_it_is_wanted() -> None:
    page = Image.new("L", (320, 320), 245)
    ImageDraw.Draw(page).rectangle((40, 40, 80, 44), fill=20)
    ImageDraw.Draw(page).rectangle((40, 140, 80, 144), fill=212)
    usual, pale = ink_maps(rgb(page), 4_000_000)
    assert usual[42, 60] and pale[42, 60]
    assert pale[142, 60] and not usual[142, 60]
    assert np.array_equal(usual, ink_map(rgb(page), 4_000_000))


def test_the_ink_map_has_the_pages_own_shape() -> None:
    page = sheet().crop((0, 0, 501, 333))
    assert ink_map(rgb(page), 4_000_000).shape == (333, 501)
    assert ink_map(rgb(page), 100_000).shape == (167, 251)
