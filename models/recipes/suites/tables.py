"""Tables with exact cells and spans, in four styles of ruling."""

from __future__ import annotations

import html
import random
from collections.abc import Iterator
from dataclasses import dataclass

from ocria.models.recipes.suites.sheet import Sheet, page_source, quoted
from ocria.models.recipes.suites.sources import Sources

_STYLES = {
    "ruled": "stroke: 0.5pt",
    "open": "stroke: none",
    "lines": "stroke: (x: none, y: 0.4pt)",
    "striped": "stroke: none, fill: (x, y) => if calc.odd(y) { luma(232) }",
}


@dataclass(frozen=True, kw_only=True)
class _Cell:
    text: str
    colspan: int = 1
    rowspan: int = 1
    is_heading: bool = False


def table_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """One table a page, every second with spans in its heading."""
    for number in range(count):
        style = sorted(_STYLES)[number % len(_STYLES)]
        columns = rng.randint(3, 7)
        heading = _spanned_heading if number % 2 else _plain_heading
        rows = [*heading(sources, rng, columns), *_body(sources, rng, columns)]
        yield Sheet(
            kind=f"table/{style}" + ("/spans" if number % 2 else ""),
            lang="en",
            metric="teds",
            truth=_markup(rows),
            typst=_source(rows, columns, style, sources.family(rng)),
        )


def _plain_heading(sources: Sources, rng: random.Random, columns: int) -> list[list[_Cell]]:
    return [[_heading(sources, rng) for _ in range(columns)]]


def _spanned_heading(sources: Sources, rng: random.Random, columns: int) -> list[list[_Cell]]:
    """A first column over two rows, and groups of columns under common headings."""
    above = [_Cell(text=_heading(sources, rng).text, rowspan=2, is_heading=True)]
    left = columns - 1
    while left:
        width = min(left, rng.randint(1, 3))
        above.append(_Cell(text=_heading(sources, rng).text, colspan=width, is_heading=True))
        left -= width
    return [above, [_heading(sources, rng) for _ in range(columns - 1)]]


def _heading(sources: Sources, rng: random.Random) -> _Cell:
    words = sources.words(rng, count=rng.randint(1, 2))
    return _Cell(text=" ".join(words).capitalize(), is_heading=True)


def _body(sources: Sources, rng: random.Random, columns: int) -> list[list[_Cell]]:
    kinds = [rng.choice(("number", "number", "word", "year")) for _ in range(columns - 1)]
    rows = []
    for _ in range(rng.randint(5, 16)):
        label = " ".join(sources.words(rng, count=rng.randint(1, 3))).capitalize()
        values = [_value(sources, rng, kind) for kind in kinds]
        rows.append([_Cell(text=text) for text in (label, *values)])
    return rows


def _value(sources: Sources, rng: random.Random, kind: str) -> str:
    if rng.random() < 0.06:
        return rng.choice(("", "-", "n/a"))
    if kind == "word":
        return sources.words(rng, count=1)[0]
    return str(rng.randint(1950, 2030)) if kind == "year" else f"{rng.randrange(10**7) / 100:,.2f}"


def _source(rows: list[list[_Cell]], columns: int, style: str, font: str) -> str:
    cells = []
    for row in rows:
        for cell in row:
            weight = 700 if cell.is_heading else 400
            text = f"#text(weight: {weight})[{quoted(cell.text)}]"
            cells.append(f"table.cell(colspan: {cell.colspan}, rowspan: {cell.rowspan})[{text}]")
    body = f"#table(columns: {columns}, inset: 5pt, {_STYLES[style]},\n" + ",\n".join(cells) + ")"
    return page_source(body, font=font, size_pt=9.0 if columns < 6 else 7.5, margin_pt=48)


def _markup(rows: list[list[_Cell]]) -> str:
    lines = []
    for row in rows:
        cells = "".join(
            f'<{"th" if c.is_heading else "td"} rowspan="{c.rowspan}" colspan="{c.colspan}">'
            f"{html.escape(c.text)}</{'th' if c.is_heading else 'td'}>"
            for c in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return "<table>" + "\n".join(lines) + "</table>\n"
