"""Articles in one to three columns, books, and contracts or statutes with nested numbering."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SERIF
from ocria.models.recipes.pages.inline import runs_of
from ocria.models.recipes.pages.studio import Draft, Look, Studio, margins, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style

from .figures import figure_block
from .tables import draw_table


def portrait_scale(rng: random.Random, width_px: int) -> float:
    """Pixels a point: a page of 480 to 660 points across, as A4, letter and book pages are."""
    return width_px / rng.uniform(470, 660)


def open_sheet(
    rng: random.Random,
    width_px: int,
    height_px: int,
    lang: str,
    *,
    columns: int = 1,
    width_pt: float | None = None,
) -> Sheet:
    """An empty sheet with margins."""
    scale = width_px / width_pt if width_pt else portrait_scale(rng, width_px)
    top, right, bottom, left = margins(rng, width_px / scale, height_px / scale)
    return Sheet(
        width_px=width_px,
        height_px=height_px,
        scale=scale,
        margins_pt=(top, right, bottom, left),
        columns=columns,
        gutter_pt=rng.uniform(10, 24),
        lang=lang,
        hyphenate=rng.random() < 0.6,
    )


def article(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Prose with headings, lists, now and then a figure or a table."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang)
    wide = width_px > height_px
    columns = rng.choice((2, 2, 3) if wide else (1, 1, 2, 2, 3))
    width_pt = rng.uniform(640, 900) if wide else None
    sheet = open_sheet(rng, width_px, height_px, lang, columns=columns, width_pt=width_pt)
    if columns == 3:
        look = replace(look, size_pt=min(look.size_pt, 8.8))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    story = studio.story(rng, lang=lang)
    title = studio.words(rng, lang, rng.randint(2, 7)).capitalize()
    if rng.random() < 0.55:
        running_parts(manuscript, studio, rng, look, title)
    if columns > 1 and rng.random() < 0.5:
        _spanning_title(manuscript, look, title)
    elif rng.random() < 0.5:
        look.heading(manuscript, title, 1)
    budget = look.capacity(sheet) * rng.choice((rng.uniform(0.25, 0.95), rng.uniform(1, 2.2)))
    for passage in story.passages:
        budget -= look.passage(studio, manuscript, passage)
        if rng.random() < 0.035:
            figure_block(studio, rng, manuscript, look)
        if rng.random() < 0.02:
            manuscript.add(draw_table(studio, rng, lang, rows=rng.randint(2, 6)), look.style())
        if budget <= 0:
            break
    else:
        look.fill(studio, rng, manuscript, budget)
    return Draft(manuscript=manuscript, pages=2)


def _spanning_title(manuscript: Manuscript, look: Look, title: str) -> None:
    style = Style(
        size_pt=look.size_pt * 1.9, weight="bold", align=look.head_align, family=look.head.name
    )
    source = manuscript.placed(Block(type="h1", runs=(Run(ink=title),)), style)
    manuscript.raw(f'#place(top, scope: "parent", float: true)[{source}]')


def book(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Book prose: indented, justified, running heads, page numbers, chapter openings, notes."""
    lang = rng.choice(("en", "en", "en", "de", "fr", "es", "pt", draw_language(rng)))
    look = replace(
        Look.draw(studio, rng, lang, categories=SERIF),
        justify=rng.random() < 0.9,
        first_indent_em=rng.uniform(1, 2.2),
        gap_pt=rng.choice((0.3, 0.3, 0.3, 3.0)) + 4.0 * (rng.random() < 0.2),
    )
    look = replace(look, gap_pt=look.size_pt * look.leading_em + look.gap_pt)
    width_pt = rng.uniform(330, 520)
    sheet = open_sheet(rng, width_px, height_px, lang, width_pt=width_pt)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 5)))
    if rng.random() < 0.25:
        manuscript.raw(f"#v({rng.uniform(20, 160):.0f}pt)")
        look.heading(manuscript, _chapter(studio, rng, lang), rng.choice((1, 2)))
    if rng.random() < 0.35:
        footnotes(studio, rng, manuscript, look)
    look.fill(studio, rng, manuscript, look.capacity(sheet) * rng.uniform(0.5, 2.0), "prose")
    return Draft(manuscript=manuscript, pages=2)


def _chapter(studio: Studio, rng: random.Random, lang: str) -> str:
    number = rng.choice(
        (
            str(rng.randint(1, 60)),
            rng.choice(["I", "II", "III", "IV", "V", "VI", "VII", "IX", "XI"]),
        )
    )
    words = studio.words(rng, lang, rng.randint(1, 5))
    return rng.choice(
        (f"Chapter {number}", number, f"{number}. {words.capitalize()}", words.upper())
    )


def footnotes(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """One to four notes at the foot of the first page, their marks in a paragraph above."""
    first = rng.randint(1, 30)
    count = rng.randint(1, 4)
    story = studio.story(rng, lang=look.lang, genre="prose")
    texts = [p.text for p in story.passages if p.kind == "paragraph"][: count + 1]
    marked: list[Run] = []
    notes: list[str] = []
    style = replace(look.style(), size_pt=look.size_pt * 0.8, before_pt=1.5, after_pt=1.5)
    for offset, text in enumerate(texts[1:]):
        runs = runs_of(text[: rng.randint(40, 260)], {}, styles=frozenset())
        body = runs_of(texts[0][offset * 90 : offset * 90 + 90], {}, styles=frozenset())
        if runs is None or body is None:
            return
        label = str(first + offset)
        mark = Run(ink=label, style="super", truth=f"[^{label}]")
        marked += [*body, mark]
        lead = Run(ink=label, style="super", truth=f"[^{label}]: ")
        block = Block(type="footnote", runs=(lead, Run(ink=" "), *runs))
        notes.append(manuscript.placed(block, style))
    if not notes:
        return
    block = Block(type="paragraph", runs=tuple(marked))
    manuscript.add(block, replace(look.style(), first_indent_em=look.first_indent_em))
    rule = "#line(length: 30%, stroke: 0.5pt)" if rng.random() < 0.8 else ""
    manuscript.raw(f"#place(bottom, float: true)[{rule}{''.join(notes)}]")


def contract(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Contracts and statutes: title, numbered clauses to three levels, dense small print."""
    lang = rng.choices(("en", "de", "vi"), (70, 15, 15))[0]
    look = replace(Look.draw(studio, rng, lang), hanging=rng.random() < 0.6)
    sheet = open_sheet(rng, width_px, height_px, lang, columns=rng.choice((1, 1, 1, 2)))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.6:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    if rng.random() < 0.5:
        look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 4)).upper(), 1)
    genre = rng.choice(("legal", "business")) if lang != "vi" else None
    budget = look.capacity(sheet) * rng.uniform(0.6, 2.0)
    clause = rng.randint(1, 12)
    decimal = rng.random() < 0.5
    while budget > 0:
        story = studio.story(rng, lang=lang, genre=genre)
        for place, passage in enumerate(p for p in story.passages if p.kind != "table"):
            if passage.kind == "paragraph" and decimal and rng.random() < 0.5:
                mark, level = _clause_mark(rng, clause, place)
                budget -= look.item(studio, manuscript, passage.text, mark=mark, level=level)
            else:
                budget -= look.passage(studio, manuscript, passage)
            budget -= 10
            if budget <= 0:
                break
        clause += 1
    return Draft(manuscript=manuscript, pages=2)


def _clause_mark(rng: random.Random, clause: int, place: int) -> tuple[str, int]:
    letter = chr(ord("a") + place % 26)
    roman = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x")[place % 10]
    return rng.choice(
        (
            (f"{clause}.", 1),
            (f"{clause}.{place + 1}", 1),
            (f"{clause}.{place + 1}.", 1),
            (f"({letter})", 2),
            (f"({roman})", 3),
            (f"{letter})", 2),
            (f"{clause}.{place + 1}.{rng.randint(1, 9)}", 2),
        )
    )
