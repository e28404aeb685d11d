"""From a kind and a pixel shape to finished samples: grey pixels and their markup."""

from __future__ import annotations

import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import typst

from .corpus import Corpus
from .fonts import FontShelf
from .kinds import KINDS
from .readback import Placed, SetPage, UnfaithfulPageError, read_pages
from .scan import moved_box, scan, turned
from .studio import Draft, Studio
from .typeset import Press

# The largest coordinate token: boxes are given in 1/511 of the image's sides.
_COORDINATE_MAX = 511
# Characters that a page must hold for its turn to be asked for.
_LEGIBLE = 40


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A page image [H, W] uint8 and the markup that a reader of it should emit (no eos)."""

    kind: str
    pixels: np.ndarray
    markup: str


def open_studio(corpus: Path, fonts: Path, *, held_out: bool = False) -> Studio:
    """A studio over a corpus folder and a font folder."""
    shelf = FontShelf(fonts)
    return Studio(corpus=Corpus(corpus, held_out=held_out), shelf=shelf, press=Press(shelf))


def make_samples(
    studio: Studio,
    kind: str,
    rng: random.Random,
    *,
    width_px: int,
    height_px: int,
    strength: float = 1.0,
    turn: int = 0,
) -> list[Sample]:
    """The pages of one document of a kind; an empty list where none came out exact.

    `strength` scales the scan effects (0: clean pages); `turn` is the clockwise turn, in degrees,
    that the scanner gave the page. The markup of a turned page is the turn that undoes it.
    """
    size = (height_px, width_px) if turn in (90, 270) else (width_px, height_px)
    draft = KINDS[kind](studio, rng, *size)
    try:
        pdf = studio.press.print(draft.manuscript)
        pages = read_pages(pdf, draft.manuscript, draft.pages)
    except (UnfaithfulPageError, typst.TypstError):
        return []
    finished = [_finished(draft, kind, page, rng, turn, strength) for page in pages]
    # A page with next to nothing on it does not show which way is up.
    return finished if not turn else [s for s, p in zip(finished, pages, strict=True) if _tells(p)]


def _tells(page: SetPage) -> bool:
    return sum(len(placed.block.ink) for placed in page.placed) >= _LEGIBLE


def _finished(
    draft: Draft, kind: str, page: SetPage, rng: random.Random, turn: int, strength: float
) -> Sample:
    strength = strength if rng.random() < 0.75 else 0.0
    damaged = scan(page.pixels, rng, strength=strength, wear=draft.wear)
    if turn:
        # The token names the clockwise turn that makes the page upright again.
        pixels = turned(damaged.pixels, turn).pixels
        return Sample(kind=kind, pixels=pixels, markup=f"<|rot{360 - turn}|>")
    sheet = draft.manuscript.sheet
    scales = (sheet.scale * sheet.condense, sheet.scale) * 2
    height, width = damaged.pixels.shape
    parts = []
    for placed in page.placed:
        x0, y0, x1, y1 = (edge * s for edge, s in zip(placed.box, scales, strict=True))
        box = moved_box((x0, y0, x1, y1), damaged.matrix)
        parts.append(_block_markup(placed, box, width, height))
    return Sample(kind=kind, pixels=damaged.pixels, markup="".join(parts))


def _block_markup(
    placed: Placed, box: tuple[float, float, float, float], width: int, height: int
) -> str:
    limits = (width, height, width, height)
    places = [
        min(_COORDINATE_MAX, max(0, round(edge / limit * _COORDINATE_MAX)))
        for edge, limit in zip(box, limits, strict=True)
    ]
    coordinates = "".join(f"<|{place}|>" for place in places)
    return f"<|{placed.block.type}|>{coordinates}{placed.block.content()}"
