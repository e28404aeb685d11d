"""Tables of scientific papers: two or three rules, spanning heads, stubs, numbers with spread."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace

from ocria.models.recipes.pages.blocks import Block, Cell, Table
from ocria.models.recipes.pages.fonts import SANS, SERIF
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import DIGITAL, FINE

Row = list[Cell | None]
Maker = Callable[[], str]
_MEASURES = (
    "n", "n (%)", "Mean ± SD", "95% CI", "P value", "p", "OR (95% CI)", "HR", "Median", "IQR",
    "Range", "SE", "t", "F", "df", "r", "R²", "AUC", "Sensitivity (%)", "Specificity (%)", "Total",
    "Age (years)", "BMI (kg/m²)", "Male", "Female", "Control", "Baseline", "Follow-up", "Group A",
    "Group B", "Treatment", "Placebo", "Accuracy", "F1", "Precision", "Recall", "BLEU", "Model",
    "Method", "Reference", "Yes", "No", "Sample", "Size (nm)", "T (°C)", "Time (h)", "pH", "Year",
)  # fmt: skip
_MARKS = ("a", "b", "c", "d", "*", "**", "†", "‡", "1", "2", "a,b")
_EMPTY = ("", "", "–", "-", "—", "NA", "N/A", "NS", "n.d.")


@dataclass(frozen=True, kw_only=True)
class _Habits:
    """What the cells of one table have in common."""

    empty: str
    holes: float
    marks: float
    stub_words: int
    bold_heads: bool
    indent_em: float

    @staticmethod
    def draw(rng: random.Random) -> _Habits:
        return _Habits(
            empty=rng.choice(_EMPTY),
            holes=rng.choice((0.0, 0.0, 0.04, 0.15, 0.4)),
            marks=rng.choice((0.0, 0.0, 0.03, 0.15)),
            stub_words=rng.choice((1, 2, 3, 4, 6)),
            bold_heads=rng.random() < 0.6,
            indent_em=rng.choice((0.0, 0.6, 1.0, 1.5)),
        )


def _phrase(studio: Studio, rng: random.Random, count: int) -> str:
    """Words that fit a narrow column: longer ones would run into the next."""
    if rng.random() < 0.6:
        text = studio.phrase(rng, "en", count)
        if max(map(len, text.split())) < 14:
            return text
    words: list[str] = []
    while len(words) < count:
        word = studio.words(rng, "en", 1)
        if len(word) < 12:
            words.append(word)
    return " ".join(words)


def _numbers(rng: random.Random) -> Maker:
    """A maker of the numbers of one column: one manner, one magnitude, one count of decimals."""
    size = rng.choice((1.0, 1.0, 10.0, 100.0, 100.0, 1000.0, 30000.0))
    decimals = rng.choice((0, 1, 1, 2, 2, 3)) if size < 1000 else rng.choice((0, 0, 1))
    minus = rng.choice(("", "", "-", "−", "–"))

    def plain() -> str:
        sign = minus if minus and rng.random() < 0.3 else ""
        return f"{sign}{rng.random() * size:.{decimals}f}"

    def grouped() -> str:
        return f"{rng.random() * size * 100:,.0f}"

    def spread() -> str:
        link = " ± " if loose else "±"
        return f"{plain()}{link}{rng.random() * size * 0.2:.{decimals}f}"

    def share() -> str:
        return f"{rng.randint(0, 400)} ({rng.random() * 100:.{min(decimals, 1)}f}{percent})"

    def interval() -> str:
        low = rng.random() * size
        high = low + rng.random() * size
        inner = f"{low:.{decimals}f}{dash}{high:.{decimals}f}"
        return f"{(low + high) / 2:.{decimals}f} {opening}{inner}{closing}"

    def probability() -> str:
        kind = rng.random()
        if kind < 0.3:
            return rng.choice(("<0.001", "< 0.001", "<0.01", "<0.05", "P < 0.001"))
        return f"{rng.random():.{rng.choice((2, 3, 3, 4))}f}"

    def whole() -> str:
        return str(rng.randint(0, int(size * 3) + 9))

    def ratio() -> str:
        return f"{rng.randint(0, 90)}/{rng.randint(10, 200)}"

    def power() -> str:
        return f"{rng.uniform(1, 10):.{rng.choice((1, 2))}f}E-{rng.randint(2, 12):02d}"

    loose, percent = rng.random() < 0.7, rng.choice(("", "%"))
    dash = rng.choice(("–", "-", ", ", " to ", " – "))
    opening, closing = rng.choice((("(", ")"), ("(", ")"), ("[", "]")))
    return rng.choices(
        (plain, grouped, spread, share, interval, probability, whole, ratio, power),
        (30, 5, 16, 11, 9, 8, 12, 3, 2),
    )[0]


def _words(studio: Studio, rng: random.Random) -> Maker:
    """A maker of short texts: words, codes, ticks."""
    kind = rng.random()
    if kind < 0.2:
        return lambda: rng.choice(("Yes", "No", "+", "–", "++", "+/–", "✓", "✗", "Low", "High"))
    if kind < 0.4:
        letters = "ABCDEFGHKLMNPRSTUVXYZ0123456789-"
        return lambda: "".join(rng.choice(letters) for _ in range(rng.randint(2, 8))).strip("-")
    longest = rng.choice((1, 2, 3, 8))
    return lambda: _phrase(studio, rng, rng.randint(1, longest))


def _name(studio: Studio, rng: random.Random) -> str:
    """The name of a column."""
    if rng.random() < 0.55:
        return rng.choice(_MEASURES)
    text = _phrase(studio, rng, rng.choice((1, 1, 2, 2, 3, 4)))
    if rng.random() < 0.3:
        text += (
            rng.choice((" (%)", " (n = %d)", " (mg/L)", " (ms)", ", %%", " (n=%d)"))
            .replace("%d", str(rng.randint(5, 900)))
            .replace("%%", "%")
        )
    return text[0].upper() + text[1:]


def _head_rows(
    studio: Studio, rng: random.Random, columns: int, habits: _Habits
) -> tuple[list[Row], list[tuple[int, int, int]]]:
    """One to three rows of names, wider ones above narrower, with the rules under the wider."""

    def cell(columns: int = 1, rows: int = 1, text: str | None = None) -> Cell:
        mark = rng.choice(_MARKS) if rng.random() < habits.marks * 2 else ""
        shown = _name(studio, rng) if text is None else text
        return Cell(
            text=shown, header=True, columns=columns, rows=rows, mark=mark if shown else "",
            light=not habits.bold_heads,
        )  # fmt: skip

    corner = "" if rng.random() < 0.35 else None
    lower: Row = [cell(text=corner), *(cell() for _ in range(columns - 1))]
    if columns < 3 or rng.random() < 0.5:
        return [lower], []
    if rng.random() < 0.4:
        # The same names below each of the spans.
        names = [_name(studio, rng) for _ in range(3)]
        lower = [lower[0], *(cell(text=names[x % len(names)]) for x in range(columns - 1))]
    upper: Row = []
    part_lines: list[tuple[int, int, int]] = []
    while len(upper) < columns:
        x = len(upper)
        span = 1 if x == 0 else min(rng.choice((1, 2, 2, 3, 3, 4)), columns - x)
        if span > 1:
            upper += [cell(columns=span), *([None] * (span - 1))]
            part_lines.append((1, x, x + span))
        elif rng.random() < 0.7:
            joined = lower[x]
            upper.append(replace(joined, rows=2) if joined else None)
            lower[x] = None
        else:
            upper.append(cell(text=""))
    rows = [upper, lower]
    if columns > 4 and rng.random() < 0.15:
        top = [cell(text=""), cell(columns=columns - 1), *([None] * (columns - 2))]
        rows.insert(0, top)
        part_lines = [(y + 1, x, stop) for y, x, stop in part_lines] + [(1, 1, columns)]
    return rows, part_lines if rng.random() < 0.7 else []


def science_table(studio: Studio, rng: random.Random, rows: int, columns: int) -> Block:
    """A table of about `rows` by `columns`, in the manner of a paper."""
    habits = _Habits.draw(rng)
    grid, part_lines = _head_rows(studio, rng, columns, habits)
    heads = len(grid)
    makers = [_numbers(rng) if rng.random() < 0.82 else _words(studio, rng) for _ in range(columns)]
    if rng.random() < 0.45:
        makers = [_numbers(rng)] * columns
    sections = rng.choice((0.0, 0.0, 0.08, 0.18))
    joined_stub = rng.random() < 0.08
    inside = False
    lines: list[tuple[int, int]] = []
    while len(grid) - heads < rows:
        if rng.random() < sections:
            if rng.random() < 0.3:
                lines.append((len(grid), 0))
            grid.append(_section(studio, rng, columns))
            inside = True
            continue
        stub = _phrase(studio, rng, rng.randint(1, habits.stub_words))
        shown = stub[0].upper() + stub[1:] if rng.random() < 0.8 else stub
        if rng.random() < 0.1:
            shown = rng.choice(_MEASURES)
        first = Cell(
            text=shown, indent_em=habits.indent_em if inside else 0.0,
            mark=rng.choice(_MARKS) if rng.random() < habits.marks else "",
        )  # fmt: skip
        # Within a section some labels stand alone, above the rows that belong to them.
        alone = rng.random() < 0.05
        grid.append([first, *(_value(rng, make, habits, alone) for make in makers[1:])])
    if joined_stub:
        _join_stub(rng, grid, heads)
    if rng.random() < 0.15:
        lines.append((len(grid) - 1, 0))
    inset_pt = rng.uniform(1.5, 5.5)
    body_align = rng.choice(("center", "center", "right", "left", "left"))
    table = Table(
        rows=tuple(tuple(row) for row in grid),
        align=("left", *(body_align,) * (columns - 1)),
        rules=rng.choices(("head", "none", "rows", "all", "frame"), (66, 6, 10, 14, 4))[0],
        inset_pt=inset_pt,
        widths=_widths(rng, grid, inset_pt),
        shaded=rng.random() < 0.12,
        lines=tuple(lines),
        part_lines=tuple(part_lines),
    )
    return Block(type="table", table=table)


def _widths(rng: random.Random, grid: list[Row], inset_pt: float) -> tuple[str, ...]:
    """Columns wide enough for their longest word, or their longest text; the stub takes the rest.

    Typst would let a number that cannot be broken run into the next column.
    """
    longest = rng.choice((1, 1, 16))
    widths = [rng.choice(("auto", "1fr"))]
    for x in range(1, len(grid[0])):
        cells = [cell for row in grid if (cell := row[x]) and cell.columns == 1]
        need_em = max((_width_em(cell, longest) for cell in cells), default=2.0)
        widths.append(f"{need_em:.2f}em + {2 * inset_pt:.1f}pt")
    return tuple(widths)


def _width_em(cell: Cell, longest: int) -> float:
    """About how wide a cell's longest word is, its first `longest` characters at least."""
    words = [*cell.ink.split(), cell.ink[:longest]]
    heavy = 1.1 if cell.header or cell.bold else 1.0
    return max(sum(0.78 if c.isupper() or c in "±%mw" else 0.57 for c in w) for w in words) * heavy


def _value(rng: random.Random, make: Maker, habits: _Habits, alone: bool) -> Cell:
    if alone:
        return Cell()
    if rng.random() < habits.holes:
        return Cell(text=habits.empty)
    mark = rng.choice(_MARKS) if rng.random() < habits.marks else ""
    return Cell(text=make(), mark=mark, bold=rng.random() < 0.02)


def _section(studio: Studio, rng: random.Random, columns: int) -> Row:
    """A label across the table, or in the first column with nothing behind it.

    A reader can see which: what is centred or longer than names of rows are goes across.
    """
    words = rng.choice((1, 2, 3, 4, 7))
    title = _phrase(studio, rng, words).capitalize()
    bold = rng.random() < 0.4
    align = rng.choice(("left", "left", "left", "center"))
    if align == "center" or words > 4:
        return [
            Cell(text=title, columns=columns, align=align, bold=bold),
            *([None] * (columns - 1)),
        ]
    return [Cell(text=title, bold=bold), *(Cell() for _ in range(columns - 1))]


def _join_stub(rng: random.Random, grid: list[Row], heads: int) -> None:
    """Joins runs of first-column cells: one label for several rows."""
    y = heads
    while y < len(grid):
        size = min(rng.randint(1, 4), len(grid) - y)
        cells = [grid[y + dy][0] for dy in range(size)]
        first = cells[0]
        if size > 1 and first and all(cell and cell.columns == 1 for cell in cells):
            align = rng.choice(("left + horizon", "left + top"))
            grid[y][0] = replace(first, rows=size, indent_em=0.0, align=align)
            for dy in range(1, size):
                grid[y + dy][0] = None
        y += size


def _natural_widths(rng: random.Random, grid: list[Row]) -> list[float]:
    """Widths in em: columns as wide as their longest text, wordy ones and names narrower."""
    widths = []
    for x in range(len(grid[0])):
        cells = [cell for row in grid if (cell := row[x]) and cell.columns == 1]
        word = max((_width_em(cell, 1) for cell in cells), default=2.0)
        figures = max((_text_em(cell) for cell in cells if not cell.header), default=2.0)
        names = max((_text_em(cell) for cell in cells if cell.header), default=2.0)
        widest = rng.uniform(9, 22) if x == 0 else rng.uniform(8, 14)
        widths.append(0.2 + max(word, min(max(figures, names * rng.uniform(0.4, 1.0)), widest)))
    return widths


def _lines(row: Row, widths: list[float]) -> int:
    """About how many lines a row takes; a little more often than less."""
    taken = [1]
    for x, cell in enumerate(row):
        if cell and cell.rows == 1:
            room = sum(widths[x : x + cell.columns])
            text = _text_em(cell) * 1.06
            taken.append(1 if text <= room else int(text / room * 1.15) + 1)
    return max(taken)


def _text_em(cell: Cell) -> float:
    """About how wide a cell's text is on one line."""
    heavy = 1.1 if cell.header or cell.bold else 1.0
    wide = sum(0.78 if c.isupper() or c in "±%mw" else 0.55 for c in cell.ink)
    return wide * heavy + cell.indent_em


def natural_image(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A table as a paper sets it, nothing squeezed, then brought to the image's size."""
    size = 8.0
    em_px = rng.uniform(10, 21)
    room_em = width_px / em_px
    leading = rng.uniform(0.3, 0.55)
    pitch_em = rng.uniform(1.2, 2.0)
    rows = max(2, int(height_px / em_px / pitch_em * rng.choice((0.9, rng.uniform(0.3, 0.9))) - 1))
    columns = max(2, round((room_em - rng.uniform(5, 14)) / rng.uniform(3.8, 6.5)))
    block = science_table(studio, rng, min(rows, 26), min(columns, 12))
    assert block.table is not None
    grid = [list(row) for row in block.table.rows]
    pad_em = rng.uniform(0.25, 0.7)
    widths = _natural_widths(rng, grid)
    while len(widths) > 2 and sum(widths) + 2 * pad_em * len(widths) > room_em * 1.3:
        grid, widths = _narrower(grid), widths[:-1]
    down_em = max(0.05, (pitch_em - 0.7) / 2)
    heights = [_lines(row, widths) * (0.72 + leading) - leading + 2 * down_em for row in grid]
    margin = rng.uniform(0.1, 0.7)
    wide_em = sum(widths) + 2 * pad_em * len(widths) + 2 * margin + 0.1
    # Print below nine pixels an em cannot be read: what does not fit then runs off the page.
    em_px = max(8.8, min(22.0, width_px / wide_em, height_px / (sum(heights) * 1.03 + 0.6)))
    edge = margin * size
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=em_px / size, hyphenate=False,
        margins_pt=(edge, 0, 0, edge),
    )  # fmt: skip
    look = Look.draw(studio, rng, "en", categories=(*SERIF, "serif", *SANS, "sans"))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    table = replace(
        block.table, rows=tuple(tuple(row) for row in grid),
        align=block.table.align[: len(widths)], pads_pt=(pad_em * size, down_em * size),
        widths=tuple(f"{(width + 2 * pad_em) * size:.1f}pt" for width in widths),
        part_lines=tuple(
            (y, x, min(stop, len(widths)))
            for y, x, stop in block.table.part_lines if x < len(widths)
        ),
    )  # fmt: skip
    style = Style(size_pt=size, leading_em=leading, before_pt=0, after_pt=0, base=look.ink)
    manuscript.add(replace(block, table=table), style)
    return Draft(manuscript=manuscript, wear=DIGITAL if rng.random() < 0.7 else FINE)


def _narrower(grid: list[Row]) -> list[Row]:
    """The table without its last column; spans over it end before it."""
    if len(grid[0]) <= 2:
        return grid
    last = len(grid[0]) - 1
    kept: list[Row] = []
    for row in grid:
        cells = list(row[:last])
        for x, cell in enumerate(cells):
            if cell and x + cell.columns > last:
                cells[x] = replace(cell, columns=last - x)
        kept.append(cells)
    return kept


def science_image(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A table cut out of a paper, to its last rule; about as large as the image."""
    if rng.random() < 0.8:
        return natural_image(studio, rng, width_px, height_px)
    size = rng.uniform(6.5, 9.5)
    columns = rng.choice((2, 3, 3, 4, 4, 5, 5, 6, 7, 8, 9, 10))
    # Columns are about six characters and their gap; the rest is the stub.
    width_pt = size * (rng.uniform(6, 11) + (columns - 1) * rng.uniform(3.6, 5.6))
    scale = min(3.2, max(width_px / width_pt, 1.15 if width_px > 500 else 0.95))
    margin = rng.uniform(1, 6)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=scale, hyphenate=rng.random() < 0.3,
        margins_pt=(margin, margin, 1, margin),
    )  # fmt: skip
    look = Look.draw(studio, rng, "en", categories=(*SERIF, "serif", *SANS, "sans"))
    manuscript = Manuscript(sheet=sheet, family=look.body)
    columns = min(columns, max(2, int(sheet.width_pt / (size * 4.2))))
    leading = rng.uniform(0.3, 0.55)
    row_pt = size * rng.uniform(1.6, 2.6)
    rows = max(2, int((sheet.height_pt / row_pt - 2) * rng.choice((0.85, rng.uniform(0.3, 0.85)))))
    style = Style(size_pt=size, leading_em=leading, before_pt=0, after_pt=0, base=look.ink)
    # Print below nine pixels an em cannot be read.
    smallest = min(1.0, 8.8 / (size * sheet.scale))
    manuscript.fitted(science_table(studio, rng, rows, columns), style, smallest=smallest)
    return Draft(manuscript=manuscript, wear=DIGITAL if rng.random() < 0.7 else FINE)
