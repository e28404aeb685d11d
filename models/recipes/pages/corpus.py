"""Text to set: corpus documents as short stories of headings, paragraphs, list items and tables.

The hold-out rule lives here: a document whose id hashes to a leading 0 or 1 is never trained on,
so that suites can be made of text no model of ours has seen.
"""

from __future__ import annotations

import hashlib
import json
import random
import re
import unicodedata
from collections import defaultdict
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from .algebra import Maths, split_equation

LANGUAGES = ("en", "vi", "de", "fr", "es", "it", "pt", "nl", "pl")
# English most; Vietnamese next, because its corpus is thin and its marks are the smallest.
LANGUAGE_WEIGHTS = (46, 16, 8, 7, 6, 4, 5, 4, 4)
_VIETNAMESE = {chr(c) for c in range(0x1EA0, 0x1EFA)}
_LATIN = {chr(c) for c in range(0x20, 0x7F)} | {chr(c) for c in range(0xA1, 0x180)} - {"\u00ad"}
_PUNCTUATION = set("–—‘’“”„‚…•′″€†‡‰‹›→−≤≥≠×Ææơư ƠƯ")
ALPHABET = frozenset(_LATIN | _VIETNAMESE | _PUNCTUATION | set("ăĂđĐĩĨũŨơƠưƯ"))
_HEADING = re.compile(r"^(#{1,6})\s+(.*)$")
_ITEM = re.compile(r"^(\s*)([-*+]|\d{1,3}[.)]|\([a-z0-9]{1,3}\))\s+(.*)$", re.DOTALL)
_IMAGE = re.compile(r"!\[[^\]]*\]\([^)]*\)")
_LINK = re.compile(r"\[([^\]]+)\]\([^)]*\)")
_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, kw_only=True)
class Passage:
    """One source paragraph in Markdown: `kind` is heading, paragraph, item or table."""

    kind: str
    text: str
    level: int = 0
    mark: str = ""


@dataclass(frozen=True, kw_only=True)
class Story:
    """The passages of one document, in order."""

    lang: str
    genre: str
    passages: tuple[Passage, ...]


def is_held_out(document_id: str) -> bool:
    """True when a corpus document belongs to the hold-out (an eighth of all ids)."""
    return hashlib.sha256(document_id.encode()).hexdigest()[0] in "01"


def is_drawable(text: str) -> bool:
    """True when every character is one that the page fonts are known to draw."""
    return all(c in ALPHABET for c in text)


def _passage(chunk: str) -> Passage | None:
    chunk = _LINK.sub(r"\1", _IMAGE.sub("", chunk)).strip("\n")
    if not chunk.strip():
        return None
    if chunk.lstrip().startswith("|"):
        return Passage(kind="table", text=chunk)
    if heading := _HEADING.match(chunk):
        text = _SPACE.sub(" ", heading[2]).strip()
        return Passage(kind="heading", text=text, level=len(heading[1]))
    if item := _ITEM.match(chunk):
        mark = "-" if item[2] in "*+-" else item[2]
        text = _SPACE.sub(" ", item[3]).strip()
        return Passage(kind="item", text=text, mark=mark, level=1 + len(item[1]) // 2)
    return Passage(kind="paragraph", text=_SPACE.sub(" ", chunk).strip())


def split_passages(text: str) -> list[Passage]:
    """Cuts Markdown into passages; items of one list become passages of their own."""
    chunks: list[str] = []
    for chunk in re.split(r"\n\s*\n", unicodedata.normalize("NFC", text)):
        if chunk.lstrip().startswith("|"):
            chunks.append(chunk)
        else:
            chunks.extend(re.split(r"\n(?=\s*(?:[-*+]|\d{1,3}[.)]|#{1,6})\s)", chunk))
    found = (_passage(chunk) for chunk in chunks)
    return [p for p in found if p is not None and p.text and is_drawable(p.text.replace("\n", ""))]


class Corpus:
    """Stories by language and genre, drawn at random.

    Reads the `*.jsonl` files of a folder (one document a line: id, lang, kind, text).
    """

    def __init__(self, folder: Path, *, held_out: bool = False) -> None:
        self._stories: dict[str, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
        for path in sorted(folder.glob("*.jsonl")):
            for line in path.open(encoding="utf-8"):
                document = json.loads(line)
                if is_held_out(document["id"]) == held_out:
                    self._stories[document["lang"]][document["kind"]].append(document["text"])
        formulas = folder / "formulas.tsv"
        self.formulas: dict[str, str] = {}
        if formulas.exists():
            for line in formulas.open(encoding="utf-8"):
                latex, _, typst = line.rstrip("\n").partition("\t")
                if is_held_out(latex) == held_out:
                    self.formulas[latex] = typst

    def story(self, rng: random.Random, *, lang: str, genre: str | None = None) -> Story:
        """A random document of a language, cut to start at a random passage."""
        genres = self._stories[lang]
        if genre not in genres:
            drawn = [g for g in genres if g not in ("table", "code", "scientific")]
            genre = rng.choice(drawn)
        text = rng.choice(genres[genre])
        if len(text) > 9000:
            start = text.find("\n", rng.randrange(len(text) - 6000))
            text = text[max(start, 0) : max(start, 0) + 12000]
        passages = split_passages(text)
        return Story(lang=lang, genre=genre, passages=tuple(passages))

    def text(self, rng: random.Random, *, lang: str, genre: str) -> str:
        """A random document's raw text (code, tables)."""
        genres = self._stories[lang]
        return rng.choice(genres[genre if genre in genres else rng.choice(list(genres))])

    @cached_property
    def code_languages(self) -> list[str]:
        return sorted(lang for lang in self._stories if lang.startswith("code"))

    @cached_property
    def formula_list(self) -> list[tuple[str, str]]:
        return sorted(self.formulas.items())

    @cached_property
    def equations(self) -> list[tuple[Maths, Maths]]:
        """Left and right sides of the formulas that are one equation."""
        split = (split_equation(*pair) for pair in self.formula_list)
        return [sides for sides in split if sides and len(sides[1].latex) > 5]

    @cached_property
    def words(self) -> dict[str, list[str]]:
        """Words by language, for tables, forms and strings no grammar can guess."""
        rng = random.Random(0)
        found: dict[str, list[str]] = {}
        for lang in LANGUAGES:
            seen: set[str] = set()
            for genre in sorted(self._stories[lang]):
                texts = self._stories[lang][genre]
                for text in rng.sample(texts, min(200, len(texts))):
                    words = unicodedata.normalize("NFC", text[:5000]).split()
                    seen.update(w.strip(".,;:()\"'*_`#") for w in words if len(w) < 16)
            keep = (w for w in seen if w and is_drawable(w) and not set(w) & set("|*`$#_[]<>\\"))
            found[lang] = sorted(keep) or ["text"]
        return found

    @cached_property
    def running_words(self) -> dict[str, list[str]]:
        """Words by language as texts have them in a row, with no mark-up in them."""
        rng = random.Random(1)
        found: dict[str, list[str]] = {}
        for lang in LANGUAGES:
            words: list[str] = []
            for genre in sorted(self._stories[lang]):
                if genre not in ("table", "code"):
                    texts = self._stories[lang][genre]
                    for text in rng.sample(texts, min(60, len(texts))):
                        words += unicodedata.normalize("NFC", text[:3000]).split()
            keep = (w.strip(".;:()\"'") for w in words if is_drawable(w))
            found[lang] = [w for w in keep if w and not set(w) & set("|*`$#_[]<>\\")] or ["text"]
        return found


def draw_language(rng: random.Random) -> str:
    """A language with the training weights."""
    return rng.choices(LANGUAGES, LANGUAGE_WEIGHTS)[0]
