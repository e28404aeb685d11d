"""What scanners, copiers, faxes and cameras do to a page, with the geometry it does to boxes."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace
from functools import cache

import cv2
import numpy as np

from .wear import OFFICE, Wear

cv2.setNumThreads(0)
Pixels = np.ndarray
_TURNS = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Degraded pixels [H, W] and the map from pixel places before to pixel places after [3, 3]."""

    pixels: Pixels
    matrix: np.ndarray


def scan(pixels: Pixels, rng: random.Random, *, strength: float = 1.0, wear: Wear = OFFICE) -> Scan:
    """Degrades a page; `strength` scales how likely each effect is (0 leaves it clean)."""
    noise = np.random.default_rng(rng.getrandbits(32))
    matrix = np.eye(3)
    paper = int(np.median(pixels[::8, ::8]))

    def happens(chance: float) -> bool:
        return rng.random() < chance * strength

    if happens(wear.inset):
        matrix = _inset(pixels.shape, rng)
        ground = rng.choice((paper, paper, 255, rng.randint(20, 235)))
        pixels = _warped(pixels, matrix, ground)
    elif happens(wear.warp):
        matrix = _warp(pixels.shape, rng, wear.skew_deg)
        pixels = _warped(pixels, matrix, paper)
    faint = happens(wear.uneven_ink)
    if faint:
        pixels = _uneven_ink(pixels, rng, noise)
    if happens(wear.bands):
        pixels = _bands(pixels, rng, noise)
    if happens(wear.needles):
        pixels = _needles(pixels, rng)
    elif happens(wear.dots):
        pixels = _dots(pixels, rng)
    if happens(wear.bleed):
        pixels = _bleed(pixels, rng)
    if happens(wear.stroke):
        pixels = _stroke_weight(pixels, rng)
    if happens(wear.blur):
        pixels = cv2.GaussianBlur(pixels, (0, 0), rng.uniform(0.3, wear.blur_px))
    if happens(wear.low_resolution):
        pixels = _low_resolution(pixels, rng, wear.resolution)
    if faint:
        # One threshold for all of it would lose the faint half.
        wear = replace(wear, threshold=0.0)
    return Scan(pixels=_captured(pixels, rng, noise, wear, strength), matrix=matrix)


def _captured(
    pixels: Pixels, rng: random.Random, noise: np.random.Generator, wear: Wear, strength: float
) -> Pixels:
    """What light, sensor and file do: nothing that moves ink."""

    def happens(chance: float) -> bool:
        return rng.random() < chance * strength

    # Bilevel scanners see to their light; uneven light would take half of the print away.
    bilevel = happens(wear.threshold)
    if not bilevel and happens(wear.tone):
        pixels = _tone(pixels, rng)
    if not bilevel and happens(wear.light):
        pixels = _uneven_light(pixels, rng, noise)
    if not bilevel and happens(wear.folds):
        pixels = _folds(pixels, rng)
    if happens(wear.stamp):
        pixels = _stamp(pixels, rng)
    if happens(wear.pen):
        pixels = _pen(pixels, rng)
    if happens(wear.specks):
        pixels = _specks(pixels, rng, noise)
    if happens(wear.grain):
        pixels = _grain(pixels, rng)
    if bilevel:
        pixels = _threshold(pixels, rng, wear.kept)
    if happens(wear.jpeg):
        quality = [cv2.IMWRITE_JPEG_QUALITY, rng.randint(22, 85)]
        pixels = cv2.imdecode(cv2.imencode(".jpg", pixels, quality)[1], cv2.IMREAD_GRAYSCALE)
    if happens(wear.inverse):
        pixels = 255 - pixels
    return np.ascontiguousarray(pixels)


def turned(pixels: Pixels, degrees: int) -> Scan:
    """The page turned clockwise by 90, 180 or 270 degrees."""
    height, width = pixels.shape
    matrix = {
        90: np.array([[0, -1, height], [1, 0, 0], [0, 0, 1.0]]),
        180: np.array([[-1, 0, width], [0, -1, height], [0, 0, 1.0]]),
        270: np.array([[0, 1, 0], [-1, 0, width], [0, 0, 1.0]]),
    }[degrees]
    return Scan(pixels=cv2.rotate(pixels, _TURNS[degrees]), matrix=matrix)


def moved_box(
    box: tuple[float, float, float, float], matrix: np.ndarray
) -> tuple[float, float, float, float]:
    """The axis-parallel box around a box that went through `matrix` (pixels)."""
    x0, y0, x1, y1 = box
    xs, ys = moved_points(np.array([[x0, y0], [x1, y0], [x0, y1], [x1, y1]]), matrix).T
    return float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())


def moved_points(points: np.ndarray, matrix: np.ndarray) -> np.ndarray:
    """Points [N, 2] that went through `matrix` (pixels)."""
    moved = points @ matrix[:, :2].T + matrix[:, 2]
    return moved[:, :2] / moved[:, 2:]


def _inset(shape: tuple[int, ...], rng: random.Random) -> np.ndarray:
    """The page as a smaller thing on a scanner's bed or a table."""
    height, width = shape
    factor = rng.uniform(0.72, 0.97)
    matrix = cv2.getRotationMatrix2D((0, 0), rng.gauss(0, 1.0), factor)
    matrix[0, 2] += rng.uniform(0, 1 - factor) * width
    matrix[1, 2] += rng.uniform(0, 1 - factor) * height
    return np.vstack([matrix, [0, 0, 1]])


def _warp(shape: tuple[int, ...], rng: random.Random, skew_deg: float) -> np.ndarray:
    height, width = shape
    # Small turns mostly; none that a feeder would not give.
    angle = rng.gauss(0, 0.5) if rng.random() < 0.7 else rng.gauss(0, skew_deg)
    angle = max(-3.2, min(3.2, angle))
    affine = cv2.getRotationMatrix2D((width / 2, height / 2), angle, rng.uniform(0.96, 1.0))
    matrix = np.vstack([affine, [0, 0, 1]])
    if rng.random() < 0.2:
        reach = 0.012 * min(height, width)
        corners = np.array([[0, 0], [width, 0], [0, height], [width, height]], np.float32)
        shaken = corners + np.array(
            [[rng.uniform(-reach, reach) for _ in range(2)] for _ in range(4)], np.float32
        )
        matrix = cv2.getPerspectiveTransform(corners, shaken) @ matrix
    return matrix


def _warped(pixels: Pixels, matrix: np.ndarray, paper: int) -> Pixels:
    height, width = pixels.shape
    return cv2.warpPerspective(pixels, matrix, (width, height), borderValue=paper)


def _uneven_ink(pixels: Pixels, rng: random.Random, noise: np.random.Generator) -> Pixels:
    """Ink that took in some places and not in others: worn type, dry ribbon."""
    height, width = pixels.shape
    grid = rng.choice((6, 10, 24, 60))
    coarse = noise.random((height // grid + 2, width // grid + 2), dtype=np.float32)
    strength = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_LINEAR)
    return _inked(pixels, 1 - rng.uniform(0.2, 0.65) * strength)


def _bands(pixels: Pixels, rng: random.Random, noise: np.random.Generator) -> Pixels:
    """A print head's faint stripes down or across the roll."""
    height, width = pixels.shape
    along = rng.random() < 0.6
    coarse = noise.random((1, rng.randint(3, 40)), dtype=np.float32)
    strength = cv2.resize(coarse, (width if along else height, 1), interpolation=cv2.INTER_LINEAR)
    strength = 1 - rng.uniform(0.2, 0.65) * strength
    return _inked(pixels, strength if along else strength.T)


def _inked(pixels: Pixels, strength: np.ndarray) -> Pixels:
    """Ink scaled towards the paper's tone by `strength` in [0, 1]."""
    paper = float(np.median(pixels[::8, ::8]))
    return np.clip(paper + (pixels - np.float32(paper)) * strength, 0, 255).astype(np.uint8)


def _dots(pixels: Pixels, rng: random.Random) -> Pixels:
    """A needle printer's gaps between rows and columns of dots."""
    paper, every = int(np.median(pixels[::8, ::8])), rng.choice((3, 3, 4))
    out = pixels.copy()
    mix = rng.uniform(0.35, 0.7)
    for part in (np.s_[::every], np.s_[:, ::every]):
        out[part] = (out[part] * (1 - mix) + paper * mix).astype(np.uint8)
    return out


def _needles(pixels: Pixels, rng: random.Random) -> Pixels:
    """A needle printer's dots: print at half the resolution, each dot full or none."""
    height, width = pixels.shape
    paper = int(np.median(pixels[::8, ::8]))
    small = cv2.resize(pixels, (width // 2, height // 2), interpolation=cv2.INTER_AREA)
    # Half a dot's depth: strokes thinner than a needle print as a full one.
    ink = float(np.percentile(small[::3, ::3], 1.5))
    cut = paper - (paper - ink) * rng.uniform(0.3, 0.45)
    dots = np.where(small < cut, ink, paper).astype(np.uint8)
    full = cv2.resize(dots, (width, height), interpolation=cv2.INTER_NEAREST)
    return cv2.GaussianBlur(full, (0, 0), rng.uniform(0.4, 0.9))


def _pen(pixels: Pixels, rng: random.Random) -> Pixels:
    """A pen's ticks, rings, strokes and scrawls: ink that is not text, and lets print show."""
    height, width = pixels.shape
    layer = np.full_like(pixels, 255)
    shade = rng.randint(60, 170)
    for _ in range(rng.randint(1, 3)):
        x, y = rng.randrange(width), rng.randrange(height)
        reach = min(height, width) * rng.uniform(0.03, 0.25)
        points = [(x, y)]
        for step in range(rng.randint(2, 14)):
            lift = reach * 0.4 * (-1) ** step
            points.append((int(x + reach * step / 7), int(y + lift * rng.uniform(0.2, 1.0))))
        curve = np.array(points, np.int32)
        if rng.random() < 0.3:
            axes = (int(reach) + 2, int(reach * 0.4) + 2)
            cv2.ellipse(layer, (x, y), axes, rng.randint(-20, 20), 0, 340, shade, 2, cv2.LINE_AA)
        else:
            cv2.polylines(layer, [curve], False, shade, rng.randint(1, 3), cv2.LINE_AA)
    return cv2.min(pixels, layer)


def _folds(pixels: Pixels, rng: random.Random) -> Pixels:
    """Creases: light on one side of a line, shade on the other. Made at an eighth of the size."""
    height, width = pixels.shape
    ys, xs = np.mgrid[0 : height // 8 + 1, 0 : width // 8 + 1].astype(np.float32) * 8
    shade = np.zeros_like(xs)
    for _ in range(rng.randint(1, 7)):
        angle = rng.uniform(0, np.pi)
        away = (xs - rng.uniform(0, width)) * np.cos(angle)
        away += (ys - rng.uniform(0, height)) * np.sin(angle)
        shade += (
            np.tanh(away / 14) * np.exp(-np.abs(away) / rng.uniform(8, 90)) * rng.uniform(8, 42)
        )
    full = cv2.resize(shade, (width, height), interpolation=cv2.INTER_LINEAR)
    return np.clip(pixels + full, 0, 255).astype(np.uint8)


@cache
def _grain_field() -> np.ndarray:
    # Drawn once a process: drawing it for each page cost more than all other effects.
    return np.random.default_rng(1).standard_normal((2304, 2304), dtype=np.float32)


def _grain(pixels: Pixels, rng: random.Random) -> Pixels:
    height, width = pixels.shape
    field = _grain_field()
    top, left = rng.randint(0, 2304 - height), rng.randint(0, 2304 - width)
    grain = field[top : top + height, left : left + width]
    noisy = cv2.scaleAdd(grain, rng.uniform(1, 13), pixels.astype(np.float32))
    return np.clip(noisy, 0, 255).astype(np.uint8)


def _bleed(pixels: Pixels, rng: random.Random) -> Pixels:
    """The back of the leaf, mirrored, blurred and faint."""
    back = cv2.GaussianBlur(pixels[:, ::-1], (0, 0), rng.uniform(1, 2.5))
    back = np.roll(back, rng.randint(-60, 60), axis=0)
    fade = rng.uniform(0.05, 0.22)
    return cv2.min(pixels, cv2.addWeighted(back, fade, back, 0, 255 * (1 - fade)))


def _stroke_weight(pixels: Pixels, rng: random.Random) -> Pixels:
    """Ink spread or ink loss, by a small kernel mixed with the original."""
    kernel = np.ones((2, 2), np.uint8)
    changed = (cv2.erode if rng.random() < 0.6 else cv2.dilate)(pixels, kernel)
    mix = rng.uniform(0.2, 0.8)
    return cv2.addWeighted(changed, mix, pixels, 1 - mix, 0)


def _low_resolution(pixels: Pixels, rng: random.Random, coarsest: float) -> Pixels:
    height, width = pixels.shape
    factor = rng.uniform(coarsest, 0.95)
    small = cv2.resize(pixels, None, fx=factor, fy=factor, interpolation=cv2.INTER_AREA)
    back = rng.choice((cv2.INTER_LINEAR, cv2.INTER_CUBIC))
    return cv2.resize(small, (width, height), interpolation=back)


def _tone(pixels: Pixels, rng: random.Random) -> Pixels:
    """Grey paper and faded ink."""
    dark, light = rng.uniform(0, 110), rng.uniform(190, 255)
    table = np.clip(dark + np.arange(256) / 255 * (light - dark), 0, 255).astype(np.uint8)
    return cv2.LUT(pixels, table)


def _uneven_light(pixels: Pixels, rng: random.Random, noise: np.random.Generator) -> Pixels:
    height, width = pixels.shape
    coarse = noise.random((rng.randint(2, 4), rng.randint(2, 4)), dtype=np.float32)
    field = cv2.resize(coarse, (width, height), interpolation=cv2.INTER_CUBIC)
    lit = pixels + (field - 0.6) * rng.uniform(10, 60)
    if rng.random() < 0.3:
        shade = np.ones(width, np.float32)
        reach = rng.randint(width // 30 + 1, width // 6 + 2)
        shade[:reach] = np.linspace(rng.uniform(0.3, 0.8), 1, reach)
        lit = lit * (shade if rng.random() < 0.5 else shade[::-1])
    return np.clip(lit, 0, 255).astype(np.uint8)


def _stamp(pixels: Pixels, rng: random.Random) -> Pixels:
    """A faint ring or line across the page: ink that is not text."""
    height, width = pixels.shape
    layer = np.full_like(pixels, 255)
    centre = (rng.randrange(width), rng.randrange(height))
    if rng.random() < 0.6:
        radius = rng.randint(20, max(21, min(height, width) // 8))
        cv2.circle(layer, centre, radius, rng.randint(90, 190), rng.randint(2, 5), cv2.LINE_AA)
        cv2.circle(layer, centre, radius * 4 // 5, rng.randint(90, 190), 1, cv2.LINE_AA)
    else:
        end = (rng.randrange(width), rng.randrange(height))
        cv2.line(layer, centre, end, rng.randint(120, 200), rng.randint(1, 3), cv2.LINE_AA)
    return cv2.min(pixels, layer)


def _specks(pixels: Pixels, rng: random.Random, noise: np.random.Generator) -> Pixels:
    height, width = pixels.shape
    out = pixels.copy()
    count = int(height * width * rng.uniform(0.00002, 0.0006))
    ys, xs = noise.integers(0, height, count), noise.integers(0, width, count)
    out[ys, xs] = rng.choice((0, 40, 255))
    return out


def _threshold(
    pixels: Pixels, rng: random.Random, kept: tuple[float, float] = OFFICE.kept
) -> Pixels:
    """Fax and bilevel scans: ink against the paper around it, so that no shadow turns black.

    The cut is where about as much turns black as there was ink; a fixed one wipes out fine print,
    whose strokes are grey.
    """
    height, width = pixels.shape
    small = cv2.resize(pixels, (max(2, width // 24), max(2, height // 24)))
    around = cv2.blur(cv2.dilate(small, np.ones((3, 3), np.uint8)), (3, 3))
    paper = cv2.resize(around, (width, height), interpolation=cv2.INTER_LINEAR)
    depth = paper.astype(np.float32) - pixels
    seen = depth[::3, ::3]
    darkest = max(40.0, float(np.percentile(seen, 99.5)))
    # Grain lies around zero; only what is well below the paper is ink.
    ink = float(np.where(seen > 0.2 * darkest, seen, 0).mean()) / darkest
    share = min(0.5, max(1e-4, ink * rng.uniform(*kept)))
    cut = max(0.2 * darkest, float(np.quantile(seen, 1 - share)))
    if rng.random() < 0.35:
        return np.where(depth < cut, 255, 0).astype(np.uint8)
    # Most bilevel scans are finer than what the reader gets, and come out grey at the edges.
    fine = cv2.resize(cut - depth, None, fx=2, fy=2, interpolation=cv2.INTER_CUBIC)
    bilevel = cv2.threshold(fine, 0, 255, cv2.THRESH_BINARY)[1].astype(np.uint8)
    return cv2.resize(bilevel, (width, height), interpolation=cv2.INTER_AREA)
