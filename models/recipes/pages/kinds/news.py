"""Newspaper pages: a name line, then stories in columns of a grid, read story by story."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SERIF
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import FINE, OFFICE, OLD

from .figures import figure_block


def newspaper(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Stories one below another, each a headline above two to five justified columns."""
    lang = draw_language(rng)
    width_pt = rng.uniform(560, 760)
    scale = width_px / width_pt
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=scale, lang=lang,
        margins_pt=(26, 26, 24, 26), hyphenate=True,
    )  # fmt: skip
    look = replace(
        Look.draw(studio, rng, lang, categories=SERIF),
        size_pt=rng.uniform(*(studio.body_pt or (7.2, 9.6))), justify=True,
        leading_em=rng.uniform(0.4, 0.6), first_indent_em=1.0, gap_pt=4.0,
    )  # fmt: skip
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.5:
        _name_line(studio, rng, manuscript, look)
    left = sheet.height_pt - 90
    while left > 120:
        height = min(left, rng.uniform(150, 420))
        _story(studio, rng, manuscript, look, height - 40)
        left -= height
    return Draft(manuscript=manuscript, wear=rng.choice((FINE, OFFICE, OLD)))


def _name_line(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    name = studio.words(rng, look.lang, rng.randint(1, 3)).title()
    style = Style(size_pt=rng.uniform(22, 34), align="center", family=look.head.name, before_pt=0)
    manuscript.add(Block(type="header", runs=(Run(ink=name),)), style)
    manuscript.raw("#line(length: 100%, stroke: 0.8pt)")


def _story(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, height_pt: float
) -> None:
    """One story: a headline, then columns filled one after another to about the same height."""
    title = studio.words(rng, look.lang, rng.randint(3, 8)).capitalize()
    style = Style(
        size_pt=rng.uniform(13, 22), weight="bold", family=look.head.name, leading_em=0.4,
        align=rng.choice(("left", "left", "center")), before_pt=9, after_pt=6,
    )  # fmt: skip
    manuscript.add(Block(type="h2", runs=(Run(ink=title),)), style)
    # Columns of at least 90 points: narrower ones hold two words a line.
    columns = rng.randint(2, max(2, min(6, int((manuscript.sheet.width_pt - 52) / 102))))
    width_pt = (manuscript.sheet.width_pt - 52) / columns - 12
    room = width_pt * height_pt / (look.size_pt**2 * 0.5 * (0.75 + look.leading_em)) * columns
    inner = Manuscript(sheet=manuscript.sheet, family=manuscript.family, blocks=manuscript.blocks)
    if rng.random() < 0.25:
        figure_block(studio, rng, inner, look)
        room -= 500
    look.fill(studio, rng, inner, room * rng.uniform(0.6, 0.85), "prose")
    body = "\n".join(inner.body)
    manuscript.raw(
        f"#block(height: {height_pt:.0f}pt, width: 100%, clip: false)"
        f"[#columns({columns}, gutter: 12pt)[{body}]]"
    )
