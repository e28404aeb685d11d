"""Scripts that the model has no letters for: Japanese, Greek, Cyrillic.

The right reading is not expected: what counts is that little is invented, and marked as doubtful.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from ocria.models.recipes.suites.sheet import Sheet, fitting_sheets
from ocria.models.recipes.suites.sources import Sources

_SYLLABLES = {
    "el": ("κα", "λο", "μέ", "ρα", "θη", "σι", "φω", "νή", "χρό", "νος", "ται", "που", "δεν"),
    "ru": ("при", "мер", "сло", "во", "жиз", "нь", "что", "бы", "ла", "ется", "ный", "щу", "до"),
}


def unknown_script_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """Japanese of held-out prose; Greek and Cyrillic of random syllables."""
    for number in range(count):
        lang = ("ja", "el", "ru")[number % 3]
        if lang == "ja":
            paragraphs = sources.passage(
                rng, lang="ja", chars=500, files="ja_aozora.jsonl", longest=300
            )
            font = sources.family(rng, covers="ja")
        else:
            paragraphs = [_sentence(rng, lang) for _ in range(6)]
            font = sources.family(rng, covers="gr" if lang == "el" else "cy")
        yield fitting_sheets(
            paragraphs, kind=f"unknown script/{lang}", lang=lang, font=font, size_pt=11.0
        )


def _sentence(rng: random.Random, lang: str) -> str:
    words = (
        "".join(rng.choices(_SYLLABLES[lang], k=rng.randint(1, 4)))
        for _ in range(rng.randint(20, 60))
    )
    return " ".join(words).capitalize() + "."
