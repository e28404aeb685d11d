"""Statistical reports of authorities: numbered tables with units, row groups and notes in text."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import DIGITAL, FINE, OFFICE

from .books import open_sheet

Row = list[Cell | None]
_PLACES = (
    "Belgium", "Bulgaria", "Czech Republic", "Denmark", "Germany", "Estonia", "Ireland", "Greece",
    "Spain", "France", "Croatia", "Italy", "Cyprus", "Latvia", "Lithuania", "Luxembourg", "Hungary",
    "Malta", "Netherlands", "Austria", "Poland", "Portugal", "Romania", "Slovenia", "Slovakia",
    "Finland", "Sweden", "United Kingdom", "Norway", "Switzerland", "Turkey", "EU-27", "EU-15",
    "Euro area", "Alabama", "Alaska", "Arizona", "California", "Colorado", "Florida", "Georgia",
    "Illinois", "Kansas", "Maine", "New Mexico", "New York", "North Dakota", "Ohio", "Oregon",
    "Texas", "Utah", "Virginia", "District of Columbia", "West Virginia", "United States", "Japan",
    "China", "BE", "BG", "CZ", "DK", "DE", "EE", "IE", "EL", "ES", "FR", "IT", "CY", "LV", "LT",
    "LU", "HU",
)  # fmt: skip
_MISSING = ("-", "–", ":", "..", "n.a.", "", "(D)", "NA", "—", "(1)", "u", "*", "X")
_MEASURED = (
    "Total", "Males", "Females", "Number", "Percent", "%", "Rate", "Estimate", "Change",
    "Per capita", "Population", "Share (%)", "Q1", "Q2", "Q3", "Q4", "Jan.", "Feb.", "Value",
    "Volume", "Index", "Imports", "Exports", "All ages", "15-24", "25-54", "55-64", "65+",
    "Under 5", "Urban", "Rural", "Standard error", "Margin of error", "Number of cases",
    "Expenditure", "Revenue", "Actual", "Budget",
)  # fmt: skip
_UNIT_NOTES = (
    "(in thousands)", "(million euro)", "(% of total)", "(EUR 1 000)", "(1 000 tonnes)",
    "[Percent]", "(In millions of dollars)", "(per 100 000 inhabitants)", "(Numbers in thousands)",
    "Million tonnes", "(percentage change on previous year)", "(Dollars in billions)",
    "(2000 = 100)", "1 000 ha",
)  # fmt: skip
_SOURCES = (
    "Source: ",
    "Source: ",
    "SOURCE: ",
    "Note: ",
    "Notes: ",
    "(1) ",
    "* ",
    "a ",
    "1/ ",
    ": ",
)


@dataclass(frozen=True, kw_only=True)
class _Numbers:
    """How one column prints its numbers."""

    size: float
    decimals: int
    grouping: str
    comma: str
    missing: str
    holes: float
    signed: bool

    @staticmethod
    def draw(rng: random.Random, lang: str) -> _Numbers:
        foreign = lang not in ("en", "vi") or rng.random() < 0.12
        return _Numbers(
            size=rng.choice((1, 10, 100, 100, 1e3, 1e4, 1e5, 1e6)),
            decimals=rng.choice((0, 0, 1, 1, 1, 2)),
            grouping=rng.choice((".", " ") if foreign else (",", ",", ",", " ")),
            comma="," if foreign else ".",
            missing=rng.choice(_MISSING),
            holes=rng.choice((0.0, 0.02, 0.08, 0.25)),
            signed=rng.random() < 0.2,
        )

    def cell(self, rng: random.Random, marks: float) -> Cell:
        if rng.random() < self.holes:
            return Cell(text=self.missing)
        shown = f"{rng.random() ** 2 * self.size:,.{self.decimals}f}"
        shown = shown.translate(str.maketrans({",": self.grouping, ".": self.comma}))
        sign = rng.choice(("-", "+", "")) if self.signed else ""
        mark = rng.choice("1234abp*") if rng.random() < marks else ""
        return Cell(text=sign + shown, mark=mark)


def _names(studio: Studio, rng: random.Random, lang: str, count: int) -> list[str]:
    """The names of the columns: years, periods, measures, words."""
    kind = rng.random()
    year = rng.randint(1960, 2024)
    if kind < 0.4:
        step = rng.choice((1, 1, 1, 5, 10))
        suffix = rng.choice(("", "", "", "", "p", "/%02d"))
        names = []
        for x in range(count):
            shown = str(year + step * (x - count))
            names.append(shown + (suffix % ((int(shown) + 1) % 100) if "%" in suffix else suffix))
        if count > 3 and rng.random() < 0.3:
            names[-1] = rng.choice(("Change", f"{names[-2]}/{names[-3]}", "% change", "Total"))
        return names
    if kind < 0.65:
        return [rng.choice(_MEASURED) for _ in range(count)]
    return [
        (t := studio.phrase(rng, lang, rng.choice((1, 2, 2, 3))))[0].upper() + t[1:]
        for _ in range(count)
    ]


def _heads(
    studio: Studio, rng: random.Random, lang: str, columns: int, light: bool
) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """Names in one to three rows; a row of units or of column numbers below some."""

    def head(text: str, columns: int = 1, rows: int = 1) -> Cell:
        return Cell(text=text, header=True, columns=columns, rows=rows, light=light)

    corner = rng.choice(("", "", "Country", "Region", "State", "Item", studio.phrase(rng, lang, 2)))
    lower: Row = [head(corner), *(head(n) for n in _names(studio, rng, lang, columns))]
    rows, part_lines = [lower], []
    if columns > 2 and rng.random() < 0.55:
        upper: Row = [head(corner, rows=2)]
        lower[0] = None
        width = rng.choice((2, 2, 3, 3, 4, columns))
        names = _names(studio, rng, lang, min(width, columns))
        while len(upper) <= columns:
            x = len(upper)
            span = min(width, columns + 1 - x)
            if span == 1 or rng.random() < 0.12:
                upper.append(replace(lower[x] or head(""), rows=2))
                lower[x] = None
                continue
            text = studio.phrase(rng, lang, rng.choice((1, 2, 3)))
            upper += [head(text[0].upper() + text[1:], columns=span), *[None] * (span - 1)]
            part_lines.append((1, x, x + span))
            for dx in range(span):
                lower[x + dx] = head(names[dx % len(names)])
        rows = [upper, lower]
    if rng.random() < 0.12:
        unit = rng.choice(_UNIT_NOTES)
        rows.append([head(""), head(unit, columns=columns), *[None] * (columns - 1)])
    elif rng.random() < 0.06:
        rows.append([head(""), *(head(f"({x})") for x in range(1, columns + 1))])
    return rows, part_lines if rng.random() < 0.5 else []


def statistical_table(
    studio: Studio, rng: random.Random, lang: str, rows: int, columns: int, size_pt: float
) -> Block:
    """A table of about `rows` rows and a stub with `columns` columns of figures."""
    light = rng.random() < 0.4
    grid, part_lines = _heads(studio, rng, lang, columns, light)
    heads = len(grid)
    figures = [_Numbers.draw(rng, lang) for _ in range(columns)]
    if rng.random() < 0.6:
        figures = [figures[0]] * columns
    marks = rng.choice((0.0, 0.0, 0.02, 0.08))
    listed = rng.random() < 0.5
    places = rng.sample(_PLACES, len(_PLACES))
    longest = rng.choice((2, 3, 5, 9))
    sections, indent = rng.choice((0.0, 0.06, 0.15)), rng.choice((0.0, 0.0, 0.8, 1.2))
    lines: list[tuple[int, int]] = []
    depth = 0
    while len(grid) - heads < rows:
        if rng.random() < sections:
            text = studio.phrase(rng, lang, rng.choice((1, 2, 3)))
            text = text.upper() if rng.random() < 0.3 else text[0].upper() + text[1:]
            bold = rng.random() < 0.6
            if rng.random() < 0.35:
                grid.append(
                    [
                        Cell(text=text, columns=columns + 1, bold=bold, align="center"),
                        *[None] * columns,
                    ]
                )
            else:
                grid.append([Cell(text=text, bold=bold), *(Cell() for _ in range(columns))])
            depth = 1
            continue
        total = rng.random() < 0.07
        text = studio.phrase(rng, lang, rng.randint(1, longest))
        text = places.pop() if listed and places else text[0].upper() + text[1:]
        if total:
            text = rng.choice(("Total", "TOTAL", "All", "Total, " + text))
            if rng.random() < 0.4:
                lines.append((len(grid), 0))
        mark = rng.choice("123(a") if rng.random() < marks else ""
        stub = Cell(
            text=text, bold=total and not light, mark=mark.replace("(", "(1)"),
            indent_em=0.0 if total else indent * depth * rng.choice((1, 1, 2)),
        )  # fmt: skip
        body = [f.cell(rng, marks) for f in figures]
        grid.append([stub, *(replace(c, bold=total and not light) for c in body)])
    pads = (size_pt * rng.uniform(0.2, 0.7), size_pt * rng.uniform(0.1, 0.45))
    align = rng.choice(("right", "right", "right", "center"))
    table = Table(
        rows=tuple(tuple(row) for row in grid), align=("left", *(align,) * columns), pads_pt=pads,
        rules=rng.choices(("head", "none", "rows", "all", "frame"), (38, 18, 14, 20, 10))[0],
        widths=_widths(rng, grid, pads[0], size_pt), shaded=rng.random() < 0.25,
        lines=tuple(lines), part_lines=tuple(part_lines),
    )  # fmt: skip
    return Block(type="table", table=table)


def _widths(
    rng: random.Random, grid: list[Row], across_pt: float, size_pt: float
) -> tuple[str, ...]:
    """Columns as wide as their longest word, alike in most tables; the stub takes the rest."""
    needs = []
    for x in range(1, len(grid[0])):
        cells = [cell for row in grid if (cell := row[x]) and cell.columns == 1]
        words = [w for c in cells for w in ((c.ink,) if not c.header else c.ink.split())]
        needs.append(max((len(word) for word in words), default=3) * 0.62 + 0.4)
    if rng.random() < 0.6:
        needs = [max(needs)] * len(needs)
    stretched = rng.random() < 0.35
    figures = (f"{need * size_pt + 2 * across_pt:.1f}pt" for need in needs)
    return (
        "auto" if rng.random() < 0.4 else "1fr",
        *(("1fr",) * len(needs) if stretched else figures),
    )


def _title(studio: Studio, rng: random.Random, lang: str, number: str) -> str:
    text = studio.phrase(rng, lang, rng.randint(4, 14))
    text = text[0].upper() + text[1:]
    word = rng.choice(("Table", "Table", "Table", "TABLE", "Tab."))
    return f"{word} {number}{rng.choice((':', '.', ' –', ''))} {text}"


def _placed_table(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, rows: int, number: str
) -> float:
    """Caption, units, table and notes; returns about how high they are in points."""
    lang, size = look.lang, look.size_pt * rng.uniform(0.78, 1.0)
    sheet = manuscript.sheet
    room_em = (sheet.width_pt - sheet.margins_pt[1] - sheet.margins_pt[3]) / size
    columns = rng.randint(2, max(2, min(13, int((room_em - 9) / 4.6))))
    style = replace(look.style(), justify=False, size_pt=size, leading_em=0.4)
    above = rng.random() < 0.85
    heading = Block(type="caption", runs=(Run(ink=_title(studio, rng, lang, number)),))
    bold = replace(
        style, weight=rng.choice(("bold", "regular")), align=rng.choice(("left", "center"))
    )
    if above:
        manuscript.add(heading, bold)
        if rng.random() < 0.45:
            unit = Block(type="paragraph", runs=(Run(ink=rng.choice(_UNIT_NOTES)),))
            align = rng.choice(("right", bold.align))
            manuscript.add(unit, replace(style, align=align, before_pt=2, after_pt=2))
    block = statistical_table(studio, rng, lang, rows, columns, size)
    manuscript.add(block, replace(style, before_pt=4, after_pt=4))
    if not above:
        manuscript.add(heading, bold)
    small = replace(style, size_pt=max(5.8, size * 0.85), before_pt=2, after_pt=2)
    for _ in range(rng.choice((0, 1, 1, 2, 3))):
        note = rng.choice(_SOURCES) + studio.phrase(rng, lang, rng.randint(3, 22))
        manuscript.add(Block(type="paragraph", runs=(Run(ink=note + "."),)), small)
    return rows * size * 1.6 + size * 9


def statistics(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A report's page: text, one to three tables with their captions, units and notes."""
    lang = rng.choice(("en", "en", "en", "en", draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=(*SANS, "sans", *TEXT))
    look = replace(look, size_pt=rng.uniform(7.4, 10.5))
    wide = width_px > height_px
    sheet = open_sheet(
        rng, width_px, height_px, lang, width_pt=rng.uniform(680, 850) if wide else None
    )
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.7:
        running_parts(manuscript, studio, rng, look, studio.phrase(rng, lang, rng.randint(2, 6)))
    room = sheet.height_pt - sheet.margins_pt[0] - sheet.margins_pt[2] - 20
    if rng.random() < 0.4:
        look.heading(manuscript, studio.phrase(rng, lang, rng.randint(2, 6)), rng.choice((1, 2, 3)))
        room -= look.size_pt * 4
    chapter = rng.randint(1, 12)
    across = (sheet.width_pt - sheet.margins_pt[1] - sheet.margins_pt[3]) / (look.size_pt * 0.5)
    share = rng.choice((0.45, 0.7, 1.0))
    index = rng.randint(1, 20)
    while room > look.size_pt * 14:
        if rng.random() > share:
            budget = rng.uniform(200, 1500)
            look.fill(studio, rng, manuscript, budget)
            room -= (budget / across + 4) * look.size_pt * (0.75 + look.leading_em)
            continue
        most = int((room - look.size_pt * 12) / (look.size_pt * 1.7))
        rows = max(2, min(45, int(most * rng.choice((0.3, 0.6, 0.9)))))
        number = rng.choice((f"{index}", f"{chapter}.{index}", f"{chapter}-{index}"))
        room -= _placed_table(studio, rng, manuscript, look, rows, number)
        index += 1
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, DIGITAL, FINE, OFFICE)))


def statistics_image(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A statistical table cut out of its page."""
    size = rng.uniform(6.5, 9.0)
    scale = rng.uniform(9.2, 17) / size
    edge = rng.uniform(0.5, 5)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=scale, hyphenate=False,
        margins_pt=(edge, edge, 1, edge),
    )  # fmt: skip
    lang = rng.choice(("en", "en", "en", draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=(*SANS, "sans", "serif"))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    columns = max(1, min(12, int((sheet.width_pt / size - 8) / rng.uniform(4.2, 6.5))))
    rows = max(
        2, int((sheet.height_pt / (size * rng.uniform(1.5, 2.2)) - 3) * rng.uniform(0.5, 0.95))
    )
    # More cells make a longer text than cut-outs are given.
    rows = min(rows, max(2, 80 // (columns + 1)))
    block = statistical_table(studio, rng, lang, rows, columns, size)
    style = Style(size_pt=size, leading_em=0.4, before_pt=0, after_pt=0, base=look.ink)
    manuscript.add(block, style)
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, FINE)))
