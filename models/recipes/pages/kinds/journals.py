"""Opening pages of journal papers, and columns of text with boxes, sidebars and insets."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language, is_drawable
from ocria.models.recipes.pages.fonts import SANS, SERIF
from ocria.models.recipes.pages.studio import Draft, Look, Studio, running_parts
from ocria.models.recipes.pages.typeset import Manuscript, Style, grey
from ocria.models.recipes.pages.wear import DIGITAL, FINE, OFFICE, PRINTED

from .books import open_sheet
from .figures import figure_block, figure_source
from .science import science_table

_UNITS = (
    "Department of {}", "School of {}", "Institute for {}", "Laboratory of {}", "Division of {}",
    "Faculty of {}", "Centre for {} Research", "{} Unit", "Section of {}", "Research Group {}",
)  # fmt: skip
_FIELDS = (
    "Physics", "Surgery", "Biology", "Chemistry", "Mathematics", "Computer Science", "Medicine",
    "Epidemiology", "Public Health", "Neurology", "Economics", "Geology", "Pharmacology",
    "Civil Engineering", "Psychology", "Statistics", "Electrical Engineering", "Genetics",
)  # fmt: skip
_KINDS = (
    "Original article", "RESEARCH ARTICLE", "Review", "ORIGINAL RESEARCH", "Short communication",
    "Research", "CASE REPORT", "Letter to the editor", "Article", "REVIEW ARTICLE", "Open Access",
)  # fmt: skip
_PARTS = (
    ("Background", "Methods", "Results", "Conclusions"), ("Objective", "Design", "Results"),
    ("Purpose", "Methods", "Results", "Conclusion"), ("Aims", "Methods and results", "Conclusion"),
)  # fmt: skip
_SECTIONS = (
    "1. Introduction", "Introduction", "INTRODUCTION", "I. INTRODUCTION", "1 Introduction",
    "Background", "2. Methods", "Materials and methods", "METHODS", "2 Related Work", "Results",
)  # fmt: skip
_BOX_TITLES = (
    "Key points", "Summary", "What is known", "Box 1", "At a glance", "In brief", "Highlights",
    "Learning objectives", "Facts", "Contents", "In this issue", "Note", "Key messages", "Tips",
)  # fmt: skip


def _set(manuscript: Manuscript, kind: str, text: str | tuple[Run, ...], style: Style) -> str:
    runs = (Run(ink=text),) if isinstance(text, str) else text
    return manuscript.placed(Block(type=kind, runs=runs), style)


def _heavy(look: Look) -> str:
    """Bold, where the face has it: a mark that the page does not show is not truth."""
    return "bold" if "b" in look.body.styles else "plain"


def _capital(text: str) -> str:
    return text[0].upper() + text[1:]


def _inner(manuscript: Manuscript) -> Manuscript:
    """A manuscript of its own source whose blocks are numbered with the outer one's."""
    return Manuscript(sheet=manuscript.sheet, family=manuscript.family, blocks=manuscript.blocks)


def _person(studio: Studio, rng: random.Random) -> str:
    names = studio.names(rng, rng.choice(("en", "en", "de", "fr", "es", "pl", "it")))
    first, last = names.first_name(), names.last_name()
    shown = rng.choice((f"{first} {last}", f"{first[0]}. {last}", f"{first} {last[0]}. {last}"))
    return shown if is_drawable(shown) else "J. M. Low"


def _authors(studio: Studio, rng: random.Random) -> tuple[tuple[Run, ...], int]:
    """Names with raised marks; the marks refer to as many affiliations."""
    places = rng.choice((1, 1, 2, 2, 3, 4))
    letters = rng.random() < 0.3
    marked = places > 1 or rng.random() < 0.4
    runs: list[Run] = []
    count = rng.randint(1, 9)
    degree = rng.random() < 0.15
    for index in range(count):
        name = _person(studio, rng) + (rng.choice((", MD", ", PhD", ", MD, PhD")) if degree else "")
        name = name.upper() if letters and rng.random() < 0.3 else name
        runs.append(Run(ink=name))
        if marked:
            numbers = sorted(rng.sample(range(places), rng.choice((1, 1, 1, min(2, places)))))
            mark = ",".join("abcdefgh"[n] if letters else str(n + 1) for n in numbers)
            if index == 0 and rng.random() < 0.5:
                mark += rng.choice(("*", ",*", "†"))
            runs.append(Run(ink=mark, style="super"))
        if index < count - 1:
            last = index == count - 2
            runs.append(Run(ink=rng.choice((" and ", ", and ", " & ", ", ")) if last else ", "))
    return tuple(runs), places if marked else 0


def _affiliation(studio: Studio, rng: random.Random) -> str:
    names = studio.names(rng, "en")
    unit = rng.choice(_UNITS).format(rng.choice(_FIELDS))
    where = rng.choice(
        (
            f"University of {names.city()}", f"{names.last_name()} University",
            f"{names.last_name()} Hospital", f"{names.city()} Institute of Technology",
        )
    )  # fmt: skip
    city = rng.choice((f"{names.city()}", f"{names.postcode()} {names.city()}"))
    text = f"{unit}, {where}, {city}, {rng.choice(('USA', 'UK', 'Germany', 'China', 'Italy'))}"
    return text if is_drawable(text) else "Department of Physics, London, UK"


def _mail(studio: Studio, rng: random.Random) -> str:
    names = studio.names(rng, "en")
    label = rng.choice(("E-mail: ", "Email: ", "e-mail address: ", "", "Corresponding author. "))
    return label + names.email()


def _dates(rng: random.Random) -> str:
    def day() -> str:
        month = rng.choice(("January", "March", "May", "June", "August", "October", "December"))
        return f"{rng.randint(1, 28)} {month} {rng.randint(1990, 2024)}"

    return rng.choice(
        (
            f"Received {day()}; accepted {day()}", f"Received: {day()} / Accepted: {day()}",
            f"(Received {day()}; revised {day()})", f"Available online {day()}",
        )
    )  # fmt: skip


def _keywords(studio: Studio, rng: random.Random, look: Look) -> tuple[Run, ...]:
    link = rng.choice((", ", "; ", " · "))
    words = link.join(studio.phrase(rng, "en", rng.choice((1, 1, 2, 3))) for _ in range(5))
    label = rng.choice(("Keywords:", "Key words:", "Keywords", "KEY WORDS:", "Index Terms—"))
    return (Run(ink=label, style=_heavy(look)), Run(ink=" " + words))


def _prose(studio: Studio, rng: random.Random, length: int) -> str:
    """One paragraph of plain prose of at most about so many characters."""
    words = studio.phrase(rng, "en", int(length / 6.2))
    return _capital(words) + "."


def _paragraphs(studio: Studio, rng: random.Random) -> Iterator[str]:
    """Plain scientific paragraphs without end, several of each text."""
    while True:
        genre = rng.choice(("scientific", "medical", "textbook", None))
        found = 0
        for passage in studio.story(rng, lang="en", genre=genre).passages:
            plain = not set(passage.text) & set("$*_`[]\\|{}<>#")
            if passage.kind == "paragraph" and plain and len(passage.text) > 120:
                found += 1
                yield passage.text[: rng.randint(600, 1600)]
        if not found:
            yield _prose(studio, rng, rng.randint(200, 900))


def _abstract(studio: Studio, rng: random.Random, inner: Manuscript, look: Look) -> None:
    """A heading or a word that runs in; one paragraph or one for each part; keywords."""
    style = replace(look.style(), size_pt=look.size_pt * rng.uniform(0.88, 1.0))
    length = rng.randint(350, 1500)
    headed = rng.random() < 0.55
    name = rng.choice(("Abstract", "ABSTRACT", "Abstract", "Summary", "A B S T R A C T"))
    if headed:
        head = replace(style, weight="bold", align=rng.choice(("left", "center")))
        inner.add(Block(type="h2", runs=(Run(ink=name),)), head)
    if rng.random() < 0.3:
        for part in rng.choice(_PARTS):
            label = Run(ink=part + rng.choice((":", ".")), style=_heavy(look))
            text = Run(ink=" " + _prose(studio, rng, length // 4))
            block = Block(type="paragraph", runs=(label, text), splittable=True)
            inner.add(block, style)
    else:
        lead: tuple[Run, ...] = ()
        if not headed and rng.random() < 0.8:
            lead = (
                Run(ink="Abstract" + rng.choice((".", "—", ":")), style=_heavy(look)),
                Run(ink=" "),
            )
        runs = (*lead, Run(ink=_prose(studio, rng, length)))
        inner.add(Block(type="paragraph", runs=runs, splittable=True), style)
    if rng.random() < 0.65:
        inner.add(Block(type="paragraph", runs=_keywords(studio, rng, look)), style)


def _boxed(rng: random.Random, source: str, *, always: bool = False) -> str:
    frame = rng.choice((f"fill: {grey(232)}", "stroke: 0.6pt", f"fill: {grey(216)}, stroke: 0.5pt"))
    if not always and rng.random() < 0.6:
        frame = ""
    indent = rng.choice((0, 0, 24, 40)) if not frame else 6
    inset = f"inset: (x: {indent}pt, y: {6 if frame else 0}pt)"
    return f"#block(width: 100%, {inset}{', ' + frame if frame else ''})[{source}]"


def _info_beside_abstract(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look
) -> str:
    """Dates and keywords in a narrow column, the abstract in a wide one."""
    small = replace(look.style(), size_pt=look.size_pt * 0.85, justify=False, before_pt=3)
    left, right = _inner(manuscript), _inner(manuscript)
    name = rng.choice(("Article info", "ARTICLE INFO", "A R T I C L E I N F O"))
    left.add(Block(type="h2", runs=(Run(ink=name),)), replace(small, weight="bold"))
    left.add(Block(type="paragraph", runs=(Run(ink="Article history:"),)), small)
    for text in _dates(rng).split(";"):
        left.add(Block(type="paragraph", runs=(Run(ink=_capital(text.strip(" ()"))),)), small)
    left.add(Block(type="paragraph", runs=(Run(ink="Keywords:"),)), small)
    for _ in range(rng.randint(2, 6)):
        word = _capital(studio.phrase(rng, "en", rng.choice((1, 2))))
        left.add(Block(type="paragraph", runs=(Run(ink=word),)), replace(small, after_pt=1))
    _abstract(studio, rng, right, look)
    share = rng.randint(24, 34)
    rule = "#line(length: 100%, stroke: 0.5pt)" if rng.random() < 0.7 else ""
    return (
        f"{rule}#grid(columns: ({share}%, 1fr), gutter: 14pt, [{chr(10).join(left.body)}], "
        f"[{chr(10).join(right.body)}]){rule}"
    )


def _front(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> str:
    """Kind of paper, title, authors, affiliations, addresses, dates; the abstract in most."""
    align = rng.choice(("left", "center", "center"))
    size = look.size_pt
    base = replace(look.style(), align=align, justify=False, before_pt=3, after_pt=4)
    small = replace(base, size_pt=size * rng.uniform(0.8, 1.0), before_pt=3.5, after_pt=3.5)
    slanted = replace(small, italic="i" in look.body.styles and rng.random() < 0.5)
    parts = []
    if rng.random() < 0.4:
        label = (Run(ink=rng.choice(_KINDS), style=rng.choice((_heavy(look), "plain"))),)
        parts.append(_set(manuscript, "paragraph", label, base))
    title = _capital(studio.phrase(rng, "en", rng.randint(4, 16)))
    title = title.upper() if rng.random() < 0.15 else title
    large = replace(
        base, size_pt=size * rng.uniform(1.35, 2.1), weight=look.head_weight, leading_em=0.45,
        family=look.head.name, after_pt=size,
    )  # fmt: skip
    parts.append(_set(manuscript, "h1", title, large))
    authors, places = _authors(studio, rng)
    grown = replace(base, size_pt=size * rng.uniform(1.0, 1.2), leading_em=0.6, before_pt=4)
    parts.append(_set(manuscript, "paragraph", authors, grown))
    for index in range(max(1, places)):
        runs: tuple[Run, ...] = (Run(ink=_affiliation(studio, rng)),)
        if places:
            mark = "abcdefgh"[index] if "a" in authors[1].ink else str(index + 1)
            runs = (Run(ink=mark, style="super"), *runs)
        parts.append(_set(manuscript, "paragraph", runs, slanted))
    if rng.random() < 0.5:
        parts.append(_set(manuscript, "paragraph", _mail(studio, rng), small))
    if rng.random() < 0.4:
        parts.append(_set(manuscript, "paragraph", _dates(rng), small))
    kind = rng.random()
    if kind < 0.25:
        parts.append(_info_beside_abstract(studio, rng, manuscript, look))
    elif kind < 0.8:
        inner = _inner(manuscript)
        _abstract(studio, rng, inner, look)
        parts.append(_boxed(rng, "\n".join(inner.body)))
    parts.append(f"#v({size * rng.uniform(0.5, 1.5):.1f}pt)")
    return "".join(parts)


def _foot_of_column(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """Addresses, dates and rights at the foot of the first column, mostly below a short rule."""
    style = replace(
        look.style(), size_pt=max(6.0, look.size_pt * 0.8), leading_em=0.35, before_pt=2, after_pt=2
    )
    texts = [
        rng.choice(
            ("* Corresponding author: ", "Correspondence to: ", "Address for correspondence: ")
        )
        + f"{_person(studio, rng)}, {_affiliation(studio, rng)}.",
        _mail(studio, rng),
        f"Manuscript r{_dates(rng)[1:].strip('()')}.",
        f"© {rng.randint(1985, 2024)} {rng.choice(('Elsevier', 'Springer', 'IEEE', 'The Authors'))}"
        ". All rights reserved.",
        f"{rng.randint(1000, 9999)}-{rng.randint(1000, 9999)}/{rng.randint(10, 99)}/$"
        f"{rng.randint(2, 40)}.00 DOI: 10.{rng.randint(1000, 9999)}/{rng.randint(100, 99999)}",
        f"This work was supported by {studio.phrase(rng, 'en', rng.randint(4, 12))}.",
    ]
    count = rng.randint(1, 4)
    chosen = [text for text in rng.sample(texts, count) if is_drawable(text)]
    notes = "".join(
        manuscript.placed(Block(type="footnote", runs=(Run(ink=text),)), style) for text in chosen
    )
    rule = "#line(length: 35%, stroke: 0.5pt)" if rng.random() < 0.75 else ""
    if notes:
        manuscript.raw(
            f"#place(bottom, float: true, clearance: 8pt, block(width: 100%)[{rule}{notes}])"
        )


def journal(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """The first page of a paper: head over all columns, text and a foot of addresses below it."""
    look = Look.draw(studio, rng, "en", categories=(*SERIF, "serif", "serif", "sans"))
    columns = rng.choice((2, 2, 2, 2, 1, 3))
    look = replace(
        look, size_pt=rng.uniform(7.6, 10.2), justify=rng.random() < 0.85,
        leading_em=rng.uniform(0.35, 0.65), gap_pt=rng.uniform(2.5, 7),
    )  # fmt: skip
    sheet = open_sheet(rng, width_px, height_px, "en", columns=columns)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    names = studio.names(rng, "en")
    journal_name = (
        f"{rng.choice(('J.', 'Journal of', 'Annals of', 'Int. J.'))} {rng.choice(_FIELDS)}"
    )
    pages = f"{rng.randint(1, 400)}–{rng.randint(401, 990)}"
    volume = f"{rng.randint(1, 300)} ({rng.randint(1985, 2024)}) {pages}"
    if rng.random() < 0.75:
        running_parts(
            manuscript,
            studio,
            rng,
            look,
            rng.choice((f"{journal_name} {volume}", names.last_name() + " et al.")),
        )
    front = _front(studio, rng, manuscript, look)
    if columns > 1:
        manuscript.raw(f'#place(top, scope: "parent", float: true)[{front}]')
    else:
        manuscript.raw(front)
    if rng.random() < 0.65:
        _foot_of_column(studio, rng, manuscript, look)
    budget = look.capacity(sheet) * rng.uniform(0.4, 0.9)
    look.heading(manuscript, rng.choice(_SECTIONS), 2)
    for text in _paragraphs(studio, rng):
        if budget <= 0:
            break
        budget -= look.paragraph(studio, manuscript, text) + 20
        if rng.random() < 0.12:
            look.heading(manuscript, rng.choice(_SECTIONS), rng.choice((2, 3)))
        if rng.random() < 0.04:
            figure_block(studio, rng, manuscript, look)
            budget -= 500
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, FINE, OFFICE, PRINTED)))


def _box(
    studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look, budget: int
) -> str:
    """A framed or shaded box: a title, prose or items."""
    inner = _inner(manuscript)
    small = replace(look, size_pt=look.size_pt * rng.uniform(0.85, 1.0), gap_pt=4.0)
    title = rng.choice((rng.choice(_BOX_TITLES), _capital(studio.phrase(rng, look.lang, 3))))
    if rng.random() < 0.85:
        small.heading(inner, title, 3)
    kind = rng.random()
    if kind < 0.45:
        for number in range(rng.randint(2, 6)):
            text = _capital(studio.phrase(rng, look.lang, rng.randint(3, 18)))
            mark = "-" if kind < 0.3 else f"{number + 1}."
            small.item(studio, inner, text, mark=mark)
    elif kind < 0.6:
        table = science_table(studio, rng, rng.randint(2, 5), 2)
        inner.add(table, replace(small.style(), justify=False))
    else:
        small.fill(studio, rng, inner, budget)
    return _boxed(rng, "\n".join(inner.body), always=True)


def _inset(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """A picture with text beside it, in one column."""
    height = rng.uniform(50, 110)
    share = rng.uniform(0.3, 0.55)
    sheet = manuscript.sheet
    left_right = sheet.margins_pt[1] + sheet.margins_pt[3]
    column_pt = (sheet.width_pt - left_right) / sheet.columns - sheet.gutter_pt
    room = column_pt * (1 - share) * height / (look.size_pt**2 * 0.5 * (0.72 + look.leading_em))
    picture, text = _inner(manuscript), _inner(manuscript)
    source = figure_source(rng, "100%", height)
    block = Block(type="figure", runs=(Run(ink=source, truth=""),))
    figure_first = rng.random() < 0.5

    def set_picture() -> None:
        picture.add(block, Style(before_pt=0, after_pt=2))
        if rng.random() < 0.4:
            line = _capital(studio.phrase(rng, look.lang, rng.randint(2, 8)))
            caption = Block(type="caption", runs=(Run(ink=line),))
            picture.add(caption, replace(look.style(), size_pt=look.size_pt * 0.85, justify=False))

    if figure_first:
        set_picture()
    words = _capital(studio.phrase(rng, look.lang, max(6, int(room / 6))))
    look.paragraph(studio, text, words)
    if not figure_first:
        set_picture()
    cells = [("\n".join(picture.body), f"{share * 100:.0f}%"), ("\n".join(text.body), "1fr")]
    if not figure_first:
        cells.reverse()
    columns = ", ".join(width for _, width in cells)
    inner = ", ".join(f"[{cell}]" for cell, _ in cells)
    manuscript.raw(f"#grid(columns: ({columns}), gutter: 8pt, {inner})")


def boxes(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Text in columns with boxes between it, or beside a sidebar of its own."""
    lang = rng.choice(("en", "en", draw_language(rng)))
    look = Look.draw(studio, rng, lang, categories=(*SERIF, "serif", *SANS, "sans"))
    look = replace(look, size_pt=rng.uniform(7.4, 10.4), gap_pt=rng.uniform(2.5, 8))
    sidebar = rng.random() < 0.45
    columns = 1 if sidebar else rng.choice((2, 2, 2, 3))
    sheet = open_sheet(rng, width_px, height_px, lang, columns=columns)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    if rng.random() < 0.6:
        running_parts(manuscript, studio, rng, look, studio.phrase(rng, lang, rng.randint(2, 5)))
    title = _capital(studio.phrase(rng, lang, rng.randint(2, 8)))
    head = Style(size_pt=look.size_pt * rng.uniform(1.5, 2.4), weight="bold", align=look.head_align)
    if rng.random() < 0.7:
        source = _set(
            manuscript, "h1", title, replace(head, family=look.head.name, leading_em=0.45)
        )
        spanning = f'#place(top, scope: "parent", float: true)[{source}]'
        manuscript.raw(spanning if columns > 1 else source)
    if sidebar:
        _beside_sidebar(studio, rng, manuscript, look)
    else:
        _between_boxes(studio, rng, manuscript, look)
    return Draft(manuscript=manuscript, wear=rng.choice((DIGITAL, FINE, OFFICE, PRINTED)))


def _between_boxes(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    if rng.random() < 0.3:
        _foot_of_column(studio, rng, manuscript, look)
    budget = look.capacity(manuscript.sheet) * rng.uniform(0.6, 1.3)
    while budget > 0:
        for passage in studio.story(rng, lang=look.lang).passages[: rng.randint(2, 7)]:
            budget -= look.passage(studio, manuscript, passage) + 20
        kind = rng.random()
        if kind < 0.3:
            manuscript.raw(_box(studio, rng, manuscript, look, rng.randint(150, 700)))
            budget -= 500
        elif kind < 0.5:
            _inset(studio, rng, manuscript, look)
            budget -= 400
    if rng.random() < 0.25:
        box = _box(studio, rng, manuscript, look, rng.randint(200, 700))
        manuscript.raw(f'#place(bottom, scope: "parent", float: true)[{box}]')


def _beside_sidebar(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    """Two columns of unlike widths: what stands on the left is read first."""
    share = rng.uniform(0.24, 0.38)
    on_left = rng.random() < 0.5
    sheet = manuscript.sheet
    capacity = look.capacity(sheet) * 0.8

    def side() -> str:
        parts = []
        budget = capacity * share * rng.uniform(0.3, 0.8)
        while budget > 100 and len(parts) < 4:
            size = rng.randint(100, max(150, int(budget)))
            parts.append(_box(studio, rng, manuscript, look, size))
            budget -= size + 250
        return "".join(parts)

    def body() -> str:
        inner = _inner(manuscript)
        look.fill(studio, rng, inner, capacity * (1 - share) * rng.uniform(0.4, 0.85))
        return "\n".join(inner.body)

    cells = [side(), body()] if on_left else [body(), side()]
    narrow, wide = f"{share * 100:.0f}%", "1fr"
    columns = f"{narrow}, {wide}" if on_left else f"{wide}, {narrow}"
    manuscript.raw(f"#grid(columns: ({columns}), gutter: 14pt, [{cells[0]}], [{cells[1]}])")
