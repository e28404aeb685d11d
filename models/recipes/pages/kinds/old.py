"""Print and typescript of long ago, as scanners and copiers pass it on."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import MONO
from ocria.models.recipes.pages.studio import Draft, Look, Studio, page_number, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style
from ocria.models.recipes.pages.wear import OLD, PRINTED

from . import business, dense, journals, manuals, news, papers, reports, statistics
from .books import article, book, contract, open_sheet

Generator = Callable[[Studio, random.Random, int, int], Draft]
# Faces cut before 1930 or after such models.
FACES = (
    "Old Standard TT", "Essays1743", "Caslon", "Libre Caslon Text", "Linden Hill", "Fanwood Text",
    "Sorts Mill Goudy", "EB Garamond 12", "Bodoni Moda", "GFS Didot", "Junicode Two Beta",
    "Cardo", "C059", "TeXGyreSchola", "Libre Baskerville", "Cormorant Garamond", "Tinos",
    "Goudy Bookletter 1911",
)  # fmt: skip
_TYPEWRITERS = (
    "Courier Prime", "Cousine", "Nimbus Mono PS", "Special Elite", "GWMonospace", "TeXGyreCursor",
    "LM Mono 10", "FreeMono",
)  # fmt: skip
_LANGUAGES = ("en", "en", "en", "de", "fr", "es", "pt")


def old_book(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A book page in an old face."""
    lang = rng.choice(_LANGUAGES)
    family = studio.shelf.named(rng, FACES, lang=lang)
    draft = book(replace(studio, face=family), rng, width_px, height_px)
    return replace(draft, wear=OLD)


def typescript(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Typewritten letters, memoranda, depositions: fixed pitch, ragged, wide leading."""
    lang = rng.choice((*_LANGUAGES, draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=MONO)
    width_pt = rng.uniform(560, 660)
    look = replace(
        look, body=studio.shelf.named(rng, _TYPEWRITERS, lang=lang), size_pt=rng.uniform(9, 12.5),
        justify=False, leading_em=rng.choice((0.4, 0.5, 0.9, 1.2, 1.5)), bullet="-",
        first_indent_em=rng.choice((0.0, 0.0, 2.5, 3.0)), head_weight="regular",
    )  # fmt: skip
    look = replace(look, head=look.body, gap_pt=look.size_pt * (look.leading_em + 0.5))
    sheet = open_sheet(rng, width_px, height_px, lang, width_pt=width_pt)
    sheet = replace(sheet, hyphenate=False)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.4:
        number = page_number(manuscript, Style(size_pt=look.size_pt), rng)
        place = rng.choice(("header", "footer"))
        setattr(manuscript, place, f"#align({rng.choice(('center', 'right'))})[{number}]")
        manuscript.first_page = rng.randint(1, 300)
    elif rng.random() < 0.3:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    if rng.random() < 0.5:
        look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 5)).upper(), 2)
    genre = rng.choice(("prose", "legal", "speech", None)) if lang == "en" else None
    look.fill(studio, rng, manuscript, look.capacity(sheet) * rng.uniform(0.3, 1.1), genre)
    return Draft(manuscript=manuscript, pages=1, wear=OLD)


def old_print(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A page of old law or business prose."""
    family = studio.shelf.named(rng, FACES, lang="vi")
    draft = contract(replace(studio, face=family), rng, width_px, height_px)
    return replace(draft, wear=OLD)


# Faces that laser printers and photosetters of the 1980s and 1990s had.
_PHOTOSET = (
    "Tinos", "Liberation Serif", "TeXGyreTermes", "C059", "TeXGyreSchola", "P052",
    "TeX Gyre Pagella", "TeX Gyre Bonum", "Arimo", "TeXGyreHeros", "TeXGyreHerosCn", "LM Roman 10",
    "Liberation Sans", "CMU Serif", "STIX", "TeX Gyre Adventor", "Nimbus Mono PS", "Courier Prime",
    "Charis SIL",
)  # fmt: skip
_PRINTED = (
    article, article, papers.paper, papers.paper, reports.report, journals.journal, journals.boxes,
    news.magazine, business.letter, manuals.manual, statistics.statistics, contract,
)  # fmt: skip
_ENGLISH = (papers.paper, journals.journal)
_SMALL_PRINTED = tuple(
    dense.small(kind) for kind in (article, papers.paper, reports.report, contract, dense.statute)
)


def printed(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A report, paper or magazine of the 1990s, scanned bilevel."""
    return _photoset(studio, rng, width_px, height_px, rng.choice(_PRINTED))


def small_printed(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """The same in small print: letters break or run into each other, none is lost."""
    draft = _photoset(studio, rng, width_px, height_px, rng.choice(_SMALL_PRINTED))
    return replace(draft, wear=replace(PRINTED, kept=(0.95, 1.8), blur_px=0.6, resolution=0.8))


def _photoset(
    studio: Studio, rng: random.Random, width_px: int, height_px: int, kind: Generator
) -> Draft:
    # The other kinds draw their language: their face must cover each.
    family = studio.shelf.named(rng, _PHOTOSET, lang="en" if kind in _ENGLISH else "vi")
    return replace(kind(replace(studio, face=family), rng, width_px, height_px), wear=PRINTED)
