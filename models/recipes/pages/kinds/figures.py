"""Figures: photographs' grain, charts without labels, line drawings; and captions.

Those with words in them are in `charts`.
"""

from __future__ import annotations

import random

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.studio import Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Style, grey

from .charts import chart_source

# Share of a running text's figures that have words in them.
_WORDED = 0.3


def figure_source(rng: random.Random, width: str, height_pt: float) -> str:
    """Typst source of a figure; COLOUR stands where the block's colour goes."""
    fill = grey(rng.choice((232, 192, 144, 248)))
    inner = rng.choice((_bars, _curve, _discs, photograph, photograph))(rng, height_pt)
    return (
        f"#box(width: {width}, height: {height_pt:.0f}pt, clip: true, fill: {fill}, "
        f"stroke: {rng.uniform(0.5, 2):.1f}pt + COLOUR)[{inner}]"
    )


def _bars(rng: random.Random, height_pt: float) -> str:
    bars = "".join(
        f"#box(width: {rng.randint(4, 12)}%, height: {rng.uniform(0.1, 0.9) * height_pt:.0f}pt, "
        f"fill: {grey(rng.randint(24, 200))})#h(3%)"
        for _ in range(rng.randint(3, 8))
    )
    return f"#align(bottom + center)[{bars}]"


def _curve(rng: random.Random, height_pt: float) -> str:
    points = [
        f"#place(top + left, line(start: ({x * 9}%, {rng.uniform(5, 95):.0f}%), "
        f"end: ({x * 9 + 9}%, {rng.uniform(5, 95):.0f}%), stroke: {rng.uniform(0.5, 2):.1f}pt))"
        for x in range(11)
    ]
    return "".join(points)


def _discs(rng: random.Random, height_pt: float) -> str:
    return "".join(
        f"#place(top + left, dx: {rng.randint(0, 85)}%, dy: {rng.randint(0, 70)}%, "
        f"circle(radius: {rng.uniform(0.05, 0.3) * height_pt:.0f}pt, "
        f"fill: {grey(rng.randint(16, 232))}))"
        for _ in range(rng.randint(2, 9))
    )


def photograph(rng: random.Random, height_pt: float) -> str:
    """Soft shapes before a soft ground, as a photograph is in grey."""

    def shade() -> str:
        return grey(rng.randint(16, 240))

    ground = f"gradient.linear({shade()}, {shade()}, {shade()}, angle: {rng.randint(0, 360)}deg)"
    shapes = "".join(
        f"#place(top + left, dx: {rng.randint(-10, 80)}%, dy: {rng.randint(0, 70)}%, "
        f"ellipse(width: {rng.randint(10, 55)}%, "
        f"height: {rng.uniform(0.2, 0.9) * height_pt:.0f}pt, "
        f"fill: gradient.radial({shade()}, {shade()})))"
        for _ in range(rng.randint(3, 8))
    )
    return f"#place(top + left, rect(width: 100%, height: 100%, fill: {ground})){shapes}"


def figure_block(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """A figure with, mostly, a caption below it."""
    if rng.random() < _WORDED:
        sheet = manuscript.sheet
        column_pt = (sheet.width_pt - sum(sheet.margins_pt[1::2])) / sheet.columns - 12
        width_pt = max(60.0, column_pt * rng.uniform(0.6, 0.97))
        source = chart_source(studio, rng, look, width_pt, width_pt * rng.uniform(0.35, 0.85))
    else:
        source = figure_source(rng, f"{rng.randint(50, 100)}%", rng.uniform(50, 170))
    style = Style(align="center", before_pt=6, after_pt=6)
    manuscript.add(Block(type="figure", runs=(Run(ink=source, truth=""),)), style)
    if rng.random() < 0.8:
        caption(studio, rng, manuscript, look, rng.choice(("Figure", "Fig.", "Figure", "Hình")))


def caption(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, word: str
) -> None:
    """A numbered caption."""
    text = studio.words(rng, look.lang, rng.randint(3, 22))
    label = f"{word} {rng.randint(1, 20)}{rng.choice(('.', ':', ''))} {text}."
    style = Style(
        size_pt=look.size_pt * 0.85,
        align=rng.choice(("left", "center")),
        base=look.ink,
        leading_em=0.5,
        italic="i" in look.body.styles and rng.random() < 0.3,
    )
    manuscript.add(Block(type="caption", runs=(Run(ink=label),)), style)
