"""Documentation as it leaves a word processor: headings, prose, nested lists, small tables."""

from __future__ import annotations

import random
import string
from collections.abc import Callable
from dataclasses import dataclass, replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.fonts import MONO, SANS, SERIF
from ocria.models.recipes.pages.inline import runs_of
from ocria.models.recipes.pages.studio import BULLETS, Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style
from ocria.models.recipes.pages.wear import DIGITAL, OFFICE

from .books import open_sheet
from .figures import caption, figure_block
from .slides import listing
from .tables import draw_table

_ROMAN = ("i", "ii", "iii", "iv", "v", "vi", "vii", "viii", "ix", "x", "xi", "xii")
# Marks of one level of a list; {n} is a number, {a} a letter, {i} a small roman one.
_MARKS = ("{n}.", "{n}.", "{n})", "({n})", "{a}.", "{a})", "({a})", "{i}.", "({i})", "{i})", "{A}.")
_DEEPEST = 4
TextMaker = Callable[[int], tuple[Run, ...]]


@dataclass(frozen=True, kw_only=True)
class _ListLook:
    """How the lists of one document are set: a mark a level (`-` is a bullet), their bullets."""

    marks: tuple[str, ...]
    bullets: tuple[str, ...]
    step_em: float
    gap_pt: float
    hang_em: float

    @staticmethod
    def draw(rng: random.Random, size_pt: float) -> _ListLook:
        bulleted = rng.random() < 0.5
        return _ListLook(
            marks=tuple(
                "-" if rng.random() < (0.85 if bulleted else 0.3) else rng.choice(_MARKS)
                for _ in range(_DEEPEST)
            ),
            bullets=tuple(rng.choice(BULLETS) for _ in range(_DEEPEST)),
            step_em=rng.uniform(1.2, 2.8),
            gap_pt=size_pt * rng.choice((0.25, 0.5, 0.5, 0.9)),
            hang_em=rng.choice((0.0, 1.2, 1.5, 1.5, 2.0)),
        )

    def mark(self, level: int, place: int) -> str:
        letter = string.ascii_lowercase[(place - 1) % 26]
        roman = _ROMAN[(place - 1) % len(_ROMAN)]
        return self.marks[level - 1].format(n=place, a=letter, A=letter.upper(), i=roman)


def manual(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A page of a handbook or a sample file: every sort of list, small tables, prose between."""
    lang = rng.choice(("en", "fr", "de", draw_language(rng), draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=SANS + SERIF)
    look = replace(look, size_pt=rng.uniform(8.5, 13), justify=rng.random() < 0.3)
    sheet = open_sheet(rng, width_px, height_px, lang)
    sheet = replace(sheet, hyphenate=rng.random() < 0.2)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.4:
        running_parts(manuscript, studio, rng, look, studio.words(rng, lang, 3))
    lists = _ListLook.draw(rng, look.size_pt)
    level, number = rng.choice((1, 1, 2)), rng.randint(1, 9)
    numbered = rng.random() < 0.35
    budget = look.capacity(sheet) * rng.uniform(0.5, 1.3)
    while budget > 0:
        if rng.random() < 0.75:
            title = _title(studio, rng, lang)
            look.heading(manuscript, f"{number}. {title}" if numbered else title, level)
            level, number = rng.choice((2, 2, 3)), number + 1
            budget -= 150
        for part in rng.choices((_prose, _list, _table, _figure, _code), (34, 46, 16, 3, 4), k=2):
            budget -= part(studio, rng, manuscript, look, lists)
    wear = DIGITAL if rng.random() < 0.7 else OFFICE
    return Draft(manuscript=manuscript, pages=2, wear=wear)


def _title(studio: Studio, rng: random.Random, lang: str) -> str:
    title = studio.words(rng, lang, rng.randint(1, 5)).capitalize()
    return f"{title} {rng.randint(1, 9)}" if rng.random() < 0.2 else title


def _sentences(studio: Studio, rng: random.Random, lang: str) -> list[str]:
    story = studio.story(rng, lang=lang)
    return [p.text for p in story.passages if p.kind in ("paragraph", "item")]


def _prose(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook
) -> float:
    shown = 0
    for text in _sentences(studio, rng, look.lang)[: rng.randint(1, 3)]:
        shown += look.paragraph(studio, manuscript, text) + 40
    return shown


def _makers(studio: Studio, rng: random.Random, lang: str, look: Look) -> list[TextMaker]:
    """Sorts of item text, from ones that differ in a number only to ones of several lines."""
    stem = studio.words(rng, lang, rng.randint(1, 2)).capitalize()
    frame = studio.words(rng, lang, rng.randint(3, 7)).split()
    texts = _sentences(studio, rng, lang) or [stem]
    styles = look.body.styles

    def counted(place: int) -> tuple[Run, ...]:
        return (Run(ink=f"{stem} {place}"),)

    def lettered(place: int) -> tuple[Run, ...]:
        return (Run(ink=f"{stem} {string.ascii_uppercase[(place - 1) % 26]}"),)

    def one_word_changed(place: int) -> tuple[Run, ...]:
        words = list(frame)
        words[rng.randrange(len(words))] = studio.words(rng, lang, 1)
        return (Run(ink=" ".join(words)),)

    def same(place: int) -> tuple[Run, ...]:
        return (Run(ink=stem),)

    def words(place: int) -> tuple[Run, ...]:
        return (Run(ink=studio.words(rng, lang, rng.randint(1, 6))),)

    def prose(place: int) -> tuple[Run, ...]:
        text = rng.choice(texts)
        runs = runs_of(text, {}, styles=styles) if len(text) < 700 else None
        return runs or words(place)

    def term(place: int) -> tuple[Run, ...]:
        name = studio.words(rng, lang, rng.randint(1, 2)).capitalize()
        bold = "bold" if "b" in styles and rng.random() < 0.7 else "plain"
        link = rng.choice((": ", " – ", ". "))
        return (Run(ink=name, style=bold), Run(ink=link), *prose(place))

    def option(place: int) -> tuple[Run, ...]:
        flag = rng.choice(("--", "-", "")) + studio.words(rng, "en", 1).lower()
        return (Run(ink=flag, style="code"), Run(ink=" "), *words(place))

    return [counted, counted, lettered, one_word_changed, same, words, prose, prose, term, option]


def _list(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook
) -> float:
    """One list, nested now and then; returns the characters it takes."""
    if rng.random() < 0.4:
        lists = _ListLook.draw(rng, look.size_pt)
    return _level(studio, rng, manuscript, look, lists, 1) + 60


def _level(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook,
    level: int,
) -> float:  # fmt: skip
    makers = _makers(studio, rng, look.lang, look)
    usual = rng.choice(makers)
    shown = 0.0
    nesting = rng.choice((0.0, 0.15, 0.35)) if level < _DEEPEST else 0.0
    # Lists that a paragraph interrupts go on with the next number.
    first = rng.choice((1, 1, 1, 1, 1, rng.randint(2, 9)))
    for place in range(first, first + rng.choice((2, 2, 3, 3, 4, 5, 8))):
        maker = usual if rng.random() < 0.75 else rng.choice(makers)
        runs = maker(place)
        _item(manuscript, look, lists, runs, level=level, place=place)
        shown += sum(len(run.ink) for run in runs) + 45
        if rng.random() < nesting:
            shown += _level(studio, rng, manuscript, look, lists, level + 1)
    return shown


def _item(
    manuscript: Manuscript, look: Look, lists: _ListLook, runs: tuple[Run, ...], *, level: int,
    place: int,
) -> None:  # fmt: skip
    mark = lists.mark(level, place)
    printed = lists.bullets[level - 1] if mark == "-" else mark
    lead = (Run(ink=printed, truth=f"{mark} "), Run(ink="0.6em", style="space"))
    style = replace(
        look.style(), hanging_em=lists.hang_em, before_pt=lists.gap_pt, after_pt=lists.gap_pt,
        indent_pt=look.size_pt * (0.5 + lists.step_em * (level - 1)),
    )  # fmt: skip
    block = Block(type="list_item", runs=lead + runs, splittable=True, level=level)
    manuscript.add(block, style)


def _table(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook
) -> float:
    """A small table; half of them of cells that differ in a number only."""
    if rng.random() < 0.25:
        caption(studio, rng, manuscript, look, rng.choice(("Table", "Tableau", "Tabelle")))
    rows, columns = rng.randint(2, 7), rng.randint(2, 5)
    if rng.random() < 0.5:
        block = draw_table(studio, rng, look.lang, rows=rows, columns=columns)
    else:
        block = _plain_grid(studio, rng, look.lang, rows, columns)
    style = replace(
        look.style(), justify=False, leading_em=0.5, align=rng.choice(("left", "left", "center")),
        before_pt=look.size_pt, after_pt=look.size_pt,
    )  # fmt: skip
    manuscript.add(block, style)
    return rows * 90 + 60


def _plain_grid(studio: Studio, rng: random.Random, lang: str, rows: int, columns: int) -> Block:
    stem = studio.words(rng, lang, 1).capitalize()
    cell_text = rng.choice(
        (
            lambda y, x: f"{stem} {y}.{x}",
            lambda y, x: f"{stem} {y * columns + x}",
            lambda y, x: str(rng.randint(0, 99)),
            lambda y, x: studio.words(rng, lang, 1),
        )
    )
    headed = rng.random() < 0.75
    head = studio.words(rng, lang, 1).capitalize()
    named = rng.random() < 0.5
    top = tuple(
        Cell(text=f"{head} {x + 1}" if named else studio.words(rng, lang, 1), header=True)
        for x in range(columns)
    )
    body = tuple(
        tuple(Cell(text=cell_text(y, x)) for x in range(columns)) for y in range(1, rows + 1)
    )
    table = Table(
        rows=(top, *body) if headed else body,
        align=(rng.choice(("left", "left", "center")),) * columns,
        rules=rng.choice(("all", "all", "all", "rows", "head")),
        inset_pt=rng.uniform(2.5, 6),
        widths=("1fr",) * columns if rng.random() < 0.5 else None,
        shaded=headed and rng.random() < 0.4,
    )
    return Block(type="table", table=table)


def _figure(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook
) -> float:
    figure_block(studio, rng, manuscript, look)
    return 600


def _code(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, lists: _ListLook
) -> float:
    """A few lines of a program, framed."""
    family = studio.shelf.draw(rng, lang="en", categories=MONO)
    block = listing(studio, rng, rng.randint(2, 6))
    if block is None:
        return 0
    size = look.size_pt * 0.9
    style = Style(size_pt=size, family=family.name, frame=True, before_pt=8, after_pt=8)
    manuscript.add(block, style)
    return 400
