"""How the originals of a kind of page are worn: which scan effects are likely, and how hard."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Wear:
    """How likely each effect is, for one sort of original. Chances in [0, 1].

    `skew_deg` is the standard deviation of the larger turns, `blur_px` the widest blur and
    `resolution` the coarsest scan as a share of the picture's own: what small print survives.
    `kept` is how much turns black in a bilevel scan, as a share of the ink there was: below one,
    letters break.
    """

    warp: float = 0.35
    skew_deg: float = 1.2
    inset: float = 0.02
    bleed: float = 0.08
    stroke: float = 0.12
    uneven_ink: float = 0.06
    bands: float = 0.02
    dots: float = 0.0
    blur: float = 0.30
    low_resolution: float = 0.28
    tone: float = 0.42
    light: float = 0.28
    folds: float = 0.05
    stamp: float = 0.06
    specks: float = 0.12
    grain: float = 0.40
    threshold: float = 0.13
    jpeg: float = 0.28
    inverse: float = 0.02
    needles: float = 0.0
    pen: float = 0.01
    blur_px: float = 0.9
    resolution: float = 0.6
    kept: tuple[float, float] = (1.0, 1.8)


OFFICE = Wear()
# Files that were never on paper: now and then shrunk or packed, seldom printed and scanned.
DIGITAL = Wear(
    warp=0.06, skew_deg=0.5, inset=0.01, bleed=0.0, stroke=0.03, uneven_ink=0.0, bands=0.0,
    blur=0.15, blur_px=0.6, low_resolution=0.2, resolution=0.7, tone=0.1, light=0.03, folds=0.0,
    stamp=0.01, specks=0.01, grain=0.08, threshold=0.02, jpeg=0.3, inverse=0.02,
)  # fmt: skip
# Small print: what would wipe it out is rare and mild, or the reader would learn to invent.
FINE = Wear(
    warp=0.3, skew_deg=1.0, inset=0.0, bleed=0.05, stroke=0.1, uneven_ink=0.02, bands=0.0,
    blur=0.2, blur_px=0.6, low_resolution=0.16, resolution=0.78, tone=0.35, light=0.25, folds=0.03,
    specks=0.08, grain=0.3, threshold=0.08,
)  # fmt: skip
# Print and typescript of long ago: ink of many strengths, the leaf's back, copies of copies.
OLD = Wear(
    warp=0.6, skew_deg=1.6, inset=0.08, bleed=0.3, stroke=0.4, uneven_ink=0.5, blur=0.4,
    low_resolution=0.4, tone=0.6, light=0.45, specks=0.45, grain=0.5, threshold=0.35, jpeg=0.3,
    inverse=0.0,
)  # fmt: skip
# Till rolls: faded heads, folds, photographed or scanned on something larger.
THERMAL = Wear(
    warp=0.55, skew_deg=1.5, inset=0.35, bleed=0.05, stroke=0.3, uneven_ink=0.35, bands=0.35,
    dots=0.12, blur=0.4, low_resolution=0.4, tone=0.6, light=0.4, folds=0.4, stamp=0.05,
    threshold=0.16, jpeg=0.4, inverse=0.0,
)  # fmt: skip
# Rolls as they are handed in: thermal and needle printers, crumpled, written and stamped on.
TILL = Wear(
    warp=0.6, skew_deg=1.3, inset=0.25, bleed=0.05, stroke=0.35, uneven_ink=0.3, bands=0.25,
    dots=0.06, blur=0.4, low_resolution=0.45, resolution=0.55, tone=0.6, light=0.35, folds=0.35,
    stamp=0.12, threshold=0.22, jpeg=0.4, inverse=0.0, needles=0.15, pen=0.15,
)  # fmt: skip
# Reports and magazines of the 1990s, scanned bilevel: thin or swollen strokes, specks.
PRINTED = Wear(
    warp=0.5, skew_deg=1.0, inset=0.03, bleed=0.25, stroke=0.5, uneven_ink=0.15, blur=0.4,
    blur_px=0.8, low_resolution=0.25, resolution=0.7, tone=0.6, light=0.3, specks=0.5, grain=0.5,
    threshold=0.6, jpeg=0.15, inverse=0.0, kept=(0.8, 2.0),
)  # fmt: skip
