"""Pages of a file as the pixels that every engine gets."""

from __future__ import annotations

from collections.abc import Container, Iterator
from pathlib import Path

from PIL import Image

from ocria.errors import InputError
from ocria.eval.engines import PageImage, UnreadablePage
from ocria.options import DEFAULT_MAX_PIXELS
from ocria.rasterize import PageFailed, RenderTarget, open_document
from ocria.rasterize import PageImage as RasterPage

POINTS_PER_INCH = 72.0
PAGE_TIMEOUT_S = 120.0


def page_images(
    path: Path, pages: tuple[int, ...] | None, *, dpi: int, done: Container[int] = ()
) -> Iterator[PageImage | UnreadablePage]:
    """Rasterise the pages (1-based; None: all) of a PDF at `dpi`, or decode an image as it is.

    Pages in `done` are not made again. A page that the file does not have is left out: data sets
    state page ranges generously. Raises InputError where the file has none of the pages, or is no
    document.
    """
    target = RenderTarget(fit=_as_it_is, dpi=dpi)
    with open_document(
        path,
        name=path.name,
        password=None,
        max_pixels=DEFAULT_MAX_PIXELS,
        page_timeout_s=PAGE_TIMEOUT_S,
    ) as reader:
        wanted = [n for n in _there(pages, reader.source.num_pages) if n not in done]
        for page in reader.pages(wanted, target):
            if isinstance(page, PageFailed):
                yield UnreadablePage(number=page.number, reason=f"{page.code}: {page.message}")
            else:
                yield _as_picture(page)


def _there(pages: tuple[int, ...] | None, num_pages: int) -> list[int]:
    """The wanted pages that the file has. Raises InputError where that is none of them."""
    there = range(1, num_pages + 1)
    found = [number for number in pages or there if number in there]
    if not found:
        named = f"page {pages[0]}" if pages and len(pages) == 1 else "the stated pages"
        plural = "" if num_pages == 1 else "s"
        raise InputError(f"{named} cannot be read: the file has {num_pages} page{plural}")
    return found


def _as_it_is(height_px: int, width_px: int) -> tuple[int, int]:
    return height_px, width_px


def _as_picture(page: RasterPage) -> PageImage:
    image = Image.fromarray(page.rgb)
    return PageImage(
        number=page.number, image=image, dpi=image.width * POINTS_PER_INCH / page.width_pt
    )
