"""Charts, diagrams and maps with words in them: figures, whose text is not read.

A reader that has seen charts without labels only takes one with labels for a table.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style, grey, quoted

_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_GREYS = (0, 48, 96, 128, 160, 200)


@dataclass(frozen=True, kw_only=True)
class _Pen:
    """Draws at places given in shares of the figure's sides; sizes in points.

    Text and axes are in the block's colour, so that its box holds them; what lies between may be
    in any grey.
    """

    rng: random.Random
    words: Callable[[int], str]
    width_pt: float
    height_pt: float
    size_pt: float
    font: str

    def at(self, x: float, y: float, inner: str) -> str:
        return (
            f"#place(top + left, dx: {x * self.width_pt:.1f}pt, dy: {y * self.height_pt:.1f}pt, "
            f"{inner})"
        )

    def text(self, x: float, y: float, text: str, *, grow: float = 1.0, turn: int = 0) -> str:
        """Text whose centre is at a place."""
        size = self.size_pt * grow
        room_pt, high_pt = (len(text) + 4) * size, 2 * size
        inner = f"text(font: {quoted(self.font)}, size: {size:.1f}pt, fill: COLOUR, {quoted(text)})"
        sides = f"width: {room_pt:.1f}pt, height: {high_pt:.1f}pt"
        box = f"box({sides}, align(center + horizon, {inner}))"
        shift_x, shift_y = room_pt / 2 / self.width_pt, high_pt / 2 / self.height_pt
        return self.at(x - shift_x, y - shift_y, f"rotate({turn}deg, {box})" if turn else box)

    def line(self, start: tuple[float, float], end: tuple[float, float], stroke: str) -> str:
        (x0, y0), (x1, y1) = start, end
        w, h = self.width_pt, self.height_pt
        return (
            f"#place(top + left, line(start: ({x0 * w:.1f}pt, {y0 * h:.1f}pt), "
            f"end: ({x1 * w:.1f}pt, {y1 * h:.1f}pt), stroke: {stroke}))"
        )

    def rect(self, x: float, y: float, width: float, height: float, look: str) -> str:
        return self.at(
            x, y,
            f"rect(width: {width * self.width_pt:.1f}pt, height: {height * self.height_pt:.1f}pt, "
            f"{look})",
        )  # fmt: skip

    def dot(self, x: float, y: float, radius_pt: float, look: str) -> str:
        shape = f"circle(radius: {radius_pt:.1f}pt, {look})"
        return self.at(x - radius_pt / self.width_pt, y - radius_pt / self.height_pt, shape)


def chart_source(
    studio: Studio, rng: random.Random, look: Look, width_pt: float, height_pt: float
) -> str:
    """Typst source of a figure with words; COLOUR stands where the block's colour goes."""
    size = min(look.size_pt * rng.uniform(0.55, 0.95), height_pt / 9)
    family = studio.shelf.draw(rng, lang=look.lang, categories=("sans",))
    pen = _Pen(
        rng=rng, words=lambda count: studio.words(rng, look.lang, count), width_pt=width_pt,
        height_pt=height_pt, size_pt=size, font=rng.choice((family.name, look.body.name)),
    )  # fmt: skip
    draw = rng.choice((_axes, _axes, _axes, _lying, _pie, _flow, _map, _panels))
    fill = rng.choice(("none", "none", grey(248), grey(232)))
    # A ground without an edge would reach beyond the ink that tells the box.
    edge = f"{rng.uniform(0.4, 1.2):.1f}pt + COLOUR"
    if fill == "none" and rng.random() < 0.7:
        edge = "none"
    return (
        f"#box(width: {width_pt:.1f}pt, height: {height_pt:.1f}pt, clip: true, fill: {fill}, "
        f"stroke: {edge})[#set par(leading: 0.4em, justify: false)\n{draw(pen)}]"
    )


def _steps(rng: random.Random, count: int) -> list[str]:
    """Numbers on an axis, evenly apart."""
    step = rng.choice((1, 2, 5, 10, 20, 25, 50, 100, 500)) * rng.choice((0.01, 0.1, 1, 1, 1, 1000))
    start = rng.choice((0, 0, 0, -2, 1, 4)) * step
    tail = rng.choice(("", "", "", "%", " %", "k", " mm"))
    places = 0 if step >= 1 else 2 if step < 0.1 else 1
    return [f"{start + i * step:,.{places}f}{tail}" for i in range(count)]


def _names(pen: _Pen, count: int) -> list[str]:
    """What stands along an axis: years, months, names or numbers."""
    kind = pen.rng.random()
    if kind < 0.25:
        first, step = pen.rng.randint(1900, 2015), pen.rng.choice((1, 1, 2, 5, 10))
        return [str(first + i * step) for i in range(count)]
    if kind < 0.4:
        start = pen.rng.randrange(12)
        return [_MONTHS[(start + i) % 12] for i in range(count)]
    if kind < 0.7:
        return [pen.words(1)[:9] for _ in range(count)]
    return _steps(pen.rng, count)


def _axes(pen: _Pen) -> str:
    return _plot(pen, 0.0, 0.0, 1.0, 1.0)


def _panels(pen: _Pen) -> str:
    """Two plots or three beside each other, or four, with letters."""
    columns, rows = pen.rng.choice(((2, 1), (2, 1), (3, 1), (2, 2), (1, 2)))
    parts, style = [], pen.rng.choice(("a", "(a)", "A", "a)"))
    for i in range(columns * rows):
        x, y = (i % columns) / columns, (i // columns) / rows
        parts.append(_plot(pen, x, y, 1 / columns, 1 / rows, plain=True))
        letter = chr(ord(style.strip("()")) + i)
        parts.append(
            pen.text(x + 0.02, y + 0.03, style.replace(style.strip("()"), letter), grow=1.2)
        )
    return "".join(parts)


def _plot(
    pen: _Pen, x: float, y: float, width: float, height: float, *, plain: bool = False
) -> str:
    """Bars, lines or points over two axes inside a part of the figure."""
    rng = pen.rng
    left, bottom = x + width * rng.uniform(0.13, 0.2), y + height * rng.uniform(0.76, 0.84)
    right, top = x + width * rng.uniform(0.9, 0.97), y + height * rng.uniform(0.08, 0.16)
    axis = f"{rng.uniform(0.4, 1.0):.1f}pt + COLOUR"
    parts = [pen.line((left, bottom), (right, bottom), axis)]
    if rng.random() < 0.8:
        parts.append(pen.line((left, top), (left, bottom), axis))
    if rng.random() < 0.3:
        parts.append(pen.rect(left, top, right - left, bottom - top, f"stroke: {axis}"))
    marks = rng.randint(3, 5 if plain else 8)
    for i, label in enumerate(_steps(rng, marks)):
        at = bottom - (bottom - top) * i / (marks - 1)
        parts.append(pen.text(left - 0.06 * width, at, label))
        if rng.random() < 0.5:
            parts.append(pen.line((left, at), (right, at), f"0.3pt + {grey(200)}"))
    count = rng.randint(3, 5 if plain else 10)
    room = (right - left) / count
    turn = rng.choice((0, 0, 0, -45, -90))
    for i, label in enumerate(_names(pen, count)):
        parts.append(pen.text(left + room * (i + 0.5), bottom + 0.06 * height, label, turn=turn))
    parts.append(rng.choice((_bars, _lines, _points))(pen, left, right, top, bottom, count))
    if rng.random() < 0.6:
        words = pen.words(rng.randint(1, 3))
        parts.append(pen.text((left + right) / 2, y + height * 0.95, words))
    if rng.random() < 0.6:
        words = pen.words(rng.randint(1, 2))
        parts.append(pen.text(x + width * 0.03, (top + bottom) / 2, words, turn=-90))
    if rng.random() < 0.4 and not plain:
        parts.append(
            pen.text(
                (left + right) / 2, y + height * 0.04, pen.words(rng.randint(2, 6)), grow=1.2
            )
        )  # fmt: skip
    if rng.random() < 0.4 and not plain:
        parts.append(_legend(pen, left, right, top))
    return "".join(parts)


def _legend(pen: _Pen, left: float, right: float, top: float) -> str:
    parts, x = [], pen.rng.uniform(left, (left + right) / 2)
    for i in range(pen.rng.randint(2, 4)):
        at = top + i * 1.4 * pen.size_pt / pen.height_pt
        parts.append(pen.rect(x, at - 0.01, 0.03, 0.02, f"fill: {grey(pen.rng.choice(_GREYS))}"))
        parts.append(pen.text(x + 0.12, at, pen.words(pen.rng.randint(1, 2))))
    return "".join(parts)


def _bars(
    pen: _Pen, left: float, right: float, top: float, bottom: float, count: int
) -> str:  # fmt: skip
    rng, parts = pen.rng, []
    series = rng.randint(1, 3)
    shades = rng.sample(_GREYS, series)
    told = rng.random() < 0.4
    room = (right - left) / count
    wide = room * rng.uniform(0.5, 0.9) / series
    for i in range(count):
        for j, shade in enumerate(shades):
            tall = (bottom - top) * rng.uniform(0.05, 0.95)
            x = left + room * i + (room - wide * series) / 2 + wide * j
            parts.append(pen.rect(x, bottom - tall, wide, tall, f"fill: {grey(shade)}"))
            if told:
                number = str(rng.choice((rng.randint(1, 99), round(rng.uniform(0, 99), 1))))
                parts.append(pen.text(x + wide / 2, bottom - tall - 0.03, number, grow=0.9))
    return "".join(parts)


def _lines(
    pen: _Pen, left: float, right: float, top: float, bottom: float, count: int
) -> str:  # fmt: skip
    rng, parts = pen.rng, []
    places = rng.randint(count, count * 3)
    for _ in range(rng.randint(1, 4)):
        stroke = f"{rng.uniform(0.5, 1.8):.1f}pt + {grey(rng.choice(_GREYS[:4]))}"
        level, path = rng.random(), []
        for i in range(places):
            level = min(0.98, max(0.02, level + rng.uniform(-0.2, 0.2)))
            path.append((left + (right - left) * i / (places - 1), top + (bottom - top) * level))
        parts += [pen.line(a, b, stroke) for a, b in pairwise(path)]
        if rng.random() < 0.4:
            parts += [pen.dot(x, y, 1.5, f"fill: {grey(0)}") for x, y in path]
    return "".join(parts)


def _points(
    pen: _Pen, left: float, right: float, top: float, bottom: float, count: int
) -> str:  # fmt: skip
    rng, parts = pen.rng, []
    for _ in range(count * rng.randint(2, 6)):
        x, y = rng.uniform(left, right), rng.uniform(top, bottom)
        parts.append(pen.dot(x, y, rng.uniform(0.8, 2.5), f"fill: {grey(rng.choice(_GREYS))}"))
        if rng.random() < 0.06:
            parts.append(pen.text(x, y - 0.04, pen.words(1), grow=0.85))
    return "".join(parts)


def _lying(pen: _Pen) -> str:
    """Bars that lie, a name before each and a number behind it."""
    rng = pen.rng
    count = max(2, min(rng.randint(3, 12), int(pen.height_pt / pen.size_pt / 1.5)))
    left, pitch = rng.uniform(0.25, 0.42), 0.94 / count
    parts = [pen.line((left, 0.02), (left, 0.97), f"{rng.uniform(0.4, 1.0):.1f}pt + COLOUR")]
    for i in range(count):
        at, long = 0.03 + pitch * (i + 0.5), rng.uniform(0.03, 0.88 - left)
        shade = f"fill: {grey(rng.choice(_GREYS))}"
        parts.append(pen.rect(left, at - pitch * 0.35, long, pitch * 0.7, shade))
        parts.append(pen.text(left / 2, at, pen.words(rng.randint(1, 2))[:20]))
        if rng.random() < 0.6:
            parts.append(pen.text(left + long + 0.05, at, f"{rng.uniform(0, 100):.1f}"))
    return "".join(parts)


def _pie(pen: _Pen) -> str:
    """A disc with rays, names and shares around it."""
    rng = pen.rng
    radius = min(pen.width_pt, pen.height_pt) * rng.uniform(0.26, 0.34)
    look = f"fill: {grey(rng.choice((160, 200, 232)))}, stroke: 0.7pt + COLOUR"
    parts = [pen.dot(0.5, 0.5, radius, look)]
    count = rng.randint(3, 7)
    for i in range(count):
        turn = 360 * (i + rng.uniform(-0.2, 0.2)) / count
        centre = f"({0.5 * pen.width_pt:.1f}pt, {0.5 * pen.height_pt:.1f}pt)"
        parts.append(
            f"#place(top + left, line(start: {centre}, length: {radius:.1f}pt, "
            f"angle: {turn:.0f}deg, stroke: 0.7pt + {grey(0)}))"
        )
    for side, number in ((-1, count // 2), (1, count - count // 2)):
        for i in range(number):
            words = f"{pen.words(1)} {rng.randint(1, 60)}%"
            x = 0.5 + side * (radius / pen.width_pt + 0.12)
            parts.append(pen.text(x, 0.1 + 0.8 * (i + 0.5) / number, words))
    return "".join(parts)


def _flow(pen: _Pen) -> str:
    """Boxes with a few words, joined by lines."""
    rng = pen.rng
    columns, rows = rng.randint(2, 4), rng.randint(1, 3)
    wide, tall = 0.74 / columns, min(0.5 / rows, 4.0 * pen.size_pt / pen.height_pt)
    stroke = f"{rng.uniform(0.4, 1.0):.1f}pt + COLOUR"
    fill = rng.choice(("none", grey(248), grey(216)))
    radius = rng.choice((0, 0, 4, 9))
    parts: list[str] = []
    centres: list[tuple[float, float]] = []
    for row in range(rows):
        for column in range(columns):
            if rng.random() < 0.15 and len(centres) > 1:
                continue
            centres.append(((column + 0.5) / columns, (row + 0.5) / rows))
    for (x0, y0), (x1, y1) in _joined(rng, centres):
        parts.append(pen.line((x0, y0), (x1, y1), f"0.6pt + {grey(0)}"))
        parts.append(pen.dot((x0 + x1) / 2, (y0 + y1) / 2, 1.6, f"fill: {grey(0)}"))
    for x, y in centres:
        look = f"fill: {fill if fill != 'none' else grey(248)}, stroke: {stroke}"
        parts.append(
            pen.rect(x - wide / 2, y - tall / 2, wide, tall, f"{look}, radius: {radius}pt")
        )
        most = max(3, int(wide * pen.width_pt / pen.size_pt * 1.6))
        lines = [pen.words(2)[:most] for _ in range(1 if tall * pen.height_pt < 20 else 2)]
        for i, line in enumerate(lines):
            at = y + (i - (len(lines) - 1) / 2) * 1.2 * pen.size_pt / pen.height_pt
            parts.append(pen.text(x, at, line))
    return "".join(parts)


def _joined(
    rng: random.Random, centres: Sequence[tuple[float, float]]
) -> list[tuple[tuple[float, float], tuple[float, float]]]:
    pairs = list(pairwise(centres))
    pairs += [(rng.choice(centres), rng.choice(centres)) for _ in range(rng.randint(0, 2))]
    return pairs


def _map(pen: _Pen) -> str:
    """Borders and places with names."""
    rng = pen.rng
    parts = [pen.rect(0.01, 0.01, 0.98, 0.98, "stroke: 0.5pt + COLOUR")]
    for _ in range(rng.randint(2, 6)):
        x, y = rng.random(), rng.random()
        stroke = f"{rng.uniform(0.3, 2.0):.1f}pt + {grey(rng.choice(_GREYS))}"
        for _ in range(rng.randint(4, 14)):
            end = (
                min(0.98, max(0.02, x + rng.uniform(-0.14, 0.14))),
                min(0.98, max(0.02, y + rng.uniform(-0.14, 0.14))),
            )
            parts.append(pen.line((x, y), end, stroke))
            x, y = end
    for _ in range(rng.randint(3, 14)):
        x, y = rng.uniform(0.1, 0.9), rng.uniform(0.08, 0.92)
        parts.append(pen.dot(x, y, 1.5, f"fill: {grey(0)}"))
        parts.append(pen.text(x, y - 0.05, pen.words(1).title()[:14], grow=rng.uniform(0.8, 1.3)))
    return "".join(parts)


def chart(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A chart that is the whole image."""
    look = Look.draw(studio, rng, draw_language(rng))
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=rng.uniform(1.2, 2.6),
        margins_pt=(4, 4, 2, 4),
    )  # fmt: skip
    manuscript = Manuscript(sheet=sheet, family=look.body)
    source = chart_source(studio, rng, look, sheet.width_pt - 14, sheet.height_pt - 16)
    manuscript.add(Block(type="figure", runs=(Run(ink=source, truth=""),)), Style(before_pt=0))
    return Draft(manuscript=manuscript)
