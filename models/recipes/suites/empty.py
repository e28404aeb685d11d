"""Pages without a letter: blank paper of several kinds, and figures without words."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

import numpy as np
from PIL import Image, ImageDraw, ImageFilter

from ocria.models.recipes.suites.sheet import Sheet
from ocria.models.recipes.suites.sources import Sources

WIDTH_PX, HEIGHT_PX = 1240, 1754
"""A4 at 150 dpi."""


def empty_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """Paper and figures in turn."""
    makers: tuple[tuple[str, Callable[[random.Random], Image.Image]], ...] = (
        ("blank/white", _white),
        ("figure/shapes", _shapes),
        ("blank/paper", _paper),
        ("figure/curve", _curve),
        ("blank/specks", _specks),
        ("figure/photograph", _photograph),
        ("blank/scan edge", _scan_edge),
        ("figure/ruled form", _grid),
    )
    for number in range(count):
        kind, maker = makers[number % len(makers)]
        yield Sheet(kind=kind, lang="", metric="blank", truth=None, picture=maker(rng))


def _white(rng: random.Random) -> Image.Image:
    level = rng.randint(244, 255)
    return Image.new("RGB", (WIDTH_PX, HEIGHT_PX), (level, level, level))


def _paper(rng: random.Random) -> Image.Image:
    """Off-white paper with grain and a slow change of light."""
    noise = np.random.default_rng(rng.randrange(2**32))
    light = np.linspace(rng.uniform(0.86, 0.95), 1.0, HEIGHT_PX)[:, None, None]
    grain = noise.normal(0.0, rng.uniform(1.5, 5.0), (HEIGHT_PX, WIDTH_PX, 1))
    tint = np.array((248.0, 243.0, 230.0))
    return Image.fromarray(np.clip(tint * light + grain, 0, 255).astype(np.uint8))


def _specks(rng: random.Random) -> Image.Image:
    image = _paper(rng)
    draw = ImageDraw.Draw(image)
    for _ in range(rng.randint(40, 220)):
        x, y, r = rng.randrange(WIDTH_PX), rng.randrange(HEIGHT_PX), rng.uniform(0.5, 2.2)
        draw.ellipse((x - r, y - r, x + r, y + r), fill=(60, 58, 55))
    return image


def _scan_edge(rng: random.Random) -> Image.Image:
    """A dark border and punch holes, as a flatbed leaves them."""
    image = _paper(rng)
    draw = ImageDraw.Draw(image)
    edge = rng.randint(10, 50)
    draw.rectangle((0, 0, edge, HEIGHT_PX), fill=(35, 33, 30))
    for part in (0.3, 0.7):
        y = HEIGHT_PX * part
        draw.ellipse((edge + 40, y - 22, edge + 84, y + 22), fill=(50, 48, 45))
    return image.filter(ImageFilter.GaussianBlur(1.2))


def _shapes(rng: random.Random) -> Image.Image:
    image = _white(rng)
    draw = ImageDraw.Draw(image)
    for _ in range(rng.randint(4, 9)):
        x, y = rng.randrange(100, 800), rng.randrange(100, 1200)
        box = (x, y, x + rng.randrange(90, 360), y + rng.randrange(90, 360))
        colour = tuple(rng.randrange(40, 230) for _ in range(3))
        shape = rng.choice((draw.rectangle, draw.ellipse))
        shape(box, outline=(20, 20, 20), fill=colour, width=4)
    return image


def _curve(rng: random.Random) -> Image.Image:
    image = _white(rng)
    draw = ImageDraw.Draw(image)
    draw.line(((180, 300), (180, 1200), (1080, 1200)), fill=(0, 0, 0), width=4)
    for _ in range(rng.randint(1, 3)):
        y, points = rng.uniform(500, 1000), []
        for x in range(180, 1080, 12):
            y = min(max(y + rng.gauss(0, 16), 320), 1180)
            points.append((x, y))
        draw.line(points, fill=tuple(rng.randrange(0, 200) for _ in range(3)), width=5)
    return image


def _photograph(rng: random.Random) -> Image.Image:
    """Smooth clouds of colour: no photograph, but as busy as one."""
    noise = np.random.default_rng(rng.randrange(2**32))
    coarse = noise.integers(0, 256, (18, 14, 3), dtype=np.uint8)
    picture = Image.fromarray(coarse).resize((900, 1200), Image.Resampling.BICUBIC)
    page = _white(rng)
    page.paste(picture, (170, 260))
    return page


def _grid(rng: random.Random) -> Image.Image:
    """An empty form: a table of lines with nothing in it."""
    image = _white(rng)
    draw = ImageDraw.Draw(image)
    columns, rows = rng.randint(2, 5), rng.randint(6, 18)
    for row in range(rows + 1):
        y = 200 + row * 1200 // rows
        draw.line(((150, y), (1090, y)), fill=(30, 30, 30), width=2)
    for column in range(columns + 1):
        x = 150 + column * 940 // columns
        draw.line(((x, 200), (x, 1400)), fill=(30, 30, 30), width=2)
    return image
