"""What scanners, copiers, faxes and cameras do to a page, with the geometry it does to boxes."""

from __future__ import annotations

import random
from dataclasses import dataclass

import cv2
import numpy as np

cv2.setNumThreads(0)
Pixels = np.ndarray
_TURNS = {90: cv2.ROTATE_90_CLOCKWISE, 180: cv2.ROTATE_180, 270: cv2.ROTATE_90_COUNTERCLOCKWISE}


@dataclass(frozen=True, kw_only=True)
class Scan:
    """Degraded pixels [H, W] and the map from pixel places before to pixel places after [3, 3]."""

    pixels: Pixels
    matrix: np.ndarray


def scan(pixels: Pixels, rng: random.Random, *, strength: float = 1.0) -> Scan:
    """Degrades a page; `strength` scales how likely each effect is (0 leaves it clean)."""
    noise = np.random.default_rng(rng.getrandbits(32))
    matrix = np.eye(3)
    paper = int(np.median(pixels[::8, ::8]))

    def happens(chance: float) -> bool:
        return rng.random() < chance * strength

    if happens(0.35):
        matrix = _warp(pixels.shape, rng)
        pixels = _warped(pixels, matrix, paper)
    if happens(0.10):
        pixels = _bleed(pixels, rng)
    if happens(0.10):
        pixels = _stroke_weight(pixels, rng)
    if happens(0.30):
        pixels = cv2.GaussianBlur(pixels, (0, 0), rng.uniform(0.3, 0.95))
    if happens(0.25):
        pixels = _low_resolution(pixels, rng)
    if happens(0.45):
        pixels = _tone(pixels, rng)
    if happens(0.30):
        pixels = _uneven_light(pixels, rng, noise)
    if happens(0.06):
        pixels = _stamp(pixels, rng)
    if happens(0.12):
        pixels = _specks(pixels, rng, noise)
    if happens(0.40):
        grain = noise.standard_normal(pixels.shape, dtype=np.float32) * rng.uniform(1, 12)
        pixels = np.clip(pixels + grain, 0, 255).astype(np.uint8)
    if happens(0.12):
        pixels = _threshold(pixels, rng)
    if happens(0.25):
        quality = [cv2.IMWRITE_JPEG_QUALITY, rng.randint(25, 85)]
        pixels = cv2.imdecode(cv2.imencode(".jpg", pixels, quality)[1], cv2.IMREAD_GRAYSCALE)
    if happens(0.03):
        pixels = 255 - pixels
    return Scan(pixels=np.ascontiguousarray(pixels), matrix=matrix)


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
    corners = np.array([[x0, y0, 1], [x1, y0, 1], [x0, y1, 1], [x1, y1, 1]]).T
    moved = matrix @ corners
    xs, ys = moved[0] / moved[2], moved[1] / moved[2]
    return float(xs.min()), float(ys.min()), float(xs.max()), float(ys.max())


def _warp(shape: tuple[int, ...], rng: random.Random) -> np.ndarray:
    height, width = shape
    angle = rng.gauss(0, 0.6) if rng.random() < 0.85 else rng.gauss(0, 2.0)
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


def _low_resolution(pixels: Pixels, rng: random.Random) -> Pixels:
    height, width = pixels.shape
    factor = rng.uniform(0.55, 0.95)
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


def _threshold(pixels: Pixels, rng: random.Random) -> Pixels:
    """Fax and bilevel scans: one threshold between the page's own ink and paper."""
    low, high = (float(v) for v in np.percentile(pixels[::4, ::4], (1, 90)))
    cut = low + (high - low) * rng.uniform(0.45, 0.8)
    return np.where(pixels > cut, 255, 0).astype(np.uint8)
