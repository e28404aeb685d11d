"""A document's pages as they are read, in order."""

from collections.abc import Callable, Iterator
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Generator, Page, Source
from ocria.options import ParseOptions
from ocria.rasterize import (
    DocumentReader,
    PageFailed,
    PageImage,
    RenderTarget,
    open_document,
    page_range,
)
from ocria.version import __version__

if TYPE_CHECKING:
    from ocria.pipeline.page_reader import PageReader


class ParsedPage(NamedTuple):
    """A page and its picture, upright; uint8 [H, W, 3], None if there is none."""

    page: Page
    image: NDArray[np.uint8] | None


ReaderLoader = Callable[[ParseOptions], "PageReader"]


class PageStream:
    """An open document, its pages read one by one as they are asked for.

    Use it as a context manager: closing it ends the processes that rasterise.

    Attributes:
        source: what is being read.
        generator: what reads it.
        page_numbers: the pages that will come, 1-based, ascending.
    """

    def __init__(
        self,
        document: DocumentReader,
        reader: "PageReader",
        numbers: tuple[int, ...],
        dpi: int | None,
    ) -> None:
        self.source: Source = document.source
        self.page_numbers = numbers
        self.generator = Generator(
            ocria=__version__, model=reader.model.info, settings=reader.settings
        )
        self._document = document
        self._reader = reader
        reader.begin_document()
        # Asked for now, so that the next pages are made while one is being read.
        self._pictures = document.pages(
            numbers,
            RenderTarget(fit=reader.size_rule, dpi=dpi),
            with_text=reader.wants_text,
        )

    def __iter__(self) -> Iterator[ParsedPage]:
        for picture in self._pictures:
            page = self._reader.read(picture)
            yield ParsedPage(page, upright(picture, page))

    def close(self) -> None:
        """Ends the worker processes; may be called again."""
        self._document.close()

    def __enter__(self) -> "PageStream":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _load(options: ParseOptions) -> "PageReader":
    from ocria.models.finding import find_checkpoint, named_drafter

    # A name that cannot be had is told of before seconds go into the import of torch, which
    # comes while a worker process is already busy with the document.
    find_checkpoint(options.model)
    named_drafter(options.drafter_model)
    from ocria.pipeline.page_reader import load_page_reader

    return load_page_reader(options)


def upright(picture: PageImage | PageFailed, page: Page) -> NDArray[np.uint8] | None:
    """The picture as the page's boxes lie in it: turned once more if the model said so."""
    if isinstance(picture, PageFailed):
        return None
    return np.rot90(picture.rgb, (picture.rotation - page.rotation) // 90)


def open_stream(
    source: Path | bytes,
    *,
    name: str,
    options: ParseOptions,
    load: ReaderLoader | None = None,
) -> PageStream:
    """Opens a document and the model that will read it; whatever can fail early fails here.

    Args:
        source: a path, or the document's bytes.
        name: what to call it.
        options: see `ParseOptions`.
        load: how to get the page reader; None loads the model that the options name.

    Raises:
        InputError: the document cannot be opened.
        UsageError: `options.pages` names a page that is not there.
        WeightsError: the model cannot be loaded.
        DeviceError: the device cannot be used.
    """
    document = open_document(
        source, name=name, password=options.password, max_pixels=options.max_pixels
    )
    try:
        numbers = page_range(options.pages, document.source.num_pages)
        return PageStream(document, (load or _load)(options), numbers, options.dpi)
    except BaseException:
        document.close()
        raise
