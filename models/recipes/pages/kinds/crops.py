"""Parts of pages: regions, lines, formulas alone, and strings no language model can guess."""

from __future__ import annotations

import random
import string
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import MONO, SANS, SERIF
from ocria.models.recipes.pages.inline import runs_of
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import DIGITAL, OFFICE

from .papers import formula_block, set_maths_face

_ALL = SERIF + SANS + MONO + ("serif", "sans", "serif", "sans", "display", "hand")
_MARKS = (
    string.punctuation.replace("*", "")
    .replace("`", "")
    .replace("$", "")
    .replace("<", "")
    .replace("|", "")
)


def _sheet(rng: random.Random, width_px: int, height_px: int, lang: str, size_pt: float) -> Sheet:
    """A sheet whose body type comes out 10 to 44 pixels high."""
    pixels = min(44.0, max(10.0, rng.lognormvariate(2.85, 0.33)), height_px / 2.2)
    margin = rng.uniform(1, 10)
    return Sheet(
        width_px=width_px, height_px=height_px, scale=pixels / size_pt, lang=lang,
        margins_pt=(margin, margin, 0.5, margin),
    )  # fmt: skip


def region(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A piece of a page of prose: what reading in strips or regions meets."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang)
    sheet = _sheet(rng, width_px, height_px, lang, look.size_pt)
    if sheet.width_pt > 420 and rng.random() < 0.3:
        sheet = replace(sheet, columns=2)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    look.fill(studio, rng, manuscript, look.capacity(sheet) * rng.uniform(0.3, 1.1))
    return Draft(manuscript=manuscript)


def line(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """One to a few lines of text in any face."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=_ALL)
    sheet = _sheet(rng, width_px, height_px, lang, look.size_pt)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    story = studio.story(rng, lang=lang)
    passage = rng.choice([p for p in story.passages if p.kind == "paragraph"])
    words = passage.text.split()
    start = rng.randrange(max(1, len(words) - 8))
    room = look.capacity(sheet) * rng.uniform(0.4, 0.8)
    text = " ".join(words[start:])[: int(room)].rsplit(" ", 1)[0]
    runs = runs_of(text, studio.corpus.formulas, styles=look.body.styles)
    if runs is None:
        runs = (Run(ink=studio.words(rng, lang, 3)),)
    block = Block(type="paragraph", runs=runs, splittable=True)
    manuscript.add(block, replace(look.style(), before_pt=0))
    return Draft(manuscript=manuscript)


def formula(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A display formula alone."""
    size = rng.uniform(9, 12)
    scale = rng.uniform(1.4, 3.0)
    sheet = Sheet(width_px=width_px, height_px=height_px, scale=scale, margins_pt=(6, 6, 2, 6))
    family = studio.shelf.draw(rng, lang="en", categories=SERIF)
    manuscript = Manuscript(sheet=sheet, family=family)
    longest = max(14, int(sheet.width_pt / size * 2.2))
    count = max(1, min(5, int(sheet.height_pt / (size * rng.uniform(4, 9)))))
    set_maths_face(studio, rng, manuscript)
    tall = sheet.height_pt > size * 7
    style = Style(size_pt=size, before_pt=6, after_pt=6)
    if count == 1:
        block = formula_block(studio, rng, longest=min(2 * longest, 260), tall=tall)
        manuscript.fitted(block, style, smallest=min(1.0, 12 / (size * scale)))
    else:
        for _ in range(count):
            manuscript.add(formula_block(studio, rng, longest=min(longest, 260), tall=tall), style)
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, OFFICE)))


def string_token(rng: random.Random) -> str:
    """A string with no language in it: numbers, codes, dates, sums, addresses."""
    kind = rng.random()
    if kind < 0.2:
        return "".join(rng.choice(string.digits) for _ in range(rng.randint(1, 12)))
    if kind < 0.35:
        return f"{rng.randint(0, 9999999) / 100:,.2f}"
    if kind < 0.45:
        mark = rng.choice("/.-")
        return (
            f"{rng.randint(1, 31):02d}{mark}{rng.randint(1, 12):02d}{mark}{rng.randint(1900, 2030)}"
        )
    if kind < 0.65:
        alphabet = string.ascii_uppercase + string.digits + "-/"
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(2, 14)))
    if kind < 0.8:
        alphabet = string.ascii_letters + string.digits
        return "".join(rng.choice(alphabet) for _ in range(rng.randint(2, 16)))
    if kind < 0.86:
        host = "".join(rng.choice(string.ascii_lowercase) for _ in range(rng.randint(3, 9)))
        return f"https://{host}.com/{rng.randint(1, 999)}"
    alphabet = string.ascii_letters + string.digits + _MARKS
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(2, 10)))


def strings(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Lines of verbatim strings, some mixed with words of any language."""
    lang = draw_language(rng)
    look = replace(Look.draw(studio, rng, lang, categories=_ALL), justify=False)
    sheet = replace(_sheet(rng, width_px, height_px, lang, look.size_pt), hyphenate=False)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    budget = look.capacity(sheet) * rng.uniform(0.3, 0.75)
    share = rng.uniform(0.2, 1)
    while budget > 0:
        count = rng.randint(1, 24)
        tokens = [
            string_token(rng) if rng.random() < share else studio.words(rng, lang, 1)
            for _ in range(count)
        ]
        text = " ".join(tokens)[: max(4, int(budget))]
        block = Block(type="paragraph", runs=(Run(ink=text.strip()),), splittable=True)
        manuscript.add(block, look.style())
        budget -= len(text) + 30
    return Draft(manuscript=manuscript)
