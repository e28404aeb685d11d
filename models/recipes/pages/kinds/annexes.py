"""Annexes of laws: empty forms of numbered fields, dotted lines, ruled boxes and small notes."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style
from ocria.models.recipes.pages.wear import DIGITAL, FINE, OFFICE, PRINTED

from .books import open_sheet
from .forms import tick_box

_DOTS = "#box(width: {}, text(fill: rgb(64,64,64), repeat[.]))"
_LINE = "#box(width: {}, stroke: (bottom: 0.5pt))"
_ANNEX = {
    "en": ("ANNEX", "APPENDIX", "SCHEDULE", "FORM", "Annex", "MODEL", "PART"),
    "de": ("ANHANG", "ANLAGE", "Anlage", "FORMBLATT", "MUSTER"),
    "fr": ("ANNEXE", "Annexe", "FORMULAIRE", "MODÈLE"),
    "es": ("ANEXO", "MODELO", "FORMULARIO"),
    "it": ("ALLEGATO", "MODULO"),
    "pt": ("ANEXO", "FORMULÁRIO"),
}
_LANGUAGES = ("en", "en", "en", "en", "de", "fr", "es", "it", "pt")


class _Annex:
    """An annex in the making; its parts return about the points of height that they take."""

    def __init__(self, studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look):
        self.studio, self.rng, self.manuscript, self.look = studio, rng, manuscript, look
        self.style = replace(look.style(), justify=False, before_pt=look.size_pt * 0.55)
        self.style = replace(self.style, after_pt=self.style.before_pt)
        self.line = rng.choice((_DOTS, _DOTS, _LINE))
        self.colon = rng.choice((":", ":", "", " :"))
        self.pattern = rng.choice(("{}.", "{}.", "{})", "({})", "{}", "{}.1."))
        self.number = rng.choice((0, 0, 0, rng.randint(1, 15)))
        self.notes: list[str] = []

    def phrase(self, low: int, high: int) -> str:
        text = self.studio.phrase(self.rng, self.look.lang, self.rng.randint(low, high))
        return text[0].upper() + text[1:]

    def mark(self) -> str:
        self.number += 1
        return self.pattern.format(self.number)

    def note(self) -> tuple[Run, ...]:
        """Now and then a raised mark whose note stands at the page's foot."""
        if self.rng.random() > 0.08 or len(self.notes) > 4:
            return ()
        label = str(len(self.notes) + 1)
        style = replace(self.style, size_pt=self.look.size_pt * 0.78, before_pt=1.5, after_pt=1.5)
        lead = Run(ink=f"({label})", style="super", truth=f"[^{label}]: ")
        block = Block(type="footnote", runs=(lead, Run(ink=" " + self.phrase(3, 14) + ".")))
        self.notes.append(self.manuscript.placed(block, style))
        return (Run(ink=f"({label})", style="super", truth=f"[^{label}]"),)

    def blank(self, width: str = "1fr") -> Run:
        return Run(ink=self.line.format(width), style="drawn", truth="")

    def place(self, kind: str, runs: tuple[Run, ...], style: Style | None = None) -> str:
        return self.manuscript.placed(Block(type=kind, runs=runs), style or self.style)

    def add(self, kind: str, text: str, **changes: object) -> None:
        style = replace(self.style, **changes)  # type: ignore[arg-type]
        self.manuscript.raw(self.place(kind, (Run(ink=text),), style))


def _title(annex: _Annex) -> float:
    rng, size = annex.rng, annex.look.size_pt
    word = rng.choice(_ANNEX[annex.look.lang])
    text = f"{word} {rng.choice(('I', 'II', 'III', 'IV', 'VI', 'A', 'B', '1', '2', '7', '12'))}"
    annex.add("h1", text, align="center", weight="bold", size_pt=size * rng.uniform(1.0, 1.3))
    if rng.random() < 0.5:
        annex.add("paragraph", f"({annex.phrase(2, 5)})", align="center")
    title = annex.phrase(3, 12)
    title = title.upper() if rng.random() < 0.5 else title
    annex.add("h2", title, align="center", weight=rng.choice(("bold", "regular")))
    return size * 9


def _numbered_fields(annex: _Annex) -> float:
    """A numbered label, the line to write on behind or below it, more lines below some."""
    rng, count, used = annex.rng, annex.rng.randint(2, 8), 0.0
    indent = rng.choice((0.0, 1.6, 2.2))
    for _ in range(count):
        label = f"{annex.mark()} {annex.phrase(1, 9)}"
        runs = (Run(ink=label + annex.colon), *annex.note())
        below = rng.random() < 0.3
        if not below:
            runs = (*runs, Run(ink=" "), annex.blank())
        style = replace(annex.style, hanging_em=indent)
        annex.manuscript.raw(annex.place("form_field", runs, style))
        more = rng.choice((1, 2)) if below else rng.choice((0, 0, 0, 1, 2))
        for _ in range(more):
            blank = annex.line.format("100%")
            annex.manuscript.raw(f"#block(above: 6pt, below: 6pt, width: 100%)[{blank}]")
        used += annex.look.size_pt * (2.4 + 1.5 * more)
    return used


def _boxed(annex: _Annex) -> float:
    """Ruled boxes side by side, a numbered label at the top of each, room below it."""
    rng, size = annex.rng, annex.look.size_pt
    small = replace(annex.style, size_pt=max(5.8, size * rng.uniform(0.75, 1.0)))
    small = replace(small, before_pt=1, after_pt=1, leading_em=0.4)
    used = 0.0
    for _ in range(rng.randint(1, 5)):
        count = rng.choice((1, 1, 2, 2, 3))
        cells = []
        for _ in range(count):
            parts = annex.place(
                "form_field",
                (Run(ink=f"{annex.mark()} {annex.phrase(1, 6)}"), *annex.note()),
                small,
            )
            for _ in range(rng.choice((0, 0, 0, 1, 2, 3))):
                if rng.random() < 0.5:
                    runs = (tick_box(rng, False, small.size_pt * 0.9), Run(ink=annex.phrase(1, 4)))
                else:
                    runs = (Run(ink=annex.phrase(1, 3) + annex.colon + " "), annex.blank())
                parts += annex.place("form_field", runs, small)
            cells.append(f"[{parts}#v({rng.uniform(3, 30):.0f}pt)]")
        columns = ", ".join(f"{rng.choice((1, 1, 2))}fr" for _ in range(count))
        annex.manuscript.raw(
            f"#block(above: 0pt, below: 0pt, breakable: false, grid(columns: ({columns},), "
            f"inset: 4pt, stroke: 0.5pt, {', '.join(cells)}))"
        )
        used += size * 6.5
    annex.manuscript.raw("#v(6pt)")
    return used + 8


def _checks(annex: _Annex) -> float:
    """A question and its choices, boxes before or behind the words."""
    rng, count = annex.rng, annex.rng.randint(2, 6)
    annex.add("paragraph", annex.phrase(5, 18) + annex.colon)
    behind = rng.random() < 0.2
    style = replace(annex.style, indent_pt=rng.choice((0.0, 14.0)), before_pt=3, after_pt=3)
    for index in range(count):
        box = tick_box(rng, rng.random() < 0.06, annex.look.size_pt * rng.uniform(0.8, 1.0))
        text = annex.phrase(2, 14)
        if behind:
            label = f"({'abcdefgh'[index]}) {text} "
            runs: tuple[Run, ...] = (Run(ink=label), Run(ink="0.8em", style="space"), box)
        else:
            runs = (box, Run(ink=text), *annex.note())
        annex.manuscript.raw(annex.place("form_field", runs, style))
    return (count * 2.0 + 3) * annex.look.size_pt


def _instructions(annex: _Annex) -> float:
    """Small directions, slanted or in brackets."""
    rng = annex.rng
    text = annex.phrase(8, 45) + "."
    size = annex.look.size_pt * rng.uniform(0.78, 1.0)
    text = f"({text})" if rng.random() < 0.4 else text
    annex.add("paragraph", text, size_pt=size, align=rng.choice(("left", "left", "center")))
    return size * 5


def _declaration(annex: _Annex) -> float:
    """A sentence with gaps, the place, the day and a signature."""
    rng = annex.rng
    runs: list[Run] = []
    for _ in range(rng.randint(1, 4)):
        runs += [Run(ink=annex.phrase(2, 9) + " "), annex.blank(f"{rng.randint(40, 140)}pt")]
        runs.append(Run(ink=" "))
    runs.append(Run(ink=annex.studio.phrase(rng, annex.look.lang, rng.randint(2, 9)) + "."))
    style = replace(annex.style, leading_em=0.9)
    annex.manuscript.raw(annex.place("paragraph", tuple(runs), style))
    return annex.look.size_pt * 9


def _signature(annex: _Annex) -> float:
    rng = annex.rng
    names = [annex.phrase(1, 3) for _ in range(rng.choice((1, 2, 2)))]
    names[-1] = rng.choice(("(Signature)", "Signature", "Stamp", names[-1]))
    small = replace(annex.style, size_pt=annex.look.size_pt * 0.85, align="center", before_pt=2)
    cells = ", ".join(
        f"[{annex.line.format('100%')}{annex.place('form_field', (Run(ink=name),), small)}]"
        for name in names
    )
    columns = "1fr, " * len(names)
    annex.manuscript.raw(f"#v(14pt)#grid(columns: ({columns}), gutter: 24pt, {cells})")
    return 50


def _heading(annex: _Annex) -> float:
    text = annex.phrase(1, 6)
    text = text.upper() if annex.rng.random() < 0.4 else text
    annex.add("h3", f"{annex.rng.choice(('', 'A. ', 'B. ', 'I. ', 'II. '))}{text}", weight="bold")
    return annex.look.size_pt * 2.6


_PARTS: tuple[Callable[[_Annex], float], ...] = (
    _numbered_fields, _boxed, _checks, _instructions, _declaration, _signature, _heading,
)  # fmt: skip


def annex(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """One page of an annex to fill in, next to nothing filled in."""
    lang = rng.choice(_LANGUAGES)
    look = Look.draw(studio, rng, lang, categories=(*TEXT, *SANS))
    look = replace(look, size_pt=rng.uniform(7.2, 10.5), leading_em=rng.uniform(0.4, 0.65))
    wide = width_px > height_px
    sheet = open_sheet(
        rng, width_px, height_px, lang, width_pt=rng.uniform(640, 840) if wide else None
    )
    manuscript = Manuscript(sheet=replace(sheet, hyphenate=False), family=look.body)
    if rng.random() < 0.6:
        running_parts(manuscript, studio, rng, look, studio.phrase(rng, lang, rng.randint(2, 6)))
    made = _Annex(studio, rng, manuscript, look)
    room = sheet.height_pt - sheet.margins_pt[0] - sheet.margins_pt[2] - 70
    room *= rng.choice((0.8, 1.5, 1.8, 1.8))
    if rng.random() < 0.75:
        room -= _title(made)
    weights = [rng.choice((0, 1, 2, 4)) for _ in _PARTS]
    weights[0] += 1
    while room > look.size_pt * 16:
        room -= rng.choices(_PARTS, weights)[0](made)
    if made.notes:
        rule = "#line(length: 25%, stroke: 0.5pt)" if rng.random() < 0.7 else ""
        manuscript.raw(f"#place(bottom, float: true)[{rule}{''.join(made.notes)}]")
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, DIGITAL, FINE, OFFICE, PRINTED)))
