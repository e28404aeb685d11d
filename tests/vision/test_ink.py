"""Blank or not: self-made pages with what scanners and paper do to them."""

import io

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFilter, ImageFont

from ocria.vision import measure_ink

WIDTH, HEIGHT, DPI = 1008, 1440, 122
SENTENCE = "The harbour office opens at eight and closes when the last boat is in"


def sheet(level: int = 255) -> Image.Image:
    return Image.new("L", (WIDTH, HEIGHT), level)


def write(page: Image.Image, text: str, at: tuple[int, int], size_pt: float, level: int = 0):
    font = ImageFont.load_default(size_pt * DPI / 72)
    ImageDraw.Draw(page).text(at, text, font=font, fill=level)
    return page


def filled(page: Image.Image, level: int, lines: int = 45) -> Image.Image:
    for row in range(lines):
        write(page, SENTENCE, (110, 120 + 26 * row), 11, level)
    return page


def scanned(page: Image.Image, *, noise: float = 0.0, shade: float = 0.0) -> np.ndarray:
    """uint8 [H, W, 3]: with Gaussian noise, and darker by `shade` towards the right."""
    grey = np.asarray(page).astype(float) - shade * np.linspace(0, 1, page.width)
    grey += np.random.default_rng(5).normal(0, 1, grey.shape) * noise
    return np.repeat(np.clip(grey, 0, 255).astype(np.uint8)[..., None], 3, axis=2)


def compressed(rgb: np.ndarray, quality: int) -> np.ndarray:
    file = io.BytesIO()
    Image.fromarray(rgb).save(file, "JPEG", quality=quality)
    return np.asarray(Image.open(file).convert("RGB"))


def shining_through(level: int) -> Image.Image:
    back = filled(sheet(), level).transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    return back.filter(ImageFilter.GaussianBlur(1.2))


def dark_border(page: Image.Image, width: int, skew: int, level: int) -> Image.Image:
    draw = ImageDraw.Draw(page)
    draw.polygon([(0, 0), (width, 0), (width + skew, HEIGHT), (0, HEIGHT)], fill=level)
    draw.polygon([(0, 0), (WIDTH, 0), (WIDTH, width // 2), (0, width)], fill=level)
    return page


def speckled(page: Image.Image) -> Image.Image:
    draw = ImageDraw.Draw(page)
    for index in range(40):
        x, y = 60 + 113 * (index % 8), 60 + 257 * (index // 8)
        draw.rectangle((x, y, x + 2, y + 2), fill=40)
    return page


def dotted(share: float) -> np.ndarray:
    rgb = scanned(sheet(245))
    rgb[np.random.default_rng(3).random((HEIGHT, WIDTH)) < share] = 0
    return rgb


def gutter() -> np.ndarray:
    fall = 120 * np.exp(-np.arange(WIDTH) / 40.0)
    return np.clip(scanned(sheet(240), noise=3) - fall[None, :, None], 0, 255).astype(np.uint8)


BLANK = {
    "white": lambda: scanned(sheet()),
    "off-white": lambda: scanned(sheet(232)),
    "cream": lambda: np.broadcast_to(np.uint8([250, 240, 200]), (HEIGHT, WIDTH, 3)).copy(),
    "black": lambda: scanned(sheet(0)),
    "shaded": lambda: scanned(sheet(250), noise=4, shade=90),
    "noise": lambda: scanned(sheet(235), noise=12),
    "heavy noise": lambda: scanned(sheet(230), noise=20),
    "noise, jpeg": lambda: compressed(scanned(sheet(235), noise=8, shade=40), 30),
    "shining through": lambda: scanned(shining_through(215), noise=3),
    "shining through more": lambda: scanned(shining_through(195), noise=3),
    "dark border": lambda: scanned(dark_border(sheet(240), 30, 15, 10), noise=4),
    "wide dark border": lambda: scanned(dark_border(sheet(240), 55, 20, 10), noise=4),
    "grey border": lambda: scanned(dark_border(sheet(240), 40, 10, 120), noise=4),
    "gutter": gutter,
    "specks": lambda: scanned(speckled(sheet(245)), noise=3),
    "pepper": lambda: dotted(0.01),
    "one pixel": lambda: np.zeros((1, 1, 3), np.uint8),
    "one row": lambda: np.full((1, 200, 3), 250, np.uint8),
}


@pytest.mark.parametrize("name", BLANK)
def test_blank(name):
    assert measure_ink(BLANK[name]()).is_blank


def band(height: int, size_pt: float, level: int = 30) -> np.ndarray:
    page = sheet()
    ImageDraw.Draw(page).rectangle((0, 0, WIDTH, height), fill=level)
    return scanned(write(page, "Chapter one", (300, height // 3), size_pt, 255))


def high_resolution() -> np.ndarray:
    page = Image.new("L", (2 * 2480, 2 * 3508), 250)
    ImageDraw.Draw(page).text((2400, 6700), "1", font=ImageFont.load_default(8 * 600 / 72), fill=0)
    return np.repeat(np.asarray(page)[..., None], 3, axis=2)


INKED = {
    "dense": lambda: scanned(filled(sheet(), 0), noise=3),
    "dense, jpeg": lambda: compressed(scanned(filled(sheet(), 0), noise=3), 30),
    "pale line": lambda: scanned(filled(sheet(), 180, lines=1), noise=2),
    "line in noise": lambda: scanned(filled(sheet(230), 0, lines=1), noise=20),
    "line in shade": lambda: scanned(filled(sheet(250), 0, lines=1), noise=5, shade=100),
    "number over print shining through": lambda: scanned(
        write(shining_through(205), "7", (500, 1380), 9), noise=3
    ),
    "number beside a border": lambda: scanned(
        write(dark_border(sheet(240), 30, 15, 10), "1", (500, 1380), 8), noise=4
    ),
    "line without margin": lambda: scanned(write(sheet(), "Left at the top", (2, 3), 10)),
    "white on black": lambda: scanned(write(sheet(0), "Thank you", (400, 600), 14, 255)),
    "white in a thin dark band": lambda: band(80, 14),
    "white in a dark band": lambda: band(300, 24),
    "two huge letters": lambda: scanned(write(sheet(), "OK", (50, 300), 300)),
    "small cutting": lambda: scanned(write(sheet(), "Invoice 12", (5, 5), 12))[:40, :120],
    "large cutting": lambda: scanned(write(sheet(), "Invoice", (5, 5), 60))[:130, :420],
    "thin rule": lambda: scanned(write(sheet(), "_" * 20, (300, 700), 11)),
    "600 dpi": high_resolution,
}


@pytest.mark.parametrize("name", INKED)
def test_inked(name):
    assert not measure_ink(INKED[name]()).is_blank


@pytest.mark.parametrize("size_pt", [7, 8, 9, 10, 12])
@pytest.mark.parametrize("number", ["1", "4", "12", "- 3 -", "iv"])
def test_a_page_number_is_ink(number, size_pt):
    page = write(sheet(248), number, (WIDTH // 2, HEIGHT - 90), size_pt)
    for shift in range(4):
        assert not measure_ink(scanned(page, noise=2)[:, shift * 5 :]).is_blank


def test_figures():
    page = sheet()
    ImageDraw.Draw(page).rectangle((400, 400, 499, 499), outline=0, width=2)
    ink = measure_ink(scanned(page))
    assert ink.fraction == pytest.approx((100**2 - 96**2) / (WIDTH * HEIGHT), rel=0.02)
    assert ink.marks > 10
    assert measure_ink(scanned(sheet())).fraction == 0
