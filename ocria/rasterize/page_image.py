"""What leaves this room: page pictures, failures, and the size a picture is asked for in."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ocria.document import Rotation
from ocria.errors import PageErrorCode
from ocria.rasterize.text_layer import TextLayer

NOMINAL_DPI = 150.0
"""Resolution a PDF page is thought of at before `fit` chooses its size in pixels."""

POINTS_PER_INCH = 72.0

SizeFit = Callable[[int, int], tuple[int, int]]
"""Maps (height_px, width_px) to the (height_px, width_px) that the model reads. Crosses into
worker processes, so it must be picklable. May raise `PageError` for an impossible shape."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderTarget:
    """The size in which pages are wanted.

    Attributes:
        fit: the model's own size rule.
        dpi: None renders a PDF page straight at `fit` of its 150 dpi size; a number renders it
            at that resolution and leaves the resize to the caller. Images are always handed
            over at their native pixels.
    """

    fit: SizeFit
    dpi: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class PageImage:
    """One page, upright.

    Attributes:
        number: 1-based.
        rgb: uint8 [H, W, 3], read-only, C-contiguous.
        width_pt: width after un-rotation, in points, /UserUnit of a PDF page applied. An image
            without a believable resolution tag counts as 96 dpi (1 px = 0.75 pt).
        height_pt: height after un-rotation, in points.
        rotation: clockwise quarter turn that was applied to make the page upright: /Rotate of
            a PDF, Exif orientation of an image.
        seconds: spent on rendering or decoding, in the worker.
        text: the page's text layer; None if it was not asked for, or could not be read.
    """

    number: int
    rgb: NDArray[np.uint8]
    width_pt: float
    height_pt: float
    rotation: Rotation
    seconds: float
    text: TextLayer | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFailed:
    """A page without a picture. The size is 0 where it could not be found out."""

    number: int
    code: PageErrorCode
    message: str
    width_pt: float = 0.0
    height_pt: float = 0.0
    rotation: Rotation = 0
    seconds: float = 0.0
