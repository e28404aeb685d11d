"""Strings that no language model can guess, and pages that tempt to go on for ever."""

from __future__ import annotations

import random
import string
from collections.abc import Callable, Iterator

from ocria.models.recipes.suites.sheet import Sheet, page_source, quoted
from ocria.models.recipes.suites.sources import Sources

_LEET = str.maketrans("aeiost", "4310$7")


def string_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """Codes, amounts, and words with changed letters, one to a line."""
    for number in range(count):
        kinds = (_code, _amount, _hexadecimal, _reference, _wrong_word)
        lines = [rng.choice(kinds)(sources, rng) for _ in range(34)]
        yield _line_sheet(lines, "random strings", sources.family(rng, mono=number % 2 == 0))


def loop_sheets(sources: Sources, rng: random.Random, count: int) -> Iterator[Sheet]:
    """Equal or almost equal lines by the dozen; the truth repeats as the page does."""
    makers: tuple[Callable[[Sources, random.Random], list[str]], ...] = (
        _equal_numbers, _counted_lines, _equal_paragraphs, _one_digit_apart, _leaders, _equal_words,
    )  # fmt: skip
    for number in range(count):
        lines = makers[number % len(makers)](sources, rng)
        yield _line_sheet(lines, "repetition", sources.family(rng))


def _line_sheet(lines: list[str], kind: str, font: str) -> Sheet:
    # Each line is a paragraph of its own, so that no reader can be blamed for joining lines.
    versions = []
    for kept in range(len(lines), len(lines) // 2, -2):
        body = "#set par(spacing: 0.62em)\n" + "\n\n".join(quoted(line) for line in lines[:kept])
        versions.append((page_source(body, font=font, size_pt=9.5), "\n".join(lines[:kept])))
    (source, truth), *cuts = versions
    return Sheet(kind=kind, lang="en", metric="text", truth=truth, typst=source, cuts=tuple(cuts))


def _code(sources: Sources, rng: random.Random) -> str:
    letters = string.ascii_uppercase + string.digits
    return "-".join("".join(rng.choices(letters, k=rng.randint(3, 6))) for _ in range(4))


def _amount(sources: Sources, rng: random.Random) -> str:
    return "   ".join(f"{rng.randrange(10**9) / 100:,.2f}" for _ in range(4))


def _hexadecimal(sources: Sources, rng: random.Random) -> str:
    return "".join(rng.choices("0123456789abcdef", k=rng.choice((32, 40))))


def _reference(sources: Sources, rng: random.Random) -> str:
    word = "".join(rng.choices(string.ascii_letters, k=rng.randint(5, 12)))
    return f"No. {rng.randrange(10**6)}/{rng.randrange(100):02d} {word} ({rng.randrange(10**8)})"


def _wrong_word(sources: Sources, rng: random.Random) -> str:
    words = sources.words(rng, count=6)
    changed = rng.randrange(len(words))
    words[changed] = words[changed].translate(_LEET)
    other = (changed + 3) % len(words)
    letters = list(words[other])
    rng.shuffle(letters)
    words[other] = "".join(letters)
    return " ".join(words)


def _equal_numbers(sources: Sources, rng: random.Random) -> list[str]:
    return [f"{rng.randrange(10**4) / 100:.2f}"] * 60


def _counted_lines(sources: Sources, rng: random.Random) -> list[str]:
    text = " ".join(sources.words(rng, count=5))
    return [f"{number}. {text}" for number in range(1, 51)]


def _equal_paragraphs(sources: Sources, rng: random.Random) -> list[str]:
    return [" ".join(sources.words(rng, count=24)) + "."] * 14


def _one_digit_apart(sources: Sources, rng: random.Random) -> list[str]:
    stem = "".join(rng.choices(string.digits, k=8))
    return [f"{stem}{rng.randrange(10)}{rng.randrange(10)} {stem[::-1]}" for _ in range(50)]


def _leaders(sources: Sources, rng: random.Random) -> list[str]:
    return [
        f"{word.capitalize()} {'.' * 60} {rng.randrange(1, 400)}"
        for word in sources.words(rng, count=45)
    ]


def _equal_words(sources: Sources, rng: random.Random) -> list[str]:
    (word,) = sources.words(rng, count=1)
    return [" ".join([word] * 12)] * 40
