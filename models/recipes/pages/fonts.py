"""Which font families can set which language."""

from __future__ import annotations

import json
import random
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path

import typst

SERIF = ("serif", "slab")
SANS = ("sans", "condensed")
MONO = ("mono", "typewriter")
TEXT = ("serif", "serif", "sans")


@dataclass(frozen=True, kw_only=True)
class Family:
    """A typst family name with what its files offer."""

    name: str
    category: str
    styles: frozenset[str]
    vietnamese: bool


class FontShelf:
    """The usable families of a font folder.

    The folder holds a `fonts.json` that lists each file's style (r, b, i), category and coverage.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        found = typst.Fonts(
            include_system_fonts=False, include_embedded_fonts=False, font_paths=[str(folder)]
        )
        names = {Path(font.path).name: font.family for font in found.fonts() if font.path}
        grouped: dict[str, list[dict[str, object]]] = defaultdict(list)
        for entry in json.loads((folder / "fonts.json").read_text(encoding="utf-8")):
            if entry["file"] in names and _is_usable(entry):
                grouped[names[entry["file"]]].append(entry)
        self.scripts = _scripts(folder, names)
        self.maths = sorted({name for name in names.values() if name.endswith(" Math")})
        families = (_family(name, entries) for name, entries in sorted(grouped.items()))
        self.families = [family for family in families if "r" in family.styles]
        self._chosen: dict[tuple[tuple[str, ...], bool], list[Family]] = {}

    def draw(self, rng: random.Random, *, lang: str, categories: tuple[str, ...]) -> Family:
        """A family of one of the categories (drawn first, so repeats weigh) that covers `lang`."""
        key = ((rng.choice(categories),), lang == "vi")
        if key not in self._chosen:
            self._chosen[key] = [
                family
                for family in self.families
                if family.category in key[0] and (family.vietnamese or lang != "vi")
            ]
        return rng.choice(self._chosen[key] or self.families)

    def named(self, rng: random.Random, names: tuple[str, ...], *, lang: str) -> Family:
        """One of the named families that covers `lang`; any serif where the folder has none."""
        found = [f for f in self.families if f.name in names and (f.vietnamese or lang != "vi")]
        return rng.choice(found) if found else self.draw(rng, lang=lang, categories=SERIF)


def _scripts(folder: Path, names: dict[str, str]) -> dict[str, list[str]]:
    """Family names by script that a reader of Latin print cannot read: gr, cy, kanji."""
    found: dict[str, set[str]] = {"gr": set(), "cy": set(), "kanji": set()}
    for entry in json.loads((folder / "fonts.json").read_text(encoding="utf-8")):
        for script in found:
            if entry[script] and entry["style"] == "r" and entry["file"] in names:
                found[script].add(names[entry["file"]])
    return {script: sorted(families) for script, families in found.items()}


def _is_usable(entry: dict[str, object]) -> bool:
    covers = entry["ok"] and entry["curly"] and float(str(entry["la"])) >= 0.93
    return bool(covers and not entry["ascii_missing"] and not entry["unicase"])


def _family(name: str, entries: list[dict[str, object]]) -> Family:
    regular = next((e for e in entries if e["style"] == "r"), entries[0])
    return Family(
        name=name,
        category=str(regular["cat"]),
        styles=frozenset(str(e["style"]) for e in entries),
        vietnamese=all(bool(e["vi"]) for e in entries),
    )
