"""Tables: invented figures, corpus tables, spans, groups, empty and many-line cells."""

from __future__ import annotations

import random
from collections.abc import Callable

from ocria.models.recipes.pages.blocks import Block, Cell, Table
from ocria.models.recipes.pages.corpus import is_drawable
from ocria.models.recipes.pages.studio import Studio

Column = Callable[[], str]
_UNITS = ("", "", "", " %", "%", " kg", " mm", " USD", " €")
RULES = ("all", "all", "none", "none", "rows", "head", "head", "head", "frame")


def number_text(rng: random.Random) -> str:
    """A number as tables print it."""
    value = rng.choice((rng.uniform(0, 1), rng.uniform(0, 100), rng.lognormvariate(7, 3)))
    sign = rng.choice(("", "", "", "", "-", "−", "+"))
    pattern = rng.randrange(7)
    if pattern == 0:
        return f"{sign}{value:.{rng.randint(1, 4)}f}"
    if pattern == 1:
        return f"{sign}{value:,.0f}"
    if pattern == 2:
        return f"{value:,.2f}"
    if pattern == 3:
        return f"{value:.1f} ± {value * rng.random() * 0.3:.1f}"
    if pattern == 4:
        return f"{value % 100:.1f}%"
    if pattern == 5:
        return f"{int(value) % 2000} ({rng.uniform(0, 100):.1f})"
    return f"({value:,.0f})" if rng.random() < 0.3 else str(int(value) % 100000)


def _column(studio: Studio, rng: random.Random, lang: str) -> tuple[Column, str]:
    """A maker of cell texts of one sort, and the alignment that suits it."""
    sort = rng.random()
    if sort < 0.55:
        state = rng.getrandbits(32)
        unit = rng.choice(_UNITS)
        decimals, size = rng.randint(0, 3), rng.choice((1, 10, 100, 5000, 200000))
        plain = rng.random() < 0.6
        inner = random.Random(state)

        def figures() -> str:
            if not plain:
                return number_text(inner)
            return f"{inner.uniform(0, size):,.{decimals}f}{unit}"

        return figures, rng.choice(("right", "right", "center", "left"))
    if sort < 0.65:
        return (
            lambda: f"{rng.randint(1, 28):02d}/{rng.randint(1, 12):02d}/{rng.randint(1960, 2026)}",
            "left",
        )
    if sort < 0.75:
        letters = "ABCDEFGHJKLMNPRSTUVWXYZ0123456789-"
        return lambda: "".join(rng.choice(letters) for _ in range(rng.randint(3, 8))), "left"
    if sort < 0.8:
        return lambda: rng.choice(("Yes", "No", "x", "✓", "–", "N/A", "*", "+", "++")), "center"
    longest = rng.choice((1, 2, 3, 3, 9))
    return lambda: studio.words(rng, lang, rng.randint(1, longest)), rng.choice(
        ("left", "left", "center")
    )


def draw_table(
    studio: Studio,
    rng: random.Random,
    lang: str,
    *,
    rows: int | None = None,
    columns: int | None = None,
    full_width: bool | None = None,
) -> Block:
    """A table block of about `rows` by `columns` cells."""
    if lang == "en" and rng.random() < 0.25:
        table = _corpus_table(studio, rng, rows or rng.randint(2, 14), columns or rng.randint(2, 6))
        if table is not None:
            return Block(type="table", table=table)
    count = columns or rng.choice((2, 3, 3, 4, 4, 5, 5, 6, 7, 8))
    height = rows or rng.choice((2, 3, 4, 5, 6, 8, 10, 14, 20))
    makers = [_column(studio, rng, lang) for _ in range(count)]
    if rng.random() < 0.8:
        makers[0] = (lambda: studio.words(rng, lang, rng.randint(1, 3)), "left")
    grid = _body(studio, rng, lang, makers, height)
    grid = _heads(studio, rng, lang, count) + grid
    stretch = full_width if full_width is not None else rng.random() < 0.5
    widths = None
    if stretch:
        widths = tuple(rng.choice(("1fr", "1fr", "auto")) if i else "auto" for i in range(count))
        widths = (*widths[:-1], "1fr")
    table = Table(
        rows=tuple(tuple(row) for row in grid),
        align=tuple(align for _, align in makers),
        rules=rng.choice(RULES),
        inset_pt=rng.uniform(2, 7),
        widths=widths,
        shaded=rng.random() < 0.3,
    )
    return Block(type="table", table=table)


def _body(
    studio: Studio, rng: random.Random, lang: str, makers: list[tuple[Column, str]], height: int
) -> list[list[Cell | None]]:
    holes = rng.choice((0.0, 0.0, 0.05, 0.2))
    # Rows alike teach the reader to count rows and not to lose its place.
    alike = rng.random() < 0.08
    first = [Cell(text="" if rng.random() < holes else make()) for make, _ in makers]
    grid: list[list[Cell | None]] = []
    while len(grid) < height:
        if len(makers) > 2 and rng.random() < 0.06:
            group = studio.words(rng, lang, rng.randint(1, 3)).capitalize()
            span = len(makers) if rng.random() < 0.5 else 1
            row: list[Cell | None] = [Cell(text=group, columns=span)]
            row += [None] * (span - 1) + [Cell() for _ in range(len(makers) - span)]
            grid.append(row)
        if alike and rng.random() < 0.7:
            grid.append(list(first))
        else:
            grid.append([Cell(text="" if rng.random() < holes else make()) for make, _ in makers])
    if rng.random() < 0.15 and height > 3:
        _row_spans(rng, grid)
    return grid


def _row_spans(rng: random.Random, grid: list[list[Cell | None]]) -> None:
    """Joins runs of first-column cells."""
    y = 0
    while y < len(grid):
        size = min(rng.randint(1, 4), len(grid) - y)
        column = [grid[y + dy][0] for dy in range(size)]
        plain = all(cell is not None and cell.columns == 1 for cell in column)
        if size > 1 and plain and column[0] is not None and column[0].text:
            grid[y][0] = Cell(text=column[0].text, rows=size)
            for dy in range(1, size):
                grid[y + dy][0] = None
        y += size


def _heads(studio: Studio, rng: random.Random, lang: str, count: int) -> list[list[Cell | None]]:
    """No header row, one, or two with spans above."""
    draw = rng.random()
    if draw < 0.12:
        return []

    def name() -> str:
        return studio.words(rng, lang, rng.choice((1, 1, 1, 2, 3))).capitalize()

    lower: list[Cell | None] = [Cell(text=name(), header=True) for _ in range(count)]
    if rng.random() < 0.25:
        lower[0] = Cell(text="", header=True)
    if draw < 0.75 or count < 3:
        return [lower]
    upper: list[Cell | None] = []
    while len(upper) < count:
        span = min(rng.choice((1, 2, 2, 3)), count - len(upper))
        if span == 1:
            x = len(upper)
            upper.append(Cell(text=name(), header=True, rows=2))
            lower[x] = None
        else:
            upper += [Cell(text=name(), header=True, columns=span), *([None] * (span - 1))]
    return [upper, lower]


def _corpus_table(studio: Studio, rng: random.Random, rows: int, columns: int) -> Table | None:
    lines = [
        [cell.strip().replace("\\", "") for cell in line.strip().strip("|").split("|")]
        for line in studio.corpus.text(rng, lang="en", genre="table").splitlines()
        if line.strip().startswith("|")
    ]
    if len(lines) < 3:
        return None
    width = len(lines[0])
    body = [line for line in lines[2:] if len(line) == width]
    start = rng.randrange(max(1, len(body) - rows))
    picked = sorted(rng.sample(range(width), min(width, columns)))
    heads: list[Cell | None] = [Cell(text=lines[0][x][:28].strip(), header=True) for x in picked]
    grid = [heads] + [
        [Cell(text=line[x][:34].strip()) for x in picked] for line in body[start : start + rows]
    ]
    texts = [cell.text for row in grid for cell in row if cell]
    if len(grid) < 2 or not all(is_drawable(text) for text in texts):
        return None
    numeric = [all(_is_number(line[x]) for line in body[:5]) for x in picked]
    return Table(
        rows=tuple(tuple(row) for row in grid),
        align=tuple("right" if flag and rng.random() < 0.8 else "left" for flag in numeric),
        rules=rng.choice(RULES),
        inset_pt=rng.uniform(2, 6),
        shaded=rng.random() < 0.2,
    )


def _is_number(text: str) -> bool:
    return text.replace(".", "").replace("-", "").replace(",", "").isdigit()
