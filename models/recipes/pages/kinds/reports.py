"""Reports with tables among the prose, and images of one table alone."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style

from .books import open_sheet
from .figures import caption, figure_block
from .tables import draw_table


def report(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Headings, paragraphs, lists, captions and one to four tables a page."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=SANS + TEXT)
    wide = width_px > height_px
    columns = rng.choice((1, 1, 1, 1, 2))
    width_pt = rng.uniform(640, 880) if wide else None
    sheet = open_sheet(rng, width_px, height_px, lang, columns=columns, width_pt=width_pt)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.6:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 4))
    reach = look.capacity(sheet) * rng.uniform(0.5, 1.8)
    shown = 0.0
    widest = int((sheet.width_pt / columns - 80) / (look.size_pt * 5.5))
    while shown < reach:
        story = studio.story(rng, lang=lang)
        for passage in story.passages[: rng.randint(1, 6)]:
            shown += look.passage(studio, manuscript, passage) + 10
        if rng.random() < 0.12:
            figure_block(studio, rng, manuscript, look)
        limit = max(2, min(widest, 9))
        rows = rng.choice((2, 3, 4, 6, 8, 12, 18, 26))
        shown += _captioned_table(studio, rng, manuscript, look, rows, rng.randint(2, limit))
    return Draft(manuscript=manuscript, pages=2)


def _captioned_table(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, rows: int, columns: int
) -> float:
    above = rng.random()
    word = {"vi": "Bảng", "de": "Tabelle", "fr": "Tableau", "es": "Tabla"}.get(look.lang, "Table")
    if above < 0.4:
        caption(studio, rng, manuscript, look, word)
    block = draw_table(studio, rng, look.lang, rows=rows, columns=columns)
    style = replace(
        look.style(), justify=False, size_pt=look.size_pt * rng.uniform(0.75, 1.0), leading_em=0.5,
        align=rng.choice(("left", "center")),
    )  # fmt: skip
    manuscript.add(block, style)
    if above > 0.75:
        caption(studio, rng, manuscript, look, word)
    return len(block.ink) * 1.8 + 100.0


def table_image(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """One table that fills the image, as cut out of a journal in small type."""
    lang = rng.choice(("en", "en", "en", draw_language(rng)))
    size = rng.uniform(6.5, 10)
    scale = rng.uniform(1.2, 2.6) if width_px < 900 else rng.uniform(1.5, 2.0)
    margin = rng.uniform(2, 14)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=scale, lang=lang,
        margins_pt=(margin, margin, margin, margin),
    )  # fmt: skip
    look = replace(Look.draw(studio, rng, lang, categories=SANS + TEXT), size_pt=size)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    columns = rng.randint(2, max(2, min(10, int(sheet.width_pt / (size * 5.5)))))
    rows = max(2, int((sheet.height_pt - 2 * margin) / (size * rng.uniform(1.7, 3.2))) - 1)
    block = draw_table(
        studio, rng, lang, rows=rows, columns=columns, full_width=rng.random() < 0.75
    )
    style = Style(size_pt=size, leading_em=rng.uniform(0.3, 0.55), base=look.ink)
    if width_px < 1000 and rng.random() < 0.9:
        smallest = min(1.0, 8.8 / (size * scale))
        manuscript.fitted(block, replace(style, before_pt=0, after_pt=0), smallest=smallest)
    else:
        if rng.random() < 0.6:
            text = f"Table {rng.randint(1, 9)}. {studio.words(rng, lang, rng.randint(3, 9))}"
            manuscript.add(Block(type="caption", runs=(Run(ink=text),)), style)
        manuscript.add(block, replace(style, align=rng.choice(("left", "center"))))
    return Draft(manuscript=manuscript)
