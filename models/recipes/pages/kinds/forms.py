"""Forms to fill in: rules, boxes, combs and check boxes, mostly empty, among small instructions."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ocria.models.recipes.pages.blocks import INK_COLOUR, Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import WHITE, Manuscript, Style, grey
from ocria.models.recipes.pages.wear import DIGITAL, OFFICE, OLD

from .books import open_sheet
from .business import answer_text, labels_of

Part = Callable[["_Form"], float]


class _Form:
    """A form in the making; its parts return the points of height that they take."""

    def __init__(self, studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look):
        self.studio, self.rng, self.manuscript, self.look = studio, rng, manuscript, look
        self.style = replace(
            look.style(), justify=False, before_pt=look.size_pt * 0.5, after_pt=look.size_pt * 0.5
        )
        # What the fields of one form have in common.
        self.filled = rng.choice((0.0, 0.0, 0.15, 0.5, 0.9))
        self.colon = rng.choice((":", ":", ":", "", " :"))
        self.rule = rng.choice((_rule, _rule, _dots, _comb, _frame, _nothing))
        self.hand = studio.shelf.draw(rng, lang=look.lang, categories=("hand", "mono", "sans")).name
        self.numbered = rng.random() < 0.25
        self._number = 0

    def words(self, low: int, high: int) -> str:
        return self.studio.words(self.rng, self.look.lang, self.rng.randint(low, high))

    def label(self) -> str:
        known = self.rng.random() < 0.6
        text = (
            self.rng.choice(labels_of(self.look.lang)) if known else self.words(1, 4).capitalize()
        )
        self._number += 1
        return f"{self._number}. {text}" if self.numbered else text

    def answer(self) -> str:
        if self.rng.random() >= self.filled:
            return ""
        return answer_text(self.studio, self.rng, self.look.lang)[:40].strip()

    def placed(self, runs: tuple[Run, ...], style: Style, kind: str = "form_field") -> str:
        return self.manuscript.placed(Block(type=kind, runs=runs), style)

    def grid(self, cells: list[str], columns: str, gutter_pt: float = 10.0) -> None:
        inner = ", ".join(f"[{cell}]" for cell in cells)
        self.manuscript.raw(f"#grid(columns: ({columns}), gutter: {gutter_pt:.0f}pt, {inner})")


def _drawn(source: str, truth: str = "") -> Run:
    return Run(ink=source, style="drawn", truth=truth)


def _rule(rng: random.Random, width: str) -> Run:
    return _drawn(f"#box(width: {width}, stroke: (bottom: {rng.uniform(0.3, 0.9):.1f}pt))")


def _dots(rng: random.Random, width: str) -> Run:
    fill = "text(fill: rgb(64,64,64), repeat[.])"
    return _drawn(f"#box(width: {width}, {fill})")


def _comb(rng: random.Random, width: str) -> Run:
    """A box a character."""
    count, side = rng.randint(4, 14), rng.uniform(8, 12)
    box = f"#box(width: {side:.1f}pt, height: {side * 1.2:.1f}pt, stroke: 0.4pt)"
    return _drawn(
        f"#h(3pt)#box(baseline: 20%, stack(dir: ltr, ..range({count}).map(i => [{box}])))"
    )


def _frame(rng: random.Random, width: str) -> Run:
    return _drawn(
        f"#h(3pt)#box(width: {width}, height: {rng.uniform(11, 18):.0f}pt, baseline: 25%, "
        f"stroke: {rng.uniform(0.3, 0.9):.1f}pt)"
    )


def _nothing(rng: random.Random, width: str) -> Run:
    return _drawn("")


def tick_box(rng: random.Random, ticked: bool, side_pt: float) -> Run:
    """A check box; the truth of a ticked one is `[x] `, of an empty one `[ ] `."""
    stroke = f"stroke: 0.5pt + {INK_COLOUR}"
    cross = ""
    if ticked:
        lines = ((0, 0, 100, 100), (0, 100, 100, 0)) if rng.random() < 0.6 else (
            (10, 50, 40, 95), (40, 95, 110, -20),
        )  # fmt: skip
        cross = "".join(
            f"#place(top + left, line(start: ({a}%, {b}%), end: ({c}%, {d}%), stroke: 1pt))"
            for a, b, c, d in lines
        )
    shape = (
        f"#box(width: {side_pt:.1f}pt, height: {side_pt:.1f}pt, baseline: 10%, "
        f"radius: {rng.choice((0, 0, 0, 50))}%, {stroke})[{cross}]#h(0.4em)"
    )
    return _drawn(shape, "[x] " if ticked else "[ ] ")


def blank_form(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A page of a form: title, instructions, sections of fields of several sorts."""
    lang = rng.choice(("en", "en", "en", draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=(*SANS, *TEXT))
    look = replace(look, size_pt=rng.uniform(7, 11), justify=False, first_indent_em=0.0)
    sheet = open_sheet(rng, width_px, height_px, lang)
    sheet = replace(sheet, hyphenate=False)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    form = _Form(studio, rng, manuscript, look)
    if rng.random() < 0.4:
        running_parts(manuscript, studio, rng, look, form.words(1, 4))
    if rng.random() < 0.85:
        title = form.words(1, 6)
        look.heading(manuscript, title.upper() if rng.random() < 0.5 else title.capitalize(), 1)
    left = (sheet.height_pt - sheet.margins_pt[0] - sheet.margins_pt[2] - 50) * rng.uniform(0.8, 2)
    parts: tuple[Part, ...] = (
        _fields, _rows_of_fields, _boxed, _checks, _inline_checks, _small_print, _blanks_in_prose,
        _empty_table, _signatures, _instructions,
    )  # fmt: skip
    weights = (24, 18, 20, 9, 10, 14, 5, 4, 6, 6)
    chosen = rng.sample(parts, rng.randint(3, 8), counts=weights)
    while left > 30:
        if rng.random() < 0.35:
            left -= _section(form)
        left -= rng.choice(chosen)(form)
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, DIGITAL, OFFICE, OFFICE, OLD)))


def _section(form: _Form) -> float:
    """A heading, plain or as a bar across the page."""
    rng, look = form.rng, form.look
    title = form.words(1, 5)
    title = title.upper() if rng.random() < 0.5 else title.capitalize()
    if rng.random() < 0.3:
        title = f"{rng.choice(('Section', 'Part', 'Teil'))} {rng.choice('ABCDE123456')}: {title}"
    kind = rng.random()
    if kind < 0.5:
        look.heading(form.manuscript, title, rng.choice((2, 3)))
        return look.size_pt * 3.6
    dark = kind < 0.75
    bar = Style(
        size_pt=look.size_pt, weight="bold", base=WHITE if dark else look.ink, before_pt=6,
        after_pt=6, fill=grey(rng.choice((24, 64, 96)) if dark else rng.choice((208, 224))),
        family=look.head.name, leading_em=0.5,
    )  # fmt: skip
    form.manuscript.add(Block(type="h3", runs=(Run(ink=title),)), bar)
    return look.size_pt * 2.2 + 8


def _field_runs(form: _Form, width: str) -> tuple[Run, ...]:
    """A label, then its answer or the place for one."""
    answer = form.answer()
    label = f"{form.label()}{form.colon}"
    if answer:
        return (Run(ink=f"{label} {answer}"),)
    return (Run(ink=f"{label} "), form.rule(form.rng, width))


def _fields(form: _Form) -> float:
    """Fields one below another."""
    width = form.rng.choice(("1fr", "1fr", "60%", "40%"))
    count = form.rng.randint(2, 8)
    gap = form.look.size_pt * form.rng.uniform(0.2, 0.9)
    style = replace(form.style, before_pt=gap, after_pt=gap)
    for _ in range(count):
        form.manuscript.raw(form.placed(_field_runs(form, width), style))
    return count * (form.look.size_pt * 1.3 + gap * 1.4)


def _rows_of_fields(form: _Form) -> float:
    """Two to four fields a row."""
    rows = form.rng.randint(1, 5)
    for _ in range(rows):
        count = form.rng.choice((2, 2, 2, 3, 3, 4))
        cells = [form.placed(_field_runs(form, "1fr"), form.style) for _ in range(count)]
        columns = ", ".join(f"{form.rng.choice((1, 1, 2, 3))}fr" for _ in range(count))
        form.grid(cells, columns)
        form.manuscript.raw("#v(-4pt)")
    return rows * form.look.size_pt * 3.4


def _boxed(form: _Form) -> float:
    """A ruled grid of fields: a small label in a cell's corner, its answer or nothing below."""
    rng, look = form.rng, form.look
    small = replace(form.style, size_pt=max(5.5, look.size_pt * 0.75), leading_em=0.35)
    small = replace(small, before_pt=1, after_pt=1)
    row_pt = look.size_pt * rng.uniform(2.2, 3.6)
    rows = rng.randint(1, 6)
    for _ in range(rows):
        count = rng.choice((1, 2, 2, 3, 3, 4))
        space = f"#v({max(0.0, row_pt - small.size_pt * 1.6):.1f}pt)"
        cells = [_boxed_cell(form, small) + space for _ in range(count)]
        columns = ", ".join(f"{rng.choice((1, 1, 2, 3))}fr" for _ in range(count))
        inner = ", ".join(f"[{cell}]" for cell in cells)
        form.manuscript.raw(
            f"#block(above: 0pt, below: 0pt, breakable: false, grid(columns: ({columns},), "
            f"inset: 2.5pt, stroke: 0.5pt, {inner}))"
        )
    form.manuscript.raw("#v(6pt)")
    return rows * row_pt + 8


def _boxed_cell(form: _Form, small: Style) -> str:
    answer = form.answer()[:22].strip()
    label = form.label()
    if form.rng.random() < 0.12:
        ticks: tuple[Run, ...] = (Run(ink=label + " "),)
        for _ in range(2):
            ticks += (_tick(form, small.size_pt), Run(ink=form.words(1, 1) + " "))
        return form.placed(ticks, small)
    runs: tuple[Run, ...] = (Run(ink=label),)
    if answer:
        # The answer stands below the label, and is of the same field.
        runs = (Run(ink=f"{label}: " if form.colon else f"{label} "), _drawn("#linebreak()"))
        runs += (Run(ink=answer),)
    return form.placed(runs, small)


def _tick(form: _Form, size_pt: float) -> Run:
    ticked = form.rng.random() < max(0.15, form.filled * 0.5)
    return tick_box(form.rng, ticked, size_pt * form.rng.uniform(0.75, 1.1))


def _checks(form: _Form) -> float:
    """Check boxes one below another, in one to three columns."""
    rng = form.rng
    if rng.random() < 0.7:
        form.look.paragraph(form.studio, form.manuscript, form.words(4, 14))
    columns = rng.choice((1, 1, 2, 3))
    count = rng.randint(2, 5) * columns
    style = replace(form.style, before_pt=3, after_pt=3)
    longest = 9 if columns == 1 else 3
    cells = [
        form.placed((_tick(form, style.size_pt), Run(ink=form.words(1, longest))), style)
        for _ in range(count)
    ]
    form.grid(cells, ", ".join(["1fr"] * columns) + ",", 5)
    return count / columns * (form.look.size_pt * 1.2 + 8) + form.look.size_pt * 3


def _inline_checks(form: _Form) -> float:
    """A question with its choices behind it, on one line: one field."""
    count = form.rng.randint(1, 4)
    for _ in range(count):
        runs: tuple[Run, ...] = (Run(ink=f"{form.label()}{form.colon or ':'} "),)
        for _ in range(form.rng.randint(2, 4)):
            runs += (_tick(form, form.style.size_pt), Run(ink=form.words(1, 2) + " "))
            runs += (Run(ink="1.2em", style="space"),)
        form.manuscript.raw(form.placed(runs, form.style))
    return count * form.look.size_pt * 2.4


def _small_print(form: _Form) -> float:
    """Instructions and conditions in small type."""
    look = replace(form.look, size_pt=max(5.8, form.look.size_pt * form.rng.uniform(0.7, 0.9)))
    look = replace(look, leading_em=0.45, gap_pt=4.0, justify=form.rng.random() < 0.5)
    budget = form.rng.uniform(120, 700)
    look.fill(form.studio, form.rng, form.manuscript, budget)
    across = (form.manuscript.sheet.width_pt - 90) / (look.size_pt * 0.5)
    return (budget / across + 3) * look.size_pt * 1.3


def _instructions(form: _Form) -> float:
    """Numbered or lettered directions."""
    count = form.rng.randint(2, 6)
    pattern = form.rng.choice(("{n}.", "({n})", "{a}.", "({a})", "-"))
    for place in range(count):
        mark = pattern.format(n=place + 1, a="abcdefgh"[place])
        form.look.item(form.studio, form.manuscript, form.words(4, 24), mark=mark)
    return count * form.look.size_pt * 2.6


def _blanks_in_prose(form: _Form) -> float:
    """A declaration with blanks in its sentences, which are not written."""
    runs: list[Run] = []
    for _ in range(form.rng.randint(2, 5)):
        runs += [Run(ink=form.words(2, 9) + " ")]
        runs += [_rule(form.rng, f"{form.rng.randint(40, 150)}pt"), Run(ink=" ")]
    runs.append(Run(ink=form.words(1, 4) + "."))
    style = replace(form.style, leading_em=0.9)
    form.manuscript.add(Block(type="paragraph", runs=tuple(runs)), style)
    return form.look.size_pt * 8


def _empty_table(form: _Form) -> float:
    """A header row and a few rows to write in."""
    rng = form.rng
    columns, rows = rng.randint(2, 6), rng.randint(1, 7)
    head = tuple(Cell(text=form.words(1, 2).capitalize(), header=True) for _ in range(columns))
    body = tuple(
        tuple(Cell(text=form.answer()[:14].strip()) for _ in range(columns)) for _ in range(rows)
    )
    inset = rng.uniform(3, 6)
    table = Table(
        rows=(head, *body), align=("left",) * columns, rules="all", inset_pt=inset,
        widths=("1fr",) * columns, shaded=rng.random() < 0.5,
    )  # fmt: skip
    form.manuscript.add(Block(type="table", table=table), form.style)
    return (rows + 2) * (form.look.size_pt + inset * 1.6)


def _signatures(form: _Form) -> float:
    """Rules to sign on, their names below them."""
    rng = form.rng
    count = rng.choice((1, 2, 2, 3))
    names = [form.words(1, 3).capitalize() for _ in range(count)]
    names[0] = rng.choice(("Signature", "(Signature)", "Signature of applicant", names[0]))
    names[-1] = rng.choice(("Date", "(Date)", names[-1]))
    small = replace(form.style, size_pt=form.style.size_pt * 0.85, before_pt=1, after_pt=1)
    rule = "#line(length: 100%, stroke: 0.5pt)#v(-6pt)"
    cells = [rule + form.placed((Run(ink=name),), small) for name in names]
    form.manuscript.raw(f"#v({rng.uniform(14, 30):.0f}pt)")
    form.grid(cells, ", ".join(["1fr"] * count) + ",", 20)
    return 60
