"""Pages without text: blank, dirty, or figures alone. Their truth holds no character."""

from __future__ import annotations

import random

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.studio import Draft, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style, grey

from .figures import figure_source


def empty(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A blank page, or one to three figures with no text."""
    scale = width_px / rng.uniform(300, 650)
    margin = rng.uniform(10, 60)
    sheet = Sheet(
        width_px=width_px,
        height_px=height_px,
        scale=scale,
        margins_pt=(margin, margin, margin, margin),
        fill=rng.choice(("white", "white", grey(232), grey(56))),
    )
    family = studio.shelf.draw(rng, lang="en", categories=("sans",))
    manuscript = Manuscript(sheet=sheet, family=family)
    if rng.random() < 0.5:
        for _ in range(rng.randint(1, 3)):
            height = (sheet.height_pt - 2 * margin) * rng.uniform(0.15, 0.3)
            source = figure_source(rng, f"{rng.randint(30, 100)}%", height)
            block = Block(type="figure", runs=(Run(ink=source, truth=""),))
            manuscript.add(block, Style(align=rng.choice(("left", "center", "right"))))
    elif rng.random() < 0.5:
        manuscript.raw(f"#v({rng.randint(0, 60)}%)#line(length: {rng.randint(20, 100)}%)")
    else:
        manuscript.raw("#v(1pt)")
    return Draft(manuscript=manuscript)
