"""Newspaper and magazine pages: stories under headlines, in columns, read story by story."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language, is_drawable
from ocria.models.recipes.pages.fonts import SANS, SERIF
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style, grey
from ocria.models.recipes.pages.wear import FINE, OFFICE, OLD

from .books import open_sheet
from .figures import caption, figure_block, figure_source


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
    look.fill(studio, rng, inner, room * rng.uniform(0.5, 0.76), "prose")
    body = "\n".join(inner.body)
    manuscript.raw(
        f"#block(height: {height_pt:.0f}pt, width: 100%, clip: false)"
        f"[#columns({columns}, gutter: 12pt)[{body}]]"
    )


_BY = {"en": "By", "de": "Von", "fr": "Par", "es": "Por", "it": "Di", "pt": "Por", "nl": "Door",
       "pl": "", "vi": ""}  # fmt: skip


def magazine(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A page of a periodical: one story in two to five columns, photographs, a box of its own."""
    lang = draw_language(rng)
    width_pt = rng.uniform(480, 680)
    columns = rng.choice((2, 3, 3, 3, 4, 4, 5))
    columns = min(columns, int((width_pt - 60) / 100))
    look = Look.draw(studio, rng, lang, categories=(*SERIF, "serif", "serif", *SANS))
    look = replace(
        look, size_pt=rng.uniform(7.2, 9.4), justify=rng.random() < 0.75,
        leading_em=rng.uniform(0.35, 0.6), first_indent_em=rng.choice((0.0, 1.0, 1.4)),
        gap_pt=rng.uniform(2, 5),
    )  # fmt: skip
    sheet = open_sheet(rng, width_px, height_px, lang, columns=columns, width_pt=width_pt)
    side = rng.uniform(20, 44)
    sheet = replace(
        sheet, gutter_pt=rng.uniform(9, 18), hyphenate=rng.random() < 0.85,
        margins_pt=(rng.uniform(30, 44), side, rng.uniform(30, 44), side),
    )  # fmt: skip
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.8:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 4)))
    budget = look.capacity(sheet) * rng.uniform(0.6, 1.15)
    if rng.random() < 0.75:
        manuscript.raw(_floated("top", _opening(studio, rng, manuscript, look)))
        budget -= 900
    if columns > 1 and rng.random() < 0.4:
        height_pt = rng.uniform(110, 240)
        manuscript.raw(_floated("top", _photo(studio, rng, manuscript, look, height_pt)))
        budget -= height_pt * columns * 3.2
    _columns_of_text(studio, rng, manuscript, look, budget)
    if rng.random() < 0.4:
        manuscript.raw(_floated("bottom", _sidebar(studio, rng, manuscript, look)))
    return Draft(manuscript=manuscript, wear=rng.choice((FINE, OFFICE, OFFICE, OLD)))


def _floated(place: str, source: str) -> str:
    """Across all columns, at the top or the foot of the page."""
    return f'#place({place}, scope: "parent", float: true)[{source}]'


def _opening(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> str:
    """Kicker, headline, deck and byline, each but the headline now and then."""
    align = rng.choice(("left", "left", "center"))
    size = look.size_pt
    base = Style(align=align, before_pt=4, after_pt=5, family=look.head.name, leading_em=0.45)

    def set_line(kind: str, text: str, **changes: object) -> str:
        style = replace(base, **changes)  # type: ignore[arg-type]
        return manuscript.placed(Block(type=kind, runs=(Run(ink=text),)), style)

    parts = []
    if rng.random() < 0.35:
        text = studio.words(rng, look.lang, rng.randint(1, 3)).upper()
        parts.append(set_line("paragraph", text, size_pt=size, spacing_pt=rng.uniform(0, 1.5)))
    title = studio.words(rng, look.lang, rng.randint(2, 9))
    title = title.upper() if rng.random() < 0.2 else title.capitalize()
    parts.append(set_line("h1", title, size_pt=size * rng.uniform(2, 4), weight=look.head_weight))
    if rng.random() < 0.5:
        text = studio.words(rng, look.lang, rng.randint(8, 26)).capitalize()
        parts.append(set_line("paragraph", text, size_pt=size * rng.uniform(1.2, 1.6)))
    if rng.random() < 0.6:
        parts.append(set_line("paragraph", _byline(studio, rng, look.lang), size_pt=size))
    return "".join(parts)


def _byline(studio: Studio, rng: random.Random, lang: str) -> str:
    names = studio.names(rng, lang)
    name = names.name()
    text = f"{_BY[lang]} {name if is_drawable(name) else 'A. Low'}".strip()
    return text.upper() if rng.random() < 0.4 else text


def _photo(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, height_pt: float
) -> str:
    """The source of a photograph with, mostly, its caption."""
    inner = Manuscript(sheet=manuscript.sheet, family=manuscript.family, blocks=manuscript.blocks)
    source = figure_source(rng, "100%", height_pt)
    style = Style(before_pt=2, after_pt=4)
    inner.add(Block(type="figure", runs=(Run(ink=source, truth=""),)), style)
    if rng.random() < 0.85:
        _legend(studio, rng, inner, look)
    return "\n".join(inner.body)


def _legend(studio: Studio, rng: random.Random, inner: Manuscript, look: Look) -> None:
    """Words below a photograph, without a number."""
    if rng.random() < 0.15:
        caption(studio, rng, inner, look, "Fig.")
        return
    text = studio.words(rng, look.lang, rng.randint(3, 20)).capitalize() + "."
    style = Style(
        size_pt=look.size_pt * rng.uniform(0.82, 0.95), base=look.ink, leading_em=0.4,
        weight=rng.choice(("regular", "regular", "bold")), before_pt=2, after_pt=2,
        italic="i" in look.body.styles and rng.random() < 0.4,
    )  # fmt: skip
    inner.add(Block(type="caption", runs=(Run(ink=text),)), style)


def _sidebar(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> str:
    """A shaded or framed box across the foot of the page, with a short story of its own."""
    inner = Manuscript(sheet=manuscript.sheet, family=manuscript.family, blocks=manuscript.blocks)
    look.heading(inner, studio.words(rng, look.lang, rng.randint(1, 5)).capitalize(), 3)
    look.fill(studio, rng, inner, rng.uniform(300, 1200))
    box = rng.choice((f"fill: {grey(232)}", "stroke: 0.6pt"))
    body = "\n".join(inner.body)
    return f"#block(width: 100%, inset: 7pt, {box})[#columns(2, gutter: 12pt)[{body}]]"


def _columns_of_text(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, budget: float
) -> None:
    """Prose with small headings, pull quotes and lines that send the reader to another page."""
    while budget > 0:
        story = studio.story(rng, lang=look.lang, genre=rng.choice(("prose", None)))
        for passage in story.passages[: rng.randint(2, 9)]:
            budget -= look.passage(studio, manuscript, passage) + 15
            if rng.random() < 0.04:
                _pull_quote(studio, rng, manuscript, look)
            if rng.random() < 0.03:
                manuscript.raw(_photo(studio, rng, manuscript, look, rng.uniform(60, 150)))
        if budget > 0 and rng.random() < 0.5:
            title = studio.words(rng, look.lang, rng.randint(1, 6)).capitalize()
            look.heading(manuscript, title, rng.choice((2, 3, 3)))
    if rng.random() < 0.3:
        text = f"{studio.words(rng, look.lang, 2).capitalize()} {rng.randint(2, 90)}"
        style = replace(look.style(), align="right", justify=False)
        manuscript.add(Block(type="paragraph", runs=(Run(ink=text),)), style)


def _pull_quote(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    text = studio.words(rng, look.lang, rng.randint(5, 14)).capitalize()
    style = Style(
        size_pt=look.size_pt * rng.uniform(1.25, 1.7), align=rng.choice(("left", "center")),
        family=look.head.name, before_pt=8, after_pt=8, leading_em=0.45,
    )  # fmt: skip
    rule = "#line(length: 100%, stroke: 0.6pt)" if rng.random() < 0.6 else ""
    quote = manuscript.placed(Block(type="paragraph", runs=(Run(ink=text),)), style)
    manuscript.raw(f"{rule}{quote}{rule}")
