"""Small print: pages packed with 6 to 9 point type, statutes, contents pages, narrow columns."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import Passage, draw_language
from ocria.models.recipes.pages.fonts import SANS, SERIF, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript
from ocria.models.recipes.pages.wear import FINE

from .books import footnotes, open_sheet
from .figures import figure_block
from .tables import draw_table

Generator = Callable[[Studio, random.Random, int, int], Draft]
_SMALL_PT = (6.3, 8.9)
# How a language names a section of a law; {n} is its number.
_SECTIONS = {
    "en": ("§ {n}.", "Section {n}.", "Sec. {n}.", "§ {n}"),
    "de": ("§ {n}", "§ {n}", "Art {n}", "Artikel {n}"),
    "fr": ("Article {n}", "Art. {n}."), "es": ("Artículo {n}.",), "it": ("Art. {n}",),
    "pt": ("Art. {n}.",), "nl": ("Artikel {n}",), "pl": ("Art. {n}.", "§ {n}."),
    "vi": ("Điều {n}.",),
}  # fmt: skip
_PARTS = {
    "en": ("Part", "Chapter", "Subchapter"), "de": ("Abschnitt", "Teil", "Unterabschnitt"),
    "fr": ("Chapitre", "Titre"), "es": ("Capítulo",), "it": ("Capo",), "pt": ("Capítulo",),
    "nl": ("Hoofdstuk",), "pl": ("Rozdział",), "vi": ("Chương", "Mục"),
}  # fmt: skip


def small(generator: Generator) -> Generator:
    """The same kind of page in small print."""

    def made(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
        draft = generator(replace(studio, body_pt=_SMALL_PT), rng, width_px, height_px)
        return replace(draft, wear=FINE)

    return made


def statute(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A law: running head, parts, sections, numbered clauses, numbers and letters below them."""
    lang = rng.choices(
        ("en", "de", "fr", "es", "it", "pt", "nl", "pl", "vi"), (30, 34, 8, 6, 4, 4, 4, 4, 6)
    )[0]
    look = Look.draw(studio, rng, lang, categories=TEXT)
    look = replace(
        look, hanging=rng.random() < 0.6, head_align=rng.choice(("center", "center", "left")),
        first_indent_em=0.0, gap_pt=look.size_pt * rng.uniform(0.3, 0.8),
    )  # fmt: skip
    sheet = open_sheet(rng, width_px, height_px, lang, columns=rng.choice((1, 1, 1, 2)))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.8:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 6)))
    budget = look.capacity(sheet) * rng.uniform(0.7, 1.9)
    number = rng.randint(1, 400)
    pattern, clause_mark = rng.choice(_SECTIONS[lang]), rng.choice(("({n})", "({n})", "{n}."))
    level = rng.choice((2, 3, 3, 4))
    while budget > 0:
        if rng.random() < 0.12:
            part = f"{rng.choice(_PARTS[lang])} {rng.randint(1, 20)}"
            look.heading(manuscript, part, level - 1)
            look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 6)), level - 1)
        title = studio.words(rng, lang, rng.randint(0, 8))
        shown = f"{pattern.format(n=number)} {title}".strip()
        look.heading(manuscript, shown, level)
        budget -= 120 + _section(studio, rng, manuscript, look, clause_mark)
        number += 1
    return Draft(manuscript=manuscript, pages=2)


def _section(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, mark: str
) -> int:
    """Clauses of one section; returns the characters set."""
    genre = "legal" if look.lang in ("en", "de") else None
    texts = [
        p.text
        for p in studio.story(rng, lang=look.lang, genre=genre).passages
        if p.kind in ("paragraph", "item")
    ]
    count, shown = rng.choice((1, 1, 2, 3, 5)), 0
    for clause in range(1, count + 1):
        text = rng.choice(texts) if texts else studio.words(rng, look.lang, 12)
        if count == 1 and rng.random() < 0.6:
            shown += look.paragraph(studio, manuscript, text)
        else:
            shown += look.item(studio, manuscript, text, mark=mark.format(n=clause))
        if rng.random() < 0.3:
            shown += _numbers(studio, rng, manuscript, look, texts)
    return shown


def _numbers(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, texts: list[str]
) -> int:
    """Points below a clause: numbers, now and then letters below a number."""
    shown = 0
    for point in range(1, rng.randint(3, 7)):
        text = _short(studio, rng, look.lang, texts)
        shown += look.item(studio, manuscript, text, mark=f"{point}.", level=2)
        if rng.random() < 0.15:
            for letter in "abcd"[: rng.randint(2, 4)]:
                text = _short(studio, rng, look.lang, texts)
                shown += look.item(studio, manuscript, text, mark=f"{letter})", level=3)
    return shown


def _short(studio: Studio, rng: random.Random, lang: str, texts: list[str]) -> str:
    words = rng.choice(texts).split()[: rng.randint(3, 24)] if texts else []
    text = " ".join(words)
    # A cut paragraph can lose one of a pair of marks; words in no order have none.
    return text if text and not set("*_`$[]") & set(text) else studio.words(rng, lang, 8)


def contents(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A table of contents or an index: entries, dots that lead to numbers, sub-entries."""
    lang = draw_language(rng)
    look = replace(Look.draw(studio, rng, lang, categories=TEXT + SANS), justify=False)
    columns = rng.choice((1, 1, 1, 2))
    sheet = open_sheet(rng, width_px, height_px, lang, columns=columns)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.5:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    if rng.random() < 0.7:
        look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 3)).capitalize(), 1)
    gap = look.size_pt * rng.uniform(0.1, 0.6)
    lines = (sheet.height_pt - 110) / (look.size_pt * (0.75 + 0.3) + gap * 1.4) * columns
    page, chapter, section, dotted = rng.randint(1, 9), 0, 0, rng.random() < 0.75
    numbered = rng.random() < 0.6
    for _ in range(max(4, int(lines * rng.uniform(0.3, 0.95)))):
        page += rng.choice((0, 1, 2, 5, 14))
        if section == 0 or rng.random() < 0.25:
            chapter, section = chapter + 1, 1
        else:
            section += 1
        mark = (f"{chapter}." if section == 1 else f"{chapter}.{section - 1}") if numbered else ""
        title = studio.words(rng, lang, rng.randint(1, 5 if columns > 1 else 8))
        runs = (
            Run(ink=f"{mark} {title}".strip()),
            Run(ink="", style="leaders", truth=" ")
            if dotted
            else Run(ink="1fr", style="space", truth=" "),
            Run(ink=f" {page}"),
        )
        style = replace(
            look.style(), before_pt=gap, after_pt=gap, leading_em=0.3,
            indent_pt=0.0 if section == 1 else look.size_pt * 1.2,
            weight="bold" if section == 1 and rng.random() < 0.3 else "regular",
        )  # fmt: skip
        manuscript.add(Block(type="paragraph", runs=runs), style)
    return Draft(manuscript=manuscript, wear=FINE)


def gazette(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Three to six narrow columns that run the page's height, small headlines between stories."""
    lang = draw_language(rng)
    columns = rng.choice((3, 3, 4, 4, 5, 6))
    look = Look.draw(studio, rng, lang, categories=(*SERIF, "serif", "sans"))
    look = replace(
        look, size_pt=rng.uniform(6.4, 8.6) if columns > 3 else rng.uniform(7, 9.2), justify=True,
        leading_em=rng.uniform(0.3, 0.55), first_indent_em=1.0, gap_pt=rng.uniform(2, 5),
    )  # fmt: skip
    sheet = open_sheet(
        rng, width_px, height_px, lang, columns=columns, width_pt=rng.uniform(540, 800)
    )
    margin = rng.uniform(16, 34)
    sheet = replace(
        sheet, gutter_pt=rng.uniform(7, 14), hyphenate=True, margins_pt=(34, margin, 24, margin)
    )
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.7:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 4)))
    budget = look.capacity(sheet) * rng.uniform(0.6, 1.2)
    while budget > 0:
        if rng.random() < 0.85:
            title = studio.words(rng, lang, rng.randint(2, 7))
            shown = title.upper() if rng.random() < 0.3 else title.capitalize()
            look.heading(manuscript, shown, rng.choice((2, 3, 4)))
        if rng.random() < 0.08:
            figure_block(studio, rng, manuscript, look)
            budget -= 500
        story = studio.story(rng, lang=lang, genre=rng.choice(("prose", None)))
        for passage in story.passages[: rng.randint(1, 7)]:
            budget -= look.passage(studio, manuscript, passage) + 20
    return Draft(manuscript=manuscript, pages=2, wear=FINE)


def notes(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Reference prose: short entries, numbers, small tables and footnotes, tightly set."""
    lang = draw_language(rng)
    look = replace(Look.draw(studio, rng, lang), size_pt=rng.uniform(*_SMALL_PT))
    sheet = open_sheet(rng, width_px, height_px, lang, columns=rng.choice((1, 2, 2, 3)))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.6:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    if rng.random() < 0.3 and sheet.columns == 1:
        footnotes(studio, rng, manuscript, look)
    budget = look.capacity(sheet) * rng.uniform(0.6, 1.1)
    while budget > 0:
        if rng.random() < 0.1:
            rows, columns = rng.randint(2, 9), rng.randint(2, 4)
            block = draw_table(studio, rng, lang, rows=rows, columns=columns, full_width=True)
            manuscript.add(block, replace(look.style(), justify=False, leading_em=0.4))
            budget -= len(block.ink) * 2
        story = studio.story(rng, lang=lang, genre=rng.choice(("reference", "medical", None)))
        for passage in story.passages[: rng.randint(1, 8)]:
            budget -= look.passage(studio, manuscript, _cut(passage, rng)) + 25
    return Draft(manuscript=manuscript, pages=2, wear=FINE)


def _cut(passage: Passage, rng: random.Random) -> Passage:
    """A long paragraph's first sentences, so that a page holds many blocks."""
    if passage.kind != "paragraph" or len(passage.text) < 400 or rng.random() < 0.5:
        return passage
    end = passage.text.find(". ", rng.randint(60, 300))
    return replace(passage, text=passage.text[: end + 1]) if end > 0 else passage
