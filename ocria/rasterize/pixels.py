"""The picture of a page as a worker hands it over, its size on paper, and the limit on it."""

from collections.abc import Callable
from dataclasses import dataclass

from ocria.document import Rotation
from ocria.errors import PageError


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSize:
    """How large an upright page is on paper, and the turn that made it upright; 0 if unknown."""

    width_pt: float = 0.0
    height_pt: float = 0.0
    rotation: Rotation = 0


Announce = Callable[[PageSize], None]
"""Is told a page's size as soon as it is known: making the picture may still fail."""


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class Pixels:
    """Upright RGB pixels, `data` being height_px * width_px * 3 bytes, row by row."""

    height_px: int
    width_px: int
    data: bytes | bytearray


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
