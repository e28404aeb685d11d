"""Running text: two and three columns, and Vietnamese."""

from __future__ import annotations

import random
from collections.abc import Iterator

from ocria.models.recipes.suites.sheet import Sheet, fitting_sheets
from ocria.models.recipes.suites.sources import Sources

_BOOKS = {"en": "en_books.jsonl", "de": "de_eltec.jsonl", "fr": "fr_eltec.jsonl"}
_VI = "vi_*.jsonl"


def column_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """Two and three columns in turn, with and without a title and hyphens."""
    for number in range(count):
        lang = ("en", "en", "de", "fr")[number % 4]
        columns = 2 + number % 2
        paragraphs = sources.passage(rng, lang=lang, chars=6200, files=_BOOKS[lang])
        title = " ".join(sources.words(rng, count=4)).capitalize() if number % 3 else None
        yield fitting_sheets(
            paragraphs,
            kind=f"columns/{columns}",
            lang=lang,
            title=title,
            font=sources.family(rng),
            columns=columns,
            size_pt=rng.choice((8.5, 9.0, 9.5)),
            justify=number % 2 == 0,
            hyphenate=number % 4 == 0,
        )


def vietnamese_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """One column of Vietnamese prose and help texts."""
    for number in range(count):
        paragraphs = sources.passage(rng, lang="vi", chars=rng.choice((900, 2200)), files=_VI)
        yield fitting_sheets(
            paragraphs,
            kind="vietnamese",
            lang="vi",
            font=sources.family(rng, covers="vi"),
            size_pt=rng.choice((9.5, 10.5, 12.0)),
            justify=number % 2 == 0,
        )
