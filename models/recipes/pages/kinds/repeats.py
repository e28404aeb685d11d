"""Pages that tempt a reader to loop: the same line again and again, a certain number of times."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import MONO, SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript

from .books import open_sheet


def repeats(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Rows, items, fields or headings alike, then other text, so that the end of it shows."""
    lang = draw_language(rng)
    look = replace(Look.draw(studio, rng, lang, categories=TEXT + SANS + MONO), justify=False)
    sheet = open_sheet(rng, width_px, height_px, lang)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    room = (sheet.height_pt - 90) / (look.size_pt * 2.2)
    if rng.random() < 0.4:
        look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 5)).capitalize(), 1)
    while room > 4:
        if rng.random() < 0.5:
            look.paragraph(studio, manuscript, studio.words(rng, lang, rng.randint(4, 40)))
            room -= 4
        count = rng.randint(2, max(3, min(30, int(room))))
        maker = rng.choice((_rows, _rows, _items, _fields, _headings))
        maker(studio, rng, manuscript, look, count)
        room -= count * 1.2 + 2
    return Draft(manuscript=manuscript)


def _rows(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, count: int
) -> None:
    """Rows that are alike, or differ in one running number or one cell."""
    columns = rng.randint(2, 5)
    first = [studio.words(rng, look.lang, rng.randint(1, 2)) for _ in range(columns)]
    running, start = rng.random() < 0.5, rng.randint(1, 90)
    holes = rng.random() < 0.3
    rows = []
    for index in range(count):
        texts = list(first)
        if running:
            texts[0] = str(start + index)
        if rng.random() < 0.1:
            texts[-1] = studio.words(rng, look.lang, 1)
        rows.append(tuple(Cell(text="" if holes and x else text) for x, text in enumerate(texts)))
    table = Table(
        rows=tuple(rows), align=("left",) * columns, rules=rng.choice(("all", "rows", "none")),
        inset_pt=rng.uniform(2, 5), widths=("1fr",) * columns,
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), look.style())


def _items(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, count: int
) -> None:
    text = studio.words(rng, look.lang, rng.randint(1, 6))
    numbered = rng.random() < 0.5
    for index in range(1, count + 1):
        look.item(studio, manuscript, text, mark=f"{index}." if numbered else "-")


def _fields(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, count: int
) -> None:
    """Empty fields with a line to write on."""
    label = studio.words(rng, look.lang, rng.randint(1, 2))
    style = replace(look.style(), before_pt=look.size_pt * 0.5, after_pt=look.size_pt * 0.5)
    for _ in range(count):
        block = Block(type="form_field", runs=(Run(ink=f"{label}:"),))
        rule = "#v(-6pt)#line(length: 100%, stroke: 0.4pt)" if rng.random() < 0.7 else ""
        manuscript.raw(manuscript.placed(block, style) + rule)


def _headings(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, count: int
) -> None:
    title = studio.words(rng, look.lang, rng.randint(1, 4)).capitalize()
    text = studio.words(rng, look.lang, rng.randint(2, 10))
    for _ in range(max(1, count // 4)):
        look.heading(manuscript, title, 3)
        look.paragraph(studio, manuscript, text)
