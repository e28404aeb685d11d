"""Pages of a file as the pixels that every engine gets."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from PIL import Image

from ocria.eval.engines import PageImage, UnreadablePage
from ocria.options import DEFAULT_MAX_PIXELS
from ocria.rasterize import PageFailed, RenderTarget, open_document
from ocria.rasterize import PageImage as RasterPage

POINTS_PER_INCH = 72.0
PAGE_TIMEOUT_S = 120.0


def page_images(
    path: Path, pages: tuple[int, ...] | None, *, dpi: int
) -> Iterator[PageImage | UnreadablePage]:
    """Rasterise the pages (1-based; None: all) of a PDF at `dpi`, or decode an image as it is.

    A page that the file does not have is left out: data sets state page ranges generously. Raises
    InputError where the file is no document.
    """
    target = RenderTarget(fit=_as_it_is, dpi=dpi)
    with open_document(
        path,
        name=path.name,
        password=None,
        max_pixels=DEFAULT_MAX_PIXELS,
        page_timeout_s=PAGE_TIMEOUT_S,
    ) as reader:
        there = range(1, reader.source.num_pages + 1)
        for page in reader.pages([n for n in pages or there if n in there], target):
            if isinstance(page, PageFailed):
                yield UnreadablePage(number=page.number, reason=f"{page.code}: {page.message}")
            else:
                yield _as_picture(page)


def _as_it_is(height_px: int, width_px: int) -> tuple[int, int]:
    return height_px, width_px


def _as_picture(page: RasterPage) -> PageImage:
    image = Image.fromarray(page.rgb)
    return PageImage(
        number=page.number, image=image, dpi=image.width * POINTS_PER_INCH / page.width_pt
    )
