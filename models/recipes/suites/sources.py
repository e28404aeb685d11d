"""Text that training never sees, and font families by what they can draw."""

from __future__ import annotations

import json
import random
import re
import unicodedata
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import typst

from ocria.models.recipes.pages.corpus import is_held_out

_MARKUP = re.compile(r"[`*_#|<>{}\[\]\\$~^=]|https?:|&\w+;")
_SPACE = re.compile(r"\s+")
_BODY = frozenset({"serif", "sans"})


@dataclass(frozen=True, kw_only=True)
class Sources:
    """A corpus folder (`*.jsonl`) and a font folder (with `fonts.json`)."""

    corpus: Path
    fonts: Path

    def passage(
        self, rng: random.Random, *, lang: str, chars: int, files: str, longest: int = 620
    ) -> list[str]:
        """Consecutive clean paragraphs of one held-out document, `chars` characters or more.

        `files` is a glob of corpus files, `longest` the length of the longest paragraph.
        """
        texts = self._texts(files, lang)
        for _ in range(600):
            found = clean_paragraphs(rng.choice(texts), lang=lang, longest=longest)
            lengths = [len(text) for text in found]
            starts = [s for s in range(len(found)) if sum(lengths[s:]) >= chars]
            if starts:
                start = rng.choice(starts)
                ends = (e for e in range(start, len(found)) if sum(lengths[start : e + 1]) >= chars)
                return found[start : next(ends) + 1]
        raise ValueError(f"no held-out document of {files} has {chars} clean characters")

    def words(self, rng: random.Random, *, count: int) -> list[str]:
        """English words of held-out prose, each of letters alone."""
        return rng.choices(self._words, k=count)

    def family(self, rng: random.Random, *, covers: str = "la", mono: bool = False) -> str:
        """A family that covers Latin, Vietnamese (vi), Greek (gr), Cyrillic (cy) or Japanese."""
        return rng.choice(self._families[(covers, mono)])

    def _texts(self, files: str, lang: str) -> list[str]:
        key = (files, lang)
        if key not in self._cache:
            documents = (
                json.loads(line)
                for path in sorted(self.corpus.glob(files))
                for line in path.read_text(encoding="utf-8").split("\n")
                if line
            )
            self._cache[key] = [
                document["text"]
                for document in documents
                if document["lang"] == lang and is_held_out(document["id"])
            ]
        return self._cache[key]

    @cached_property
    def _cache(self) -> dict[tuple[str, str], list[str]]:
        return {}

    @cached_property
    def _words(self) -> list[str]:
        texts = self._texts("en_books.jsonl", "en")
        found = {word for text in texts for word in text.split() if word.isalpha()}
        return sorted(word for word in found if word.isascii() and 3 <= len(word) <= 11)

    @cached_property
    def _families(self) -> dict[tuple[str, bool], list[str]]:
        fonts = typst.Fonts(
            include_system_fonts=False, include_embedded_fonts=False, font_paths=[str(self.fonts)]
        )
        names = {Path(font.path).name: font.family for font in fonts.fonts() if font.path}
        entries = json.loads((self.fonts / "fonts.json").read_text(encoding="utf-8"))
        chosen: dict[tuple[str, bool], set[str]] = {}
        for entry in entries:
            if entry["file"] not in names or entry["style"] != "r" or not entry["ok"]:
                continue
            for key in _uses(entry):
                chosen.setdefault(key, set()).add(names[entry["file"]])
        return {key: sorted(found) for key, found in chosen.items()}


def clean_paragraphs(text: str, *, lang: str, longest: int) -> list[str]:
    """Paragraphs without any mark-up, 40 characters to `longest`, on one line each."""
    shortest = 20 if lang == "ja" else 40
    found = []
    for chunk in re.split(r"\n\s*\n", unicodedata.normalize("NFC", text)):
        line = _SPACE.sub(" ", chunk).strip()
        is_item = re.match(r"[-•+]|\d+[.)] ", line)
        fits = shortest <= len(line) <= longest and not _MARKUP.search(line) and not is_item
        if fits and (lang != "vi" or _is_vietnamese(line)):
            found.append(line)
    return found


def _is_vietnamese(line: str) -> bool:
    """Help texts are translated in part only: an eighth of the letters must carry marks."""
    return sum(not char.isascii() for char in line) * 8 >= len(line)


def _uses(entry: dict[str, object]) -> list[tuple[str, bool]]:
    if entry["cat"] == "jp" and int(str(entry["kanji"])) > 6000:
        return [("ja", False)]
    if entry["ascii_missing"] or entry["unicase"] or not entry["curly"]:
        return []
    if entry["cat"] == "mono":
        return [("la", True)]
    if entry["cat"] not in _BODY or float(str(entry["la"])) < 0.99:
        return []
    return [("la", False), *((key, False) for key in ("vi", "gr", "cy") if entry[key])]
