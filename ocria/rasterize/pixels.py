"""The picture of a page as a worker hands it over, and the limit on its size."""

from dataclasses import dataclass

from ocria.document import Rotation
from ocria.errors import PageError


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pixels:
    """Upright RGB pixels, `data` being height_px * width_px * 3 bytes, row by row."""

    height_px: int
    width_px: int
    data: bytes | bytearray
    width_pt: float
    height_pt: float
    rotation: Rotation


def check_pixels(height_px: int, width_px: int, max_pixels: int, advice: str) -> None:
    """Refuses a picture before memory is taken for it.

    Raises:
        PageError: `pixel_limit`.
    """
    if height_px * width_px > max_pixels:
        raise PageError(
            "pixel_limit",
            f"{width_px} x {height_px} pixels are more than the limit of {max_pixels:,}: {advice}",
        )
