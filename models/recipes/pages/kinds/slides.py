"""Slides and code listings."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language, is_drawable
from ocria.models.recipes.pages.fonts import MONO, SANS
from ocria.models.recipes.pages.studio import Draft, Look, Studio, page_number, running_parts
from ocria.models.recipes.pages.typeset import WHITE, Manuscript, Sheet, Style, grey

from .books import open_sheet
from .figures import figure_block
from .tables import draw_table


def slide(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A title with bullets, a table or a figure, on light or dark ground."""
    lang = draw_language(rng)
    dark = rng.random() < 0.25
    width_pt = rng.uniform(420, 720) * (width_px / 1408 if width_px < 1000 else 1)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=width_px / width_pt, lang=lang,
        margins_pt=(rng.uniform(14, 40), 30, 24, rng.uniform(20, 50)), hyphenate=False,
        fill=rng.choice((grey(48), "rgb(16,40,80)")) if dark else rng.choice(("white", grey(240))),
    )  # fmt: skip
    look = replace(
        Look.draw(studio, rng, lang, categories=SANS + SANS + ("serif",)),
        size_pt=rng.uniform(11, 19), justify=False, first_indent_em=0.0,
    )  # fmt: skip
    if dark:
        look = replace(look, ink=WHITE, head_ink=WHITE)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.5:
        number = page_number(manuscript, Style(size_pt=9, base=look.ink), rng)
        manuscript.footer = f"#align(right)[{number}]"
        manuscript.first_page = rng.randint(1, 60)
    look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 7)).capitalize(), 1)
    _points(studio, rng, manuscript, look)
    if rng.random() < 0.25:
        style = replace(look.style(), size_pt=look.size_pt * 0.75)
        manuscript.add(
            draw_table(studio, rng, lang, rows=rng.randint(2, 6), columns=rng.randint(2, 5)), style
        )
    elif rng.random() < 0.25:
        figure_block(studio, rng, manuscript, look)
    return Draft(manuscript=manuscript)


def _points(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    level = 1
    for index in range(1, rng.randint(1, 9)):
        story = studio.story(rng, lang=look.lang)
        passage = rng.choice(story.passages)
        text = " ".join(passage.text.split()[: rng.randint(2, 16)])
        mark = "-" if rng.random() < 0.9 else f"{index}."
        if passage.kind in ("paragraph", "item", "heading"):
            look.item(studio, manuscript, text, mark=mark, level=level)
        level = max(1, min(3, level + rng.choice((-1, 0, 0, 0, 1))))


def listing(studio: Studio, rng: random.Random, lines: int) -> Block | None:
    """A code block of up to `lines` lines."""
    lang = rng.choice(studio.corpus.code_languages)
    source = studio.corpus.text(rng, lang=lang, genre="code").expandtabs(4).splitlines()
    start = rng.randrange(max(1, len(source) - lines))
    kept = [line.rstrip()[:88] for line in source[start : start + lines]]
    while kept and not kept[0].strip():
        kept.pop(0)
    text = re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).rstrip()
    indents = [len(line) - len(line.lstrip()) for line in text.splitlines() if line]
    if not indents or not is_drawable(text.replace("\n", "")):
        return None
    cut = min(indents)
    text = "\n".join(line[cut:] for line in text.splitlines())
    return Block(type="code", runs=(Run(ink=text),))


def code(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Code listings, alone or among technical prose."""
    look = Look.draw(studio, rng, "en")
    alone = width_px < 1000
    mono = studio.shelf.draw(rng, lang="en", categories=MONO)
    size = rng.uniform(6, 9.5)
    if alone:
        sheet = Sheet(width_px=width_px, height_px=height_px, scale=rng.uniform(1.4, 2.1),
                      margins_pt=(8, 8, 8, 8))  # fmt: skip
    else:
        sheet = open_sheet(rng, width_px, height_px, "en")
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if not alone and rng.random() < 0.5:
        running_parts(manuscript, studio, rng, look, studio.words(rng, "en", 4))
    style = Style(
        size_pt=size, family=mono.name, leading_em=rng.uniform(0.4, 0.7),
        frame=rng.random() < 0.3, fill=rng.choice((None, None, grey(240))),
    )  # fmt: skip
    room = (sheet.height_pt - 40) / (size * (0.75 + style.leading_em))
    while room > 3:
        if not alone:
            look.fill(studio, rng, manuscript, rng.uniform(100, 900), "markdown")
            room -= rng.uniform(4, 14)
        block = listing(studio, rng, max(2, min(int(room), rng.randint(3, 50))))
        if block is not None:
            manuscript.add(block, style)
            room -= block.ink.count("\n") + 3
        else:
            room -= 2
    return Draft(manuscript=manuscript)
