"""Prose made unguessable here and there: numbers, codes, swapped letters, foreign words.

A reader that knows its language writes what it expects; a page that breaks the expectation now and
then makes it look.
"""

from __future__ import annotations

import random
import string
from dataclasses import replace

from .corpus import Passage, Story

# Shares of paragraphs that are touched at all, and of words touched in them.
_PARAGRAPHS = 0.22
_WORDS = (0.01, 0.02, 0.05, 0.15)
_MARKED = set("*_`$|[]<>\\{}#&")
_CODES = string.ascii_uppercase + string.digits + "-/."


def salted(story: Story, rng: random.Random) -> Story:
    """The story with some paragraphs and items touched."""
    passages = tuple(
        _salted(p, rng)
        if p.kind in ("paragraph", "item") and rng.random() < _PARAGRAPHS and _is_plain(p.text)
        else p
        for p in story.passages
    )
    return replace(story, passages=passages)


def _is_plain(text: str) -> bool:
    return not _MARKED & set(text)


def _salted(passage: Passage, rng: random.Random) -> Passage:
    share = rng.choice(_WORDS)
    words = passage.text.split()
    for place in range(len(words)):
        if rng.random() < share:
            words[place] = _touched(words[place], rng)
    return replace(passage, text=" ".join(words))


def _touched(word: str, rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.35:
        return _number(rng)
    if kind < 0.5:
        code = "".join(rng.choice(_CODES) for _ in range(rng.randint(3, 10)))
        return code.strip("-/.") or "A"
    if kind < 0.6:
        return word.upper()
    letters = list(word)
    if len(letters) > 3:
        # Inside the word only, so that punctuation stays where it was.
        place = rng.randrange(1, len(letters) - 2)
        if kind < 0.8:
            letters[place], letters[place + 1] = letters[place + 1], letters[place]
        else:
            letters[place] = rng.choice(string.ascii_lowercase)
    return "".join(letters)


def _number(rng: random.Random) -> str:
    return rng.choice(
        (
            str(rng.randint(0, 99)),
            str(rng.randint(100, 10**9)),
            f"{rng.randint(1, 10**6):,}",
            f"{rng.uniform(0, 10 ** rng.randint(0, 5)):,.2f}",
            f"{rng.uniform(0, 100):.1f}%",
            f"{rng.randint(1, 28)}.{rng.randint(1, 12)}.{rng.randint(1800, 2030)}",
            f"({rng.randint(1700, 2030)})",
            f"No. {rng.randint(1, 9999)}",
        )
    )
