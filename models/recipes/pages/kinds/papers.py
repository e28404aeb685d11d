"""Scientific papers and mathematics: title, authors, abstract, formulas, references."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.algebra import Maths, made_up, steps, with_growing_brackets
from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.fonts import SERIF
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style, quoted

from .books import open_sheet
from .figures import caption, figure_block
from .science import science_table
from .tables import draw_table


def formula_block(
    studio: Studio, rng: random.Random, *, longest: int = 160, tall: bool = True
) -> Block:
    """A display formula no longer than `longest` LaTeX characters, of one line where not `tall`."""
    kind = rng.random()
    if kind < 0.42 and longest > 40:
        made = made_up(rng, longest=longest, tall=tall)
    elif kind < 0.58 and longest > 110 and tall and studio.corpus.equations:
        made = steps(rng, rng.sample(studio.corpus.equations, rng.choice((2, 2, 3, 4))))
    else:
        made = _found(studio, rng, longest)
    if len(made.latex) > 1.5 * longest:
        made = _found(studio, rng, longest)
    return Block(type="formula", latex=made.latex, runs=(Run(ink=made.typst, style="math"),))


def _found(studio: Studio, rng: random.Random, longest: int) -> Maths:
    """A formula of the list, as long as displays are: most of the list is shorter."""
    wanted = min(rng.lognormvariate(3.9, 0.6), longest)
    found = [rng.choice(studio.corpus.formula_list) for _ in range(6)]
    fitting = [pair for pair in found if 6 < len(pair[0]) <= longest]
    while not fitting:
        pair = rng.choice(studio.corpus.formula_list)
        fitting = [pair] if 6 < len(pair[0]) <= longest else []
    latex, typst = min(fitting, key=lambda pair: abs(len(pair[0]) - wanted))
    return Maths(latex=latex, typst=with_growing_brackets(typst) if rng.random() < 0.6 else typst)


def set_maths_face(studio: Studio, rng: random.Random, manuscript: Manuscript) -> None:
    """Sets the document's formulas in another face than Computer Modern, now and then."""
    if studio.shelf.maths and rng.random() < 0.35:
        name = quoted(rng.choice(studio.shelf.maths))
        manuscript.raw(f"#show math.equation: set text(font: {name})")


def with_formulas(studio: Studio, rng: random.Random, text: str) -> str:
    """A paragraph with a few short formulas between its words."""
    if set(text) & set("$*_`[]\\"):
        return text
    words = text.split()
    for _ in range(rng.randint(1, 1 + len(words) // 14)):
        latex, _ = rng.choice(studio.corpus.formula_list)
        if len(latex) <= 36:
            words.insert(rng.randrange(len(words) + 1), f"${latex}$")
    return " ".join(words)


def _numbered(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """A display formula, half of them with an equation number, which is a block of its own."""
    style = replace(look.style(), align="center", justify=False, before_pt=7, after_pt=7)
    block = formula_block(studio, rng, longest=90 if manuscript.sheet.columns > 1 else 170)
    if rng.random() < 0.5:
        manuscript.add(block, style)
        return
    source = manuscript.placed(block, style)
    number = rng.choice((f"({rng.randint(1, 60)})", f"({rng.randint(1, 9)}.{rng.randint(1, 30)})"))
    label = manuscript.inline(Block(type="other", runs=(Run(ink=number),)), look.style())
    manuscript.raw(
        "#grid(columns: (1fr, auto), align: (center + horizon, right + horizon), "
        f"[{source}], [{label}])"
    )


def _front(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> str:
    """Title, authors, affiliations and abstract."""
    centre = replace(look.style(), align="center", justify=False)
    names = studio.names(rng, "en")
    title = studio.words(rng, "en", rng.randint(4, 12)).capitalize()
    authors = ", ".join(names.name() for _ in range(rng.randint(1, 5)))
    place = f"{names.company()}, {names.city()}"
    parts = [
        manuscript.placed(
            Block(type="h1", runs=(Run(ink=title),)),
            Style(size_pt=look.size_pt * 1.7, align="center", weight="bold", leading_em=0.5),
        ),
        manuscript.placed(Block(type="paragraph", runs=(Run(ink=authors),)), centre),
        manuscript.placed(Block(type="paragraph", runs=(Run(ink=place),)), centre),
    ]
    return "".join(parts)


def paper(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A paper page in one or two columns."""
    look = replace(
        Look.draw(studio, rng, "en", categories=(*SERIF, "serif", "sans")),
        justify=rng.random() < 0.85,
    )
    columns = rng.choice((1, 2, 2, 2))
    if columns == 2:
        look = replace(look, size_pt=min(look.size_pt, 9.6))
    sheet = open_sheet(rng, width_px, height_px, "en", columns=columns)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    set_maths_face(studio, rng, manuscript)
    if rng.random() < 0.5:
        running_parts(manuscript, studio, rng, look, studio.words(rng, "en", 5))
    if rng.random() < 0.4:
        front = _front(studio, rng, manuscript, look)
        spanning = columns > 1
        manuscript.raw(f'#place(top, scope: "parent", float: true)[{front}]' if spanning else front)
        if rng.random() < 0.7:
            look.heading(manuscript, "Abstract", 2)
    budget = look.capacity(sheet) * rng.uniform(0.6, 1.9)
    section = rng.randint(1, 6)
    while budget > 0:
        story = studio.story(
            rng, lang="en", genre=rng.choice(("scientific", "scientific", "textbook", "medical"))
        )
        if rng.random() < 0.5:
            look.heading(
                manuscript,
                f"{section} {studio.words(rng, 'en', rng.randint(1, 4)).capitalize()}",
                2,
            )
            section += 1
        for passage in story.passages[: rng.randint(2, 8)]:
            if passage.kind == "paragraph" and rng.random() < 0.15:
                passage = replace(passage, text=with_formulas(studio, rng, passage.text))
            budget -= look.passage(studio, manuscript, passage) + 15
            if rng.random() < 0.12:
                _numbered(studio, rng, manuscript, look)
                budget -= 200
            if rng.random() < 0.03:
                figure_block(studio, rng, manuscript, look)
                budget -= 600
        if rng.random() < 0.15:
            caption(studio, rng, manuscript, look, "Table")
            small = replace(
                look.style(), size_pt=look.size_pt * 0.85, align="center", justify=False
            )
            columns_shown = rng.randint(2, 4 if columns == 2 else 7)
            height = rng.randint(3, 9)
            if rng.random() < 0.6:
                table = science_table(studio, rng, height, min(columns_shown, 6 // columns))
            else:
                table = draw_table(studio, rng, "en", columns=columns_shown, rows=height)
            manuscript.add(table, small)
            budget -= 500
    if rng.random() < 0.25:
        _references(studio, rng, manuscript, look)
    return Draft(manuscript=manuscript, pages=2)


def _references(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    look.heading(manuscript, "References", 2)
    numbered = rng.random() < 0.7
    for index in range(1, rng.randint(5, 24)):
        names = studio.names(rng, "en")
        authors = ", ".join(
            f"{names.last_name()} {names.first_name()[0]}." for _ in range(rng.randint(1, 4))
        )
        text = (
            f"{authors} {studio.words(rng, 'en', rng.randint(4, 11)).capitalize()}. "
            f"{studio.words(rng, 'en', 2).title()}, {rng.randint(1, 99)}({rng.randint(1, 12)}):"
            f"{rng.randint(1, 500)}–{rng.randint(501, 990)}, {rng.randint(1950, 2026)}."
        )
        mark = f"[{index}]" if numbered else "-"
        if numbered or rng.random() < 0.2:
            look.item(studio, manuscript, text, mark=mark)
        else:
            look.paragraph(studio, manuscript, text)


def maths(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Mathematical prose with many display formulas, for reading formulas in context."""
    look = Look.draw(studio, rng, "en", categories=SERIF)
    sheet = open_sheet(rng, width_px, height_px, "en")
    manuscript = Manuscript(sheet=sheet, family=look.body)
    set_maths_face(studio, rng, manuscript)
    if rng.random() < 0.4:
        running_parts(manuscript, studio, rng, look, studio.words(rng, "en", 3))
    budget = look.capacity(sheet) * rng.uniform(0.3, 1.2)
    while budget > 0:
        story = studio.story(rng, lang="en", genre="scientific")
        for passage in story.passages[: rng.randint(1, 4)]:
            budget -= look.passage(studio, manuscript, passage) + 15
        # Most scientific paragraphs hold a formula that the list lacks, and cannot be set.
        for passage in studio.story(rng, lang="en").passages[: rng.randint(0, 3)]:
            if passage.kind == "paragraph":
                text = with_formulas(studio, rng, passage.text[: rng.randint(80, 900)])
                budget -= look.paragraph(studio, manuscript, text) + 15
        for _ in range(rng.choice((1, 1, 2, 2, 3, 5))):
            _numbered(studio, rng, manuscript, look)
            budget -= 180
    return Draft(manuscript=manuscript)
