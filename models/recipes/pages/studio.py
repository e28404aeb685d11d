"""What every page generator draws on: text, fonts, names, and a document's typographic look."""

from __future__ import annotations

import random
from dataclasses import dataclass, field, replace

from faker import Faker

from .blocks import Block, Run
from .corpus import Corpus, Passage, Story, draw_language, is_drawable
from .fonts import MONO, SANS, SERIF, TEXT, Family, FontShelf
from .inline import runs_of
from .salt import salted
from .typeset import BLACK, Ink, Manuscript, Press, Sheet, Style, block_colour
from .wear import OFFICE, Wear

_LOCALES = {
    "en": ("en_US", "en_GB"),
    "vi": ("vi_VN",),
    "de": ("de_DE",),
    "fr": ("fr_FR",),
    "es": ("es_ES",),
    "it": ("it_IT",),
    "pt": ("pt_BR",),
    "nl": ("nl_NL",),
    "pl": ("pl_PL",),
}
BULLETS = ("•", "•", "•", "–", "-", "▪", "◦", "*", "■", "○", "‣")


@dataclass(frozen=True, kw_only=True)
class Draft:
    """A generator's result: the manuscript, how many of its pages are worth taking, its wear."""

    manuscript: Manuscript
    pages: int = 1
    wear: Wear = OFFICE


@dataclass
class Studio:
    """Corpus, fonts, press and invented names.

    `body_pt` is the range of body type and `face` the body's family, where a kind asks for other
    than the usual.
    """

    corpus: Corpus
    shelf: FontShelf
    press: Press
    body_pt: tuple[float, float] | None = None
    face: Family | None = None
    _fakers: dict[str, Faker] = field(default_factory=dict)

    def names(self, rng: random.Random, lang: str) -> Faker:
        """A source of names, addresses and companies in the manner of a language."""
        locale = rng.choice(_LOCALES[lang])
        if locale not in self._fakers:
            self._fakers[locale] = Faker(locale, use_weighting=False)
        faker = self._fakers[locale]
        faker.seed_instance(rng.getrandbits(32))
        return faker

    def story(
        self, rng: random.Random, *, lang: str | None = None, genre: str | None = None
    ) -> Story:
        """A document with at least one paragraph."""
        for _ in range(20):
            story = self.corpus.story(rng, lang=lang or draw_language(rng), genre=genre)
            if any(p.kind == "paragraph" for p in story.passages):
                return salted(story, rng)
        return Story(lang="en", genre="prose", passages=(Passage(kind="paragraph", text="Blank."),))

    def words(self, rng: random.Random, lang: str, count: int) -> str:
        """Words in no order that a reader could guess."""
        return " ".join(rng.choice(self.corpus.words[lang]) for _ in range(count))

    def phrase(self, rng: random.Random, lang: str, count: int) -> str:
        """Words as they follow each other in some text."""
        words = self.corpus.running_words[lang]
        start = rng.randrange(max(1, len(words) - count))
        return " ".join(words[start : start + count])


@dataclass(frozen=True, kw_only=True)
class Look:
    """The typographic choices of one document."""

    lang: str
    body: Family
    head: Family
    size_pt: float
    leading_em: float
    justify: bool
    first_indent_em: float
    gap_pt: float
    bullet: str
    ink: Ink
    head_ink: Ink
    head_align: str
    head_weight: str
    hanging: bool

    @staticmethod
    def draw(
        studio: Studio, rng: random.Random, lang: str, *, categories: tuple[str, ...] = TEXT
    ) -> Look:
        """A look with a body family that covers the language."""
        body = studio.face or studio.shelf.draw(rng, lang=lang, categories=categories)
        other = studio.shelf.draw(rng, lang=lang, categories=SANS + SERIF)
        size = min(13.0, max(6.8, rng.lognormvariate(2.25, 0.17)))
        if studio.body_pt:
            size = rng.uniform(*studio.body_pt)
        indented = rng.random() < 0.4
        shade = rng.choice((16, 16, 16, 40, 72))
        coloured = rng.random() < 0.15
        blue = (24, 56, rng.choice((120, 160)))
        return Look(
            lang=lang,
            body=body,
            head=body if rng.random() < 0.6 else other,
            size_pt=size,
            leading_em=rng.uniform(0.42, 0.95),
            justify=rng.random() < 0.6,
            first_indent_em=rng.uniform(1, 2) if indented else 0.0,
            gap_pt=size * (rng.uniform(0.15, 0.55) if indented else rng.uniform(0.5, 1.2)),
            bullet=rng.choice(BULLETS),
            ink=(shade, shade, shade),
            head_ink=blue if coloured else BLACK,
            head_align=rng.choice(("left", "left", "left", "center")),
            head_weight=rng.choice(("bold", "bold", "regular")),
            hanging=rng.random() < 0.8,
        )

    def style(self) -> Style:
        """The style of body text."""
        return Style(
            size_pt=self.size_pt,
            leading_em=self.leading_em,
            justify=self.justify,
            before_pt=self.gap_pt,
            after_pt=self.gap_pt,
            base=self.ink,
        )

    def heading(self, manuscript: Manuscript, text: str, level: int) -> None:
        """Sets a heading; lower levels come out smaller."""
        grow = {1: 1.7, 2: 1.35, 3: 1.15}.get(level, 1.02)
        style = Style(
            size_pt=self.size_pt * grow,
            weight=self.head_weight if level < 4 else "bold",
            italic=level > 4,
            align=self.head_align if level < 3 else "left",
            leading_em=0.5,
            before_pt=self.size_pt * (1.3 if level < 3 else 1.0),
            after_pt=self.size_pt * 0.7,
            base=self.head_ink,
            family=self.head.name,
        )
        manuscript.add(Block(type=f"h{min(level, 6)}", runs=(Run(ink=text),)), style)

    def paragraph(self, studio: Studio, manuscript: Manuscript, text: str) -> int:
        """Sets a Markdown paragraph; returns its length, 0 where it could not be set."""
        runs = runs_of(text, studio.corpus.formulas, styles=self.body.styles)
        if runs is None:
            return 0
        style = replace(self.style(), first_indent_em=self.first_indent_em)
        manuscript.add(Block(type="paragraph", runs=runs, splittable=True), style)
        return len(text)

    def item(
        self, studio: Studio, manuscript: Manuscript, text: str, *, mark: str, level: int = 1
    ) -> int:
        """Sets a list item; `mark` is `-` for a bullet or the printed number."""
        runs = runs_of(text, studio.corpus.formulas, styles=self.body.styles)
        if runs is None:
            return 0
        printed = self.bullet if mark == "-" else mark
        lead = (
            Run(ink=printed, truth="- " if mark == "-" else mark + " "),
            Run(ink="0.6em", style="space"),
        )
        style = replace(
            self.style(),
            hanging_em=1.3 if self.hanging else 0.0,
            indent_pt=self.size_pt * (0.6 + 1.5 * (level - 1)),
            before_pt=self.gap_pt * 0.6,
            after_pt=self.gap_pt * 0.6,
        )
        block = Block(type="list_item", runs=lead + runs, splittable=True, level=level)
        manuscript.add(block, style)
        return len(text)

    def passage(self, studio: Studio, manuscript: Manuscript, passage: Passage) -> int:
        """Sets any prose passage; returns the characters set."""
        if passage.kind == "heading":
            runs = runs_of(passage.text, {}, styles=frozenset())
            if runs is None or len(passage.text) > 140:
                return 0
            self.heading(manuscript, "".join(run.ink for run in runs), passage.level)
            return len(passage.text) * 2
        if passage.kind == "item":
            return self.item(
                studio, manuscript, passage.text, mark=passage.mark, level=min(passage.level, 3)
            )
        if passage.kind == "paragraph":
            return self.paragraph(studio, manuscript, passage.text)
        return 0

    def fill(
        self,
        studio: Studio,
        rng: random.Random,
        manuscript: Manuscript,
        budget: float,
        genre: str | None = None,
    ) -> None:
        """Sets passages of stories until about `budget` characters stand."""
        for _ in range(30):
            story = studio.story(rng, lang=self.lang, genre=genre)
            for passage in story.passages:
                try:
                    budget -= self.passage(studio, manuscript, passage) + 20
                except ValueError:
                    return
                if budget <= 0:
                    return

    def capacity(self, sheet: Sheet) -> float:
        """About how many characters of body text a page holds."""
        top, right, bottom, left = sheet.margins_pt
        area = (sheet.width_pt - left - right) * (sheet.height_pt - top - bottom)
        return area / (self.size_pt**2 * 0.5 * (0.72 + self.leading_em))


def running_parts(
    manuscript: Manuscript, studio: Studio, rng: random.Random, look: Look, title: str
) -> None:
    """Running head, running foot and page number, in one of the usual arrangements."""
    manuscript.first_page = rng.choice((1, rng.randint(1, 40), rng.randint(1, 999)))
    style = Style(
        size_pt=look.size_pt * rng.uniform(0.7, 0.95),
        italic="i" in look.body.styles and rng.random() < 0.4,
        base=look.ink,
    )
    shown = title[:60].strip() or "Report"
    if rng.random() < 0.3:
        shown = shown.upper()
    head = manuscript.inline(Block(type="header", runs=(Run(ink=shown),)), style)
    number = page_number(manuscript, style, rng)
    arrangement = rng.random()
    rule = "#v(-6pt)#line(length: 100%, stroke: 0.5pt)" if rng.random() < 0.4 else ""
    if arrangement < 0.35:
        manuscript.header = f"{head}#h(1fr){number}{rule}"
    elif arrangement < 0.6:
        manuscript.header = f"#align({rng.choice(('center', 'left', 'right'))})[{head}]{rule}"
        manuscript.footer = f"#align({rng.choice(('center', 'left', 'right'))})[{number}]"
    elif arrangement < 0.75:
        manuscript.header = f"{number}#h(1fr){head}{rule}"
    else:
        name = studio.names(rng, look.lang).company()
        foot = manuscript.inline(
            Block(type="footer", runs=(Run(ink=name if is_drawable(name) else "Draft"),)), style
        )
        manuscript.header = f"{head}{rule}" if rng.random() < 0.4 else ""
        manuscript.footer = f"{foot}#h(1fr){number}"


def page_number(manuscript: Manuscript, style: Style, rng: random.Random) -> str:
    """The source of a page number; its truth is read from the printed page."""
    block = Block(type="page_number", runs=(Run(ink="1"),), from_ink=True)
    number = manuscript.register(block)
    pattern = rng.choice(("1", "1", "1", "1", "- 1 -", "i", "Page 1", "1 / 1"))
    pattern = pattern.replace("Page 1", "1")
    return (
        f"#text(size: {style.size_pt:.1f}pt, fill: {block_colour(number, style.base)})"
        f'[#context counter(page).display("{pattern}", both: {str("/" in pattern).lower()})]'
    )


def margins(rng: random.Random, width_pt: float, height_pt: float) -> tuple[float, ...]:
    """Page margins in points: top, right, bottom, left."""
    side = width_pt * rng.uniform(0.05, 0.14)
    return (
        height_pt * rng.uniform(0.05, 0.1),
        side * rng.uniform(0.8, 1.2),
        height_pt * rng.uniform(0.05, 0.1),
        side,
    )


__all__ = ["BULLETS", "MONO", "Draft", "Look", "Studio", "margins", "page_number", "running_parts"]
