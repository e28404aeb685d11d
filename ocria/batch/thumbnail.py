"""Pictures of pages: small ones for the report, whole ones for formats that show them."""

import heapq
import io
from typing import Final

import numpy as np
from numpy.typing import NDArray
from PIL import Image

from ocria.document import Page

WIDTH_PX = 180
NUM_SLOWEST: Final = 20
NOTEWORTHY = frozenset({"failed", "truncated", "repaired"})


class Selection:
    """Chooses the pages worth a picture: those in trouble, and the slowest so far."""

    def __init__(self) -> None:
        self._slowest: list[float] = []

    def wants(self, page: Page, seconds: float) -> bool:
        """Whether this page is one of them."""
        if len(self._slowest) < NUM_SLOWEST:
            heapq.heappush(self._slowest, seconds)
            return True
        is_slow = heapq.heappushpop(self._slowest, seconds) < seconds
        return is_slow or page.status in NOTEWORTHY


def thumbnail(rgb: NDArray[np.uint8]) -> bytes:
    """A JPEG of a page, `WIDTH_PX` wide."""
    image = Image.fromarray(rgb)
    height_px = max(1, min(4 * WIDTH_PX, round(image.height * WIDTH_PX / image.width)))
    sink = io.BytesIO()
    image.resize((WIDTH_PX, height_px), Image.Resampling.BOX).save(sink, "JPEG", quality=60)
    return sink.getvalue()


def png(rgb: NDArray[np.uint8] | None) -> bytes | None:
    """A page without loss, compressed little: it is read back once."""
    if rgb is None:
        return None
    sink = io.BytesIO()
    Image.fromarray(np.ascontiguousarray(rgb)).save(sink, "PNG", compress_level=1)
    return sink.getvalue()


def from_png(data: bytes) -> NDArray[np.uint8]:
    """The page that `png` was made of."""
    return np.asarray(Image.open(io.BytesIO(data)))
