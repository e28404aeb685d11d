"""Pages that are one dense table: accounts, statistics, price lists, registers."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style
from ocria.models.recipes.pages.wear import DIGITAL, FINE

from .books import open_sheet
from .tables import draw_table

Row = list[Cell | None]
_DASHES = ("—", "–", "-", "", "0", "..")


@dataclass(frozen=True, kw_only=True)
class _Figures:
    """How one table prints its numbers."""

    size: float
    decimals: int
    european: bool
    dash: str
    unit: str
    brackets: bool

    @staticmethod
    def draw(rng: random.Random, lang: str) -> _Figures:
        return _Figures(
            size=rng.choice((1, 10, 100, 2e3, 2e4, 3e5, 5e6, 4e8)),
            decimals=rng.choice((0, 0, 0, 1, 2, 2, 3)),
            european=lang not in ("en", "vi") and rng.random() < 0.8,
            dash=rng.choice(_DASHES),
            unit=rng.choice(("", "", "", "", "$", "%", "$ ")),
            brackets=rng.random() < 0.5,
        )

    def text(self, rng: random.Random) -> str:
        if rng.random() < 0.06:
            return self.dash
        value = rng.random() ** 2 * self.size
        shown = f"{value:,.{self.decimals}f}"
        if self.european:
            shown = shown.translate(str.maketrans(",.", ".,"))
        if self.unit == "%":
            shown += "%"
        if rng.random() < 0.12:
            return f"({shown})" if self.brackets else f"-{shown}"
        return self.unit + shown if self.unit.startswith("$") and rng.random() < 0.3 else shown


def ledger(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A financial or statistical statement: sections, indented labels, totals under rules."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=SANS + TEXT)
    look = replace(look, size_pt=rng.uniform(6.2, 9.2), justify=False)
    wide = width_px > height_px
    sheet = open_sheet(
        rng, width_px, height_px, lang, width_pt=rng.uniform(700, 860) if wide else None
    )
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.5:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 4)))
    room_pt = sheet.height_pt - sheet.margins_pt[0] - sheet.margins_pt[2] - 12
    room_pt -= _title(studio, rng, manuscript, look)
    if rng.random() < 0.3:
        text = studio.words(rng, lang, rng.randint(8, 40))
        look.paragraph(studio, manuscript, text)
        room_pt -= 40
    inset = rng.uniform(1.4, 4.5)
    leading = rng.uniform(0.3, 0.5)
    row_pt = look.size_pt * 0.75 + inset * 1.4 + 1
    share = rng.choice((rng.uniform(0.3, 0.8), rng.uniform(0.75, 0.97), rng.uniform(0.75, 0.97)))
    rows = min(70, int((room_pt - 10) / row_pt * share))
    columns = rng.randint(2, max(3, min(11 if wide else 8, int(sheet.width_pt / 62))))
    style = Style(
        size_pt=look.size_pt, leading_em=leading, base=look.ink, before_pt=4, after_pt=4,
    )  # fmt: skip
    manuscript.add(_statement(studio, rng, lang, rows, columns, inset), style)
    return Draft(manuscript=manuscript, wear=FINE)


def _title(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> float:
    """One to three centred or left lines above the table; returns their height in points."""
    align = rng.choice(("center", "center", "left"))
    used = 0.0
    for index in range(rng.randint(0, 3)):
        text = studio.words(rng, look.lang, rng.randint(2, 7))
        text = text.upper() if rng.random() < 0.4 else text.capitalize()
        size = look.size_pt * (1.3 if index == 0 else 1.0)
        style = Style(
            size_pt=size, weight="bold" if index == 0 else "regular", align=align,
            before_pt=2, after_pt=4, base=look.ink, leading_em=0.4,
        )  # fmt: skip
        kind = rng.choice(("h1", "h2")) if index == 0 else "paragraph"
        manuscript.add(Block(type=kind, runs=(Run(ink=text),)), style)
        used += size * 2.4 + 6
    return used


def _statement(
    studio: Studio, rng: random.Random, lang: str, rows: int, columns: int, inset: float
) -> Block:
    figures = [_Figures.draw(rng, lang) for _ in range(columns)]
    if rng.random() < 0.7:
        figures = [figures[0]] * columns
    leaders, notes = rng.random() < 0.25, columns > 2 and rng.random() < 0.25
    longest = rng.choice((2, 3, 5, 8))
    grid = _heads(studio, rng, lang, columns)
    heads = len(grid)
    lines: list[tuple[int, int]] = [(heads, 0)] if rng.random() < 0.7 else []
    indent = rng.choice((0.0, 0.8, 1.2))
    while len(grid) - heads < rows:
        kind = rng.random()
        label = studio.words(rng, lang, rng.randint(1, longest))
        if kind < 0.08:
            title = label.upper() if rng.random() < 0.4 else label.capitalize()
            grid.append([Cell(text=title, bold=True), *(Cell() for _ in range(columns))])
            continue
        total = kind < 0.18
        if total and rng.random() < 0.8:
            lines.append((len(grid), 1))
        numbers: Row = [Cell(text=f.text(rng), bold=total and indent > 0) for f in figures]
        if notes:
            numbers[0] = Cell(text=str(rng.randint(1, 40)) if rng.random() < 0.4 else "")
        first = Cell(
            text=label.capitalize(), bold=total and indent > 0, leaders=leaders and not total,
            indent_em=0.0 if total else indent * rng.choice((0, 1, 1, 2)),
        )  # fmt: skip
        grid.append([first, *numbers])
    table = Table(
        rows=tuple(tuple(row) for row in grid),
        align=("left", *("right",) * columns),
        rules=rng.choice(("none", "none", "none", "head", "rows", "all", "frame")),
        inset_pt=inset,
        widths=("1fr", *("auto",) * columns),
        shaded=rng.random() < 0.2,
        lines=tuple(lines),
    )
    return Block(type="table", table=table)


def _heads(studio: Studio, rng: random.Random, lang: str, columns: int) -> list[Row]:
    """A line of years or names, with spans above in a third of the tables."""
    year = rng.randint(1900, 2026)
    names: list[str] = (
        [str(year - i) for i in range(columns)]
        if rng.random() < 0.4
        else [studio.words(rng, lang, rng.choice((1, 1, 2))).capitalize() for _ in range(columns)]
    )
    corner = studio.words(rng, lang, 1).capitalize() if rng.random() < 0.4 else ""
    lower: Row = [Cell(text=corner, header=True), *(Cell(text=n, header=True) for n in names)]
    if columns < 3 or rng.random() < 0.65:
        return [lower]
    upper: Row = [Cell(text="", header=True)]
    while len(upper) <= columns:
        span = min(rng.choice((1, 2, 2, 3, 4)), columns + 1 - len(upper))
        text = studio.words(rng, lang, rng.randint(1, 2)).capitalize()
        upper += [Cell(text=text, header=True, columns=span), *([None] * (span - 1))]
    return [upper, lower]


def register(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A page of mixed columns (names, codes, dates, numbers), ruled or not, many short rows."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=SANS + TEXT)
    look = replace(look, size_pt=rng.uniform(6.2, 8.8), justify=False)
    sheet = open_sheet(
        rng, width_px, height_px, lang,
        width_pt=rng.uniform(700, 860) if width_px > height_px else None,
    )  # fmt: skip
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.5:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    used = _title(studio, rng, manuscript, look)
    columns = rng.randint(3, max(4, int(sheet.width_pt / 80)))
    room = sheet.height_pt - sheet.margins_pt[0] - sheet.margins_pt[2] - used - 20
    # Words wrap in narrow columns: rows are about one and a half lines high.
    rows = max(6, int(room / (look.size_pt * rng.uniform(1.4, 2.8))))
    block = draw_table(studio, rng, lang, rows=min(rows, 60), columns=columns, full_width=True)
    if block.table is not None:
        table = replace(block.table, inset_pt=rng.uniform(1.4, 3.5))
        block = replace(block, table=table)
    style = Style(size_pt=look.size_pt, leading_em=rng.uniform(0.3, 0.45), base=look.ink)
    manuscript.add(block, style)
    return Draft(manuscript=manuscript, wear=FINE)


def spending(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Payments as authorities publish them: 25 to 70 rows in small print, most columns alike."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=(*SANS, "sans", "serif"))
    look = replace(look, size_pt=rng.uniform(5.8, 7.6), justify=False)
    wide = width_px > height_px
    sheet = open_sheet(
        rng, width_px, height_px, lang,
        width_pt=rng.uniform(700, 820) if wide else rng.uniform(500, 600),
    )  # fmt: skip
    side = rng.uniform(16, 40)
    sheet = replace(sheet, margins_pt=(30, side, 30, side), hyphenate=False)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.4:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, rng.randint(1, 4)))
    used = _title(studio, rng, manuscript, look) if rng.random() < 0.6 else 0.0
    makers = _payment_columns(studio, rng, lang, rng.randint(4, 8))
    inset = rng.uniform(1.2, 2.6)
    row_pt = look.size_pt * 0.75 + inset * 1.4 + look.size_pt * rng.uniform(0.3, 0.9)
    rows = min(70, int((sheet.height_pt - 75 - used) / row_pt * rng.uniform(0.6, 1.0)))
    heads = tuple(
        Cell(text=studio.words(rng, lang, rng.choice((1, 1, 2))).capitalize(), header=True)
        for _ in makers
    )
    body = tuple(tuple(Cell(text=make()) for make, _ in makers) for _ in range(rows))
    table = Table(
        rows=(heads, *body), align=tuple(align for _, align in makers), inset_pt=inset,
        rules=rng.choice(("all", "all", "rows", "head", "none")), shaded=rng.random() < 0.5,
        widths=(*(rng.choice(("auto", "auto", "1fr")) for _ in makers[1:]), "auto"),
    )  # fmt: skip
    style = Style(size_pt=look.size_pt, leading_em=0.35, base=look.ink, before_pt=4, after_pt=4)
    manuscript.add(Block(type="table", table=table), style)
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, FINE)))


def _payment_columns(
    studio: Studio, rng: random.Random, lang: str, count: int
) -> list[tuple[Callable[[], str], str]]:
    """Makers of cells, the amount last: names of few or many parties, dates, numbers."""

    def phrase(longest: int) -> str:
        return studio.words(rng, lang, rng.randint(1, longest))

    def few() -> tuple[Callable[[], str], str]:
        names = [phrase(3) for _ in range(rng.choice((1, 1, 2, 3, 6)))]
        shown = [name.upper() for name in names] if rng.random() < 0.4 else names
        return (lambda: rng.choice(shown)), "left"

    mark, year = rng.choice("/.-"), rng.randint(2008, 2026)
    start = rng.randint(1000, 9_000_000)

    def date() -> str:
        return f"{rng.randint(1, 28):02d}{mark}{rng.randint(1, 12):02d}{mark}{year}"

    def running() -> str:
        return str(start + rng.randint(0, 900))

    figures = _Figures.draw(rng, lang)
    figures = replace(figures, size=rng.choice((2e4, 3e5)), decimals=2, dash="0.00")
    kinds = [
        few(), few(), few(), (lambda: phrase(3).upper(), "left"), (lambda: phrase(4), "left"),
        (date, "left"), (running, rng.choice(("left", "right"))),
    ]  # fmt: skip
    rng.shuffle(kinds)
    return [*kinds[: count - 1], ((lambda: figures.text(rng)), "right")]
