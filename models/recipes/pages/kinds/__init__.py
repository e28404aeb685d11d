"""The kinds of page, each a function from a studio to a draft, by name."""

from __future__ import annotations

import random
from collections.abc import Callable

from ocria.models.recipes.pages.studio import Draft, Studio

from . import books, business, crops, empty, news, papers, receipts, reports, slides

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
}
# How often each kind is drawn for each family of page shapes.
WEIGHTS: dict[str, dict[str, float]] = {
    "portrait": {
        "article": 15, "book": 13, "contract": 13, "paper": 12, "maths": 5, "report": 16,
        "letter": 5, "form": 4, "invoice": 5, "code": 3, "newspaper": 8, "strings": 4,
        "empty": 2, "table": 3,
    },
    "landscape": {
        "slide": 40, "report": 25, "article": 15, "table": 12, "newspaper": 5, "empty": 3,
    },
    "tall": {"receipt": 82, "region": 8, "strings": 6, "article": 4},
    "crop": {
        "table": 46, "region": 24, "formula": 10, "strings": 8, "code": 5, "slide": 3, "empty": 4,
    },
    "strip": {"line": 62, "formula": 22, "strings": 16},
}  # fmt: skip
