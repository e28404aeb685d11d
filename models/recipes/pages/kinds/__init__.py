"""The kinds of page, each a function from a studio to a draft, by name."""

from __future__ import annotations

import random
from collections.abc import Callable

from ocria.models.recipes.pages.studio import Draft, Studio

from . import (
    annexes,
    books,
    business,
    charts,
    crops,
    dense,
    empty,
    foreign,
    forms,
    journals,
    ledgers,
    manuals,
    news,
    old,
    papers,
    receipts,
    repeats,
    reports,
    rolls,
    science,
    slides,
    statistics,
)

Generator = Callable[[Studio, random.Random, int, int], Draft]

KINDS: dict[str, Generator] = {
    "article": books.article,
    "book": books.book,
    "contract": books.contract,
    "paper": papers.paper,
    "maths": papers.maths,
    "report": reports.report,
    "table": reports.table_image,
    "receipt": receipts.receipt,
    "roll": rolls.roll,
    "letter": business.letter,
    "form": business.form,
    "invoice": business.invoice,
    "slide": slides.slide,
    "code": slides.code,
    "newspaper": news.newspaper,
    "strings": crops.strings,
    "region": crops.region,
    "line": crops.line,
    "formula": crops.formula,
    "empty": empty.empty,
    "chart": charts.chart,
    "statute": dense.statute,
    "contents": dense.contents,
    "gazette": dense.gazette,
    "notes": dense.notes,
    "small_article": dense.small(books.article),
    "small_contract": dense.small(books.contract),
    "small_statute": dense.small(dense.statute),
    "small_paper": dense.small(papers.paper),
    "small_report": dense.small(reports.report),
    "small_newspaper": dense.small(news.newspaper),
    "small_invoice": dense.small(business.invoice),
    "ledger": ledgers.ledger,
    "register": ledgers.register,
    "typescript": old.typescript,
    "old_book": old.old_book,
    "old_print": old.old_print,
    "printed": old.printed,
    "small_printed": old.small_printed,
    "repeats": repeats.repeats,
    "foreign": foreign.foreign,
    "manual": manuals.manual,
    "blank_form": forms.blank_form,
    "magazine": news.magazine,
    "annex": annexes.annex,
    "spending": ledgers.spending,
    "science_table": science.science_image,
    "journal": journals.journal,
    "boxes": journals.boxes,
    "statistics": statistics.statistics,
    "statistics_table": statistics.statistics_image,
}
# Kinds whose pages may not tell which way is up.
UNTURNED = ("empty", "chart", "foreign", "strings", "formula", "line")
# How often each kind is drawn for each family of page shapes.
WEIGHTS: dict[str, dict[str, float]] = {
    "portrait": {
        "article": 12, "book": 8, "contract": 9, "paper": 12, "maths": 16, "report": 10,
        "letter": 5, "manual": 9, "blank_form": 8, "form": 3, "invoice": 5, "code": 2,
        "newspaper": 9, "magazine": 10, "strings": 4, "empty": 2, "table": 3, "statistics": 8,
        "journal": 10, "boxes": 7, "printed": 12, "annex": 1,
        "statute": 8, "contents": 3, "typescript": 8, "old_book": 7, "old_print": 4,
        "repeats": 3, "foreign": 2, "receipt": 4, "roll": 3,
    },
    "dense": {
        "small_article": 10, "small_contract": 7, "small_statute": 11, "small_paper": 15,
        "small_report": 11, "small_newspaper": 6, "small_invoice": 3, "gazette": 9, "notes": 7,
        "ledger": 12, "register": 7, "spending": 7,
        "magazine": 6, "small_printed": 12,
    },
    "landscape": {
        "slide": 22, "report": 18, "article": 18, "table": 10, "newspaper": 4, "empty": 3,
        "spending": 4, "magazine": 3, "statistics": 10,
        "ledger": 13, "register": 9, "blank_form": 4, "annex": 1, "manual": 3,
    },
    "tall": {"roll": 32, "receipt": 24, "region": 14, "article": 12, "strings": 5, "manual": 5},
    "crop": {
        "science_table": 36, "statistics_table": 14, "table": 8,
        "region": 22, "formula": 26, "strings": 9, "code": 4,
        "slide": 3, "empty": 3, "line": 3,
    },
    "strip": {"line": 42, "formula": 42, "strings": 16},
}  # fmt: skip
