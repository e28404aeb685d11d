"""Scripts that the reader does not know: Japanese, Cyrillic, Greek. Such text is a figure."""

from __future__ import annotations

import random
import re
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Run
from ocria.models.recipes.pages.corpus import draw_language
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Style, quoted

from .books import open_sheet

_ALPHABETS = {
    "cy": "абвгдежзийклмнопрстуфхцчшщъыьэюя" + "оеаинтсрвл" * 4,
    "gr": "αβγδεζηθικλμνξοπρστυφχψω" + "αιοετνσηρ" * 3,
}
# Kana, ideographs and their marks: a Latin word in such text would have to be read.
_JAPANESE = re.compile("[^\u3000-\u30ff\u4e00-\u9fff\uff00-\uff0f]+")
# Characters a line's width holds for each em of it, by script.
_PER_EM = {"kanji": 1.0, "cy": 1.85, "gr": 1.95}


def foreign(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """Unknown scripts, alone or among Latin paragraphs."""
    look = Look.draw(studio, rng, draw_language(rng))
    sheet = open_sheet(rng, width_px, height_px, look.lang)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    script = rng.choice(("kanji", "kanji", "cy", "gr"))
    font = rng.choice(studio.shelf.scripts[script] or [look.body.name])
    area = look.capacity(sheet) * 0.5
    mixed = rng.random() < 0.5
    left = rng.uniform(0.3, 0.9)
    while left > 0.04:
        share = min(left, rng.uniform(0.05, 0.5))
        if mixed and rng.random() < 0.5:
            text = studio.words(rng, look.lang, max(3, int(area * share / 5)))
            look.paragraph(studio, manuscript, text)
        else:
            count = int(area * share * _PER_EM[script] / 2.0)
            source = _source(_text(studio, rng, script, count), font, look.size_pt)
            style = Style(before_pt=look.gap_pt + 4, after_pt=look.gap_pt + 4, justify=True)
            style = replace(style, leading_em=look.leading_em)
            manuscript.add(Block(type="figure", runs=(Run(ink=source, truth=""),)), style)
        left -= share
    return Draft(manuscript=manuscript)


def _source(text: str, font: str, size_pt: float) -> str:
    return f"#text(font: {quoted(font)}, size: {size_pt:.2f}pt, fill: COLOUR)[#{quoted(text)}]"


def _text(studio: Studio, rng: random.Random, script: str, count: int) -> str:
    if script == "kanji":
        source = _JAPANESE.sub("", studio.corpus.text(rng, lang="ja", genre="prose"))
        start = rng.randrange(max(1, len(source) - count))
        return source[start : start + count] or "日本語"
    letters, words, size = _ALPHABETS[script], [], 0
    while size < count:
        word = "".join(rng.choice(letters) for _ in range(rng.choice((1, 2, 4, 5, 6, 7, 9, 11))))
        word = word.capitalize() if rng.random() < 0.12 else word
        word += rng.choice(("", "", "", "", "", ",", "."))
        words.append(word if rng.random() > 0.03 else str(rng.randint(1, 2000)))
        size += len(word) + 1
    return " ".join(words)
