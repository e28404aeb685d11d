"""The model's own page size: Qwen2-VL's smart resize, and the resampling that goes with it."""

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ocria.errors import PageError

MAX_ASPECT = 200.0


@dataclass(frozen=True, kw_only=True, slots=True)
class SizeRule:
    """Maps a picture's size to the size that the model reads; picklable, so workers can use it.

    Sides become multiples of `factor`, the area lands within the two bounds, the shape changes as
    little as that allows.

    Source: Wang et al. 2024, Qwen2-VL, section 2.1 (dynamic resolution), in the arithmetic of the
    reference processor, whose roundings decide between neighbouring sizes.

    Attributes:
        factor: side of a merged patch in pixels (patch size times merge size).
        min_pixels: smallest area; smaller pictures are enlarged.
        max_pixels: largest area.
    """

    factor: int
    min_pixels: int
    max_pixels: int

    def __call__(self, height_px: int, width_px: int) -> tuple[int, int]:
        """Returns (height_px, width_px).

        Raises:
            PageError: `pixel_limit` for a picture more than 200 times longer than wide.
        """
        long, short = max(height_px, width_px), min(height_px, width_px)
        if long / short > MAX_ASPECT:
            raise PageError(
                "pixel_limit",
                f"{width_px} x {height_px} pixels are too long a strip (more than "
                f"{MAX_ASPECT:.0f} to 1): cut it into pages",
            )
        sides = (height_px, width_px)
        height, width = (round(side / self.factor) for side in sides)
        if height * width * self.factor**2 > self.max_pixels:
            shrink = math.sqrt(height_px * width_px / self.max_pixels)
            height, width = (max(1, math.floor(side / shrink / self.factor)) for side in sides)
        elif height * width * self.factor**2 < self.min_pixels:
            enlarge = math.sqrt(self.min_pixels / (height_px * width_px))
            height, width = (math.ceil(side * enlarge / self.factor) for side in sides)
        return height * self.factor, width * self.factor


def resize(pixels: NDArray[np.uint8], height_px: int, width_px: int) -> NDArray[np.uint8]:
    """Resamples uint8 [H, W, C], C being 1 or 3, to [height_px, width_px, C], bicubic.

    Pillow's filter widens with the reduction (antialiasing), as the reference processor's does.
    A picture that has the size already is returned as it is.
    """
    height, width, channels = pixels.shape
    if (height, width) == (height_px, width_px):
        return pixels
    image = Image.fromarray(pixels[..., 0] if channels == 1 else pixels)
    resized = np.asarray(image.resize((width_px, height_px), Image.Resampling.BICUBIC))
    return resized.reshape(height_px, width_px, channels)
