"""Pages of a file as the pixels that every engine gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pypdfium2 as pdfium
from PIL import Image, ImageOps, UnidentifiedImageError

from ocria.errors import InputError
from ocria.eval.engines import PageImage

IMAGE_DPI = 200.0
"""Assumed where an image does not state a resolution that a scanner could have had."""
MAX_PIXELS = 60_000_000
POINTS_PER_INCH = 72.0


def page_images(path: Path, pages: tuple[int, ...] | None, *, dpi: int) -> Iterator[PageImage]:
    """Rasterise the pages (1-based; None: all) of a PDF, or decode an image.

    A page that the file does not have is left out: data sets state page ranges generously. Raises
    InputError where the file is no document.
    """
    if path.suffix.lower() == ".pdf":
        yield from _pdf_pages(path, pages, dpi)
    else:
        yield from _image_frames(path, pages)


def _pdf_pages(path: Path, pages: tuple[int, ...] | None, dpi: int) -> Iterator[PageImage]:
    try:
        document = pdfium.PdfDocument(path)
    except pdfium.PdfiumError as error:
        raise InputError(f"cannot be opened: {path.name}: {error}") from error
    try:
        for number in pages or range(1, len(document) + 1):
            if number <= len(document):
                yield _rasterised(document, number, dpi)
    finally:
        document.close()


def _rasterised(document: pdfium.PdfDocument, number: int, dpi: int) -> PageImage:
    page = document[number - 1]
    width, height = page.get_size()
    scale = dpi / POINTS_PER_INCH
    scale = min(scale, (MAX_PIXELS / max(width * height, 1.0)) ** 0.5)
    image = page.render(scale=scale, rev_byteorder=True).to_pil().convert("RGB")
    return PageImage(number=number, image=image, dpi=scale * POINTS_PER_INCH)


def _image_frames(path: Path, pages: tuple[int, ...] | None) -> Iterator[PageImage]:
    try:
        with Image.open(path) as opened:
            count = getattr(opened, "n_frames", 1)
            for number in pages or range(1, count + 1):
                if number <= count:
                    opened.seek(number - 1)
                    yield _frame(opened, number)
    except (UnidentifiedImageError, OSError, Image.DecompressionBombError) as error:
        raise InputError(f"cannot be decoded: {path.name}: {error}") from error


def _frame(opened: Image.Image, number: int) -> PageImage:
    stated = float(opened.info.get("dpi", (0.0, 0.0))[0])
    upright = ImageOps.exif_transpose(opened)
    image = _on_white(upright)
    if image.width * image.height > MAX_PIXELS:
        shrink = (MAX_PIXELS / (image.width * image.height)) ** 0.5
        image = image.resize((int(image.width * shrink), int(image.height * shrink)))
    return PageImage(number=number, image=image, dpi=stated if stated >= 96 else IMAGE_DPI)


def _on_white(image: Image.Image) -> Image.Image:
    if "A" not in image.getbands():
        return image.convert("RGB")
    paper = Image.new("RGBA", image.size, "white")
    paper.alpha_composite(image.convert("RGBA"))
    return paper.convert("RGB")
