"""Ink under boxes, and whether two boxes show the same print."""

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.vision import PagePrint

WIDTH, HEIGHT = 800, 1000
Box = tuple[float, float, float, float]
VERSE = (
    "The harbour office opens at eight",
    "and closes when the last boat is in",
    "but nobody came to see the second",
)
OTHER = (
    "Payment is due within thirty days",
    "of the invoice, without deduction,",
    "to one of the accounts given below",
)


def page(*stanzas: tuple[int, int, tuple[str, ...]], noise: float = 0.0) -> NDArray[np.uint8]:
    """Stanzas with their left upper corners in pixels."""
    image = Image.new("L", (WIDTH, HEIGHT), 245)
    for x, y, lines in stanzas:
        for number, line in enumerate(lines):
            place = (x, y + 26 * number)
            ImageDraw.Draw(image).text(place, line, fill=20, font=ImageFont.load_default(18))
    grey = np.asarray(image) + np.random.default_rng(1).normal(0, noise, (HEIGHT, WIDTH))
    return np.repeat(grey.clip(0, 255).astype(np.uint8)[..., None], 3, axis=2)


def box(x: int, y: int, width: int = 310, height: int = 76) -> Box:
    return x / WIDTH, y / HEIGHT, (x + width) / WIDTH, (y + height) / HEIGHT


def test_ink_counts_what_no_other_box_has() -> None:
    shown = PagePrint(page((40, 40, VERSE)))
    whole = shown.ink(box(40, 40))
    assert whole > 1000
    assert shown.ink(box(40, 300)) == 0
    upper, lower = box(40, 40, height=25), box(40, 65, height=51)
    assert shown.ink(box(40, 40), [lower]) == pytest.approx(shown.ink(upper), rel=0.05)
    assert shown.ink(box(40, 40), [upper, lower]) < 0.02 * whole
    assert shown.ink(box(40, 40), [box(400, 40), box(40, 500)]) == whole


@pytest.mark.parametrize("noise", [0.0, 12.0])
def test_two_prints_of_a_text_are_alike_and_others_are_not(noise: float) -> None:
    shown = PagePrint(page((40, 40, VERSE), (420, 503, VERSE), (40, 700, OTHER), noise=noise))
    assert shown.likeness(box(40, 40), box(420, 503)) > 0.6
    # Boxes lie beside their ink by some pixels.
    assert shown.likeness(box(35, 44), box(427, 497, width=300)) > 0.5
    assert shown.likeness(box(40, 40), box(40, 700)) < 0.3
    assert shown.likeness(box(40, 40), box(420, 40)) < 0.05


def test_a_neighbour_is_not_found_where_it_stands() -> None:
    shown = PagePrint(page((40, 40, VERSE), (40, 118, OTHER)))
    assert shown.likeness(box(40, 40), box(40, 118, height=80)) < 0.35


def test_boxes_at_the_edge_and_without_extent_raise_nothing() -> None:
    shown = PagePrint(page((40, 40, VERSE)))
    for odd in ((1.0, 1.0, 1.0, 1.0), (0.0, 0.0, 0.0, 0.0), (0.3, 0.3, 0.3, 0.9)):
        assert shown.ink(odd) >= 0
        assert shown.likeness(odd, box(40, 40)) <= 1.0
