"""Image files to upright RGB pixels with Pillow. Runs in a worker process only."""

import io
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
from PIL import ExifTags, Image, ImageOps, UnidentifiedImageError

from ocria.document import Rotation
from ocria.errors import InputError, PageError
from ocria.rasterize.page_image import POINTS_PER_INCH, RenderTarget
from ocria.rasterize.pixels import Announce, PageSize, Pixels, check_pixels

DEFAULT_DPI = 96.0
"""For images without a believable resolution tag: one CSS pixel, 0.75 pt."""

FORMATS = ("PNG", "JPEG", "TIFF", "WEBP", "BMP", "GIF")
"""Only these decoders are tried: each further one is more code open to hostile bytes."""

# Exif orientation: clockwise quarter turn that makes it upright (mirrored ones included).
_TURNS: dict[int, Rotation] = {3: 180, 4: 180, 5: 90, 6: 90, 7: 270, 8: 270}
_LYING = (5, 6, 7, 8)
_BELIEVABLE_DPI = (36.0, 4800.0)
_BAND_ROWS = 512
_REDUCED_COPY = 1
_SUBFILE_TYPE_TAG = 254


class ImagePages:
    """The frames of a TIFF file, or the one picture of any other image file.

    Further frames of GIF, WebP and JPEG are animation or previews, not pages.

    Raises:
        InputError: the header cannot be read.
    """

    def __init__(self, source: Path | bytes, *, max_pixels: int) -> None:
        self._max_pixels = max_pixels
        # The size is checked here, before decoding, so Pillow's own limit would only be in the way.
        Image.MAX_IMAGE_PIXELS = None
        # Odd metadata is no reason to stop, and nobody reads a worker's warnings.
        warnings.simplefilter("ignore")
        file = io.BytesIO(source) if isinstance(source, bytes) else source.open("rb")
        try:
            self._image = Image.open(file, formats=FORMATS)
            self._frames = _page_frames(self._image)
        except (UnidentifiedImageError, OSError, SyntaxError, ValueError, EOFError) as error:
            raise InputError(
                f"the image cannot be opened: {error}", hint="save it again, as PNG or TIFF"
            ) from error
        self.num_pages = len(self._frames)

    def render(self, number: int, target: RenderTarget, announce: Announce) -> Pixels:
        """Decodes frame `number` (1-based) at its native size; `target` does not apply.

        Raises:
            PageError: `pixel_limit` before decoding, `page_broken` for damaged data.
        """
        del target
        try:
            self._image.seek(self._frames[number - 1])
            width_px, height_px = self._image.size
            # Read before loading: Pillow turns TIFF frames itself and then drops the tag.
            orientation = int(self._image.getexif().get(ExifTags.Base.Orientation, 1) or 1)
            announce(_page_size(self._image, orientation))
            check_pixels(height_px, width_px, self._max_pixels, "scale the image down")
            return self._decode(orientation)
        except MemoryError as error:
            raise PageError("out_of_memory", "the image does not fit in memory") from error
        except (OSError, SyntaxError, ValueError, EOFError, IndexError) as error:
            raise PageError("page_broken", f"damaged image, save it again: {error}") from error

    def text_layer(self, number: int) -> None:
        """Images carry no text."""

    def _decode(self, orientation: int) -> Pixels:
        # The image that is kept open must not be changed: a page may be asked for twice.
        upright = self._image if orientation == 1 else ImageOps.exif_transpose(self._image)
        return Pixels(height_px=upright.height, width_px=upright.width, data=_rgb_bytes(upright))


def _page_size(image: Image.Image, orientation: int) -> PageSize:
    (width_px, height_px), (dpi_x, dpi_y) = image.size, _resolution(image)
    if orientation in _LYING:
        dpi_x, dpi_y = dpi_y, dpi_x
        if image.format != "TIFF":
            # Of a TIFF file, Pillow gives the upright size from the start.
            width_px, height_px = height_px, width_px
    return PageSize(
        width_pt=width_px * POINTS_PER_INCH / dpi_x,
        height_pt=height_px * POINTS_PER_INCH / dpi_y,
        rotation=_TURNS.get(orientation, 0),
    )


def _rgb_bytes(image: Image.Image) -> bytearray:
    """Converts band by band: whole copies of a large scan would triple the memory of a worker."""
    image.load()
    if image.mode.startswith("I") or image.mode == "F":
        image = _eight_bits(image)
    data = bytearray(image.width * image.height * 3)
    row_bytes = image.width * 3
    for top in range(0, image.height, _BAND_ROWS):
        bottom = min(top + _BAND_ROWS, image.height)
        band = on_white(image.crop((0, top, image.width, bottom)))
        data[top * row_bytes : bottom * row_bytes] = band.tobytes()
    return data


def on_white(image: Image.Image) -> Image.Image:
    """Any 8-bit or bilevel image as RGB; transparency lies on white paper."""
    if image.has_transparency_data:
        layered = image.convert("RGBA")
        paper = Image.new("RGBA", layered.size, "white")
        return Image.alpha_composite(paper, layered).convert("RGB")
    return image.convert("RGB")


def _eight_bits(image: Image.Image) -> Image.Image:
    """Scales by the range of the type; Pillow's own conversion clips at 255, which is all white."""
    grey = np.asarray(image).astype(np.float32)
    peak = float(grey.max(initial=0.0))
    full = 1.0 if image.mode == "F" and peak <= 1.0 else 255.0 if peak <= 255.0 else 65535.0
    scaled = np.clip(grey * np.float32(255.0 / full), 0, 255)
    return Image.fromarray(np.rint(scaled).astype(np.uint8))


def _page_frames(image: Image.Image) -> tuple[int, ...]:
    """Frames that are pages: all of a TIFF but its thumbnails, else the first."""
    count = getattr(image, "n_frames", 1) if image.format == "TIFF" else 1
    if count == 1:
        return (0,)
    frames = tuple(index for index in range(count) if not _is_reduced_copy(image, index))
    return frames or (0,)


def _is_reduced_copy(image: Image.Image, index: int) -> bool:
    image.seek(index)
    tags: Callable[..., object] | None = getattr(getattr(image, "tag_v2", None), "get", None)
    subfile_type = tags(_SUBFILE_TYPE_TAG, 0) if tags else 0
    return isinstance(subfile_type, int) and bool(subfile_type & _REDUCED_COPY)


def _resolution(image: Image.Image) -> tuple[float, float]:
    """Horizontal and vertical resolution in dots per inch."""
    try:
        dpi_x, dpi_y = (float(value) for value in image.info["dpi"])
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return DEFAULT_DPI, DEFAULT_DPI
    low, high = _BELIEVABLE_DPI
    if low <= dpi_x <= high and low <= dpi_y <= high:
        return dpi_x, dpi_y
    return DEFAULT_DPI, DEFAULT_DPI
