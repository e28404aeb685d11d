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
from .readback import Box, Placed, SetPage, UnfaithfulPageError, read_pages
from .scan import Scan, moved_box, moved_points, scan, turned
from .studio import Draft, Studio
from .typeset import Press

# The largest coordinate token: boxes are given in 1/511 of the image's sides.
_COORDINATE_MAX = 511
# Characters that a page must hold for its turn to be asked for.
_LEGIBLE = 40
# Side in pixels of what one row of the reader sees.
PATCH_PX = 32


@dataclass(frozen=True, kw_only=True)
class Sample:
    """A page image [H, W] uint8 and the markup that a reader of it should emit (no eos).

    `places` [len(markup)] int16 are the patches, `row * columns + column`, in which the centres of
    its characters lie; -1 where one is not printed or nobody knows where. `unsure` [patches] bool
    are those with text that has no place.
    """

    kind: str
    pixels: np.ndarray
    markup: str
    places: np.ndarray
    unsure: np.ndarray


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
    height, width = damaged.pixels.shape
    columns, patches = width // PATCH_PX, (height // PATCH_PX) * (width // PATCH_PX)
    if turn:
        # The token names the clockwise turn that makes the page upright again.
        pixels, markup = turned(damaged.pixels, turn).pixels, f"<|rot{360 - turn}|>"
        return Sample(
            kind=kind, pixels=pixels, markup=markup, unsure=np.ones(patches, bool),
            places=np.full(len(markup), -1, np.int16),
        )  # fmt: skip
    sheet = draft.manuscript.sheet
    scales = (sheet.scale * sheet.condense, sheet.scale)
    parts: list[str] = []
    centres: list[np.ndarray] = []
    unsure = np.zeros((height // PATCH_PX, columns), bool)
    for placed in page.placed:
        head = _block_head(placed, _pixel_box(placed.box, scales, damaged), width, height)
        parts += head, placed.block.content()
        centres += np.full((len(head), 2), np.nan, np.float32), placed.letters
        for box in placed.unplaced:
            x0, y0, x1, y1 = (
                max(0, int(edge // PATCH_PX)) for edge in _pixel_box(box, scales, damaged)
            )
            unsure[y0 : y1 + 1, x0 : x1 + 1] = True
    return Sample(
        kind=kind, pixels=damaged.pixels, markup="".join(parts), unsure=unsure.ravel(),
        places=_patches(centres, np.array(scales), damaged),
    )  # fmt: skip


def _pixel_box(box: Box, scales: tuple[float, float], damaged: Scan) -> Box:
    x0, y0, x1, y1 = (edge * scale for edge, scale in zip(box, scales * 2, strict=True))
    return moved_box((x0, y0, x1, y1), damaged.matrix)


def _patches(centres: list[np.ndarray], scales: np.ndarray, damaged: Scan) -> np.ndarray:
    """The patch of each of the centres [N, 2] in points; -1 for NaN and off the image."""
    if not centres:
        return np.zeros(0, np.int16)
    rows, columns = (side // PATCH_PX for side in damaged.pixels.shape)
    moved = moved_points(np.concatenate(centres) * scales, damaged.matrix) / PATCH_PX
    # Comparing with NaN is false.
    inside = ((moved >= 0) & (moved < (columns, rows))).all(1)
    x, y = np.where(inside[:, None], moved, 0).astype(np.int16).T
    return np.where(inside, y * columns + x, -1).astype(np.int16)


def _block_head(placed: Placed, box: Box, width: int, height: int) -> str:
    limits = (width, height, width, height)
    places = [
        min(_COORDINATE_MAX, max(0, round(edge / limit * _COORDINATE_MAX)))
        for edge, limit in zip(box, limits, strict=True)
    ]
    return f"<|{placed.block.type}|>" + "".join(f"<|{place}|>" for place in places)
