"""OCRia as one engine among others: the product's own page reader on the given pixels."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import torch

from ocria.document import FURNITURE, Page
from ocria.eval.engines import PageImage
from ocria.eval.options import EvalOptions
from ocria.eval.predictions import PagePrediction, ReadBlock
from ocria.models.device import resolve_device
from ocria.options import DEFAULT_MODEL, Furniture, ParseOptions
from ocria.output import page_markdown
from ocria.pipeline import open_stream
from ocria.pipeline.page_reader import PAGE_THREADS, PageReader, load_page_reader
from ocria.rasterize import PageImage as RasterPage
from ocria.version import __version__

DIGEST_CHARS = 12
POINTS_PER_INCH = 72.0
PAGES_ON_CPU = 8
"""Read at once where nothing is said."""


class OcriaEngine:
    """One loaded model for the whole dataset."""

    name = "ocria"

    def __init__(self, reader: PageReader, options: ParseOptions, furniture: Furniture) -> None:
        self._reader = reader
        self._options = options
        self._furniture: Furniture = furniture
        self._drafting = reader.new_drafting()
        info = reader.model.info
        self.version = f"{__version__} {info.name} {info.digest[:DIGEST_CHARS]}"
        if furniture == "keep":
            self.version += " furniture"

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read each page; the language is not needed."""
        for page in pages:
            started = time.perf_counter()
            read = self._read_file(page.source, page.number) if page.source else self._read(page)
            yield self._prediction(read, time.perf_counter() - started)

    @property
    def num_slots(self) -> int:
        """Pages that are read side by side."""
        return self._reader.num_slots

    @property
    def num_ahead(self) -> int:
        """Pages beyond these that are made ready meanwhile."""
        return self._reader.num_threads

    def begin_document(self) -> None:
        """Pages from now on teach and use drafters of their own; readings do not depend on it."""
        self._drafting = self._reader.new_drafting()

    def submit(self, page: PageImage) -> int:
        """Take a page to be read beside others; its key."""
        return self._reader.submit(self._reader.job(_raster_page(page), self._drafting))

    def step(self) -> list[tuple[int, PagePrediction]]:
        """One round of the model; keys and pages that are done, their seconds not counted."""
        return [(key, self._prediction(page, None)) for key, page in self._reader.step()]

    def forget_pages(self) -> None:
        """Give up what was submitted."""
        self._reader.close()

    def _read(self, page: PageImage) -> Page:
        return self._reader.read(_raster_page(page))

    def _read_file(self, path: Path, number: int) -> Page:
        """The page as `ocria parse` reads it, from the file itself."""
        options = ParseOptions(
            pages=str(number),
            model=self._options.model,
            device=self._options.device,
            drafter=self._options.drafter,
        )
        with open_stream(
            path, name=path.name, options=options, load=lambda _: self._reader
        ) as stream:
            return next(iter(stream)).page

    def _prediction(self, page: Page, seconds: float | None) -> PagePrediction:
        shown = [b for b in page.blocks if self._furniture == "keep" or b.type not in FURNITURE]
        return PagePrediction(
            number=page.number,
            markdown=""
            if page.status == "failed"
            else page_markdown(page, furniture=self._furniture),
            seconds=seconds,
            tokens=page.num_tokens,
            status=page.status,
            error=page.error.message if page.error else None,
            blocks=tuple(
                ReadBlock(text=block.markdown, confidence=block.confidence)
                for block in shown
                if block.confidence is not None
            ),
        )


def _raster_page(page: PageImage) -> RasterPage:
    return RasterPage(
        number=page.number,
        rgb=np.ascontiguousarray(np.asarray(page.image)),
        width_pt=page.image.width * POINTS_PER_INCH / page.dpi,
        height_pt=page.image.height * POINTS_PER_INCH / page.dpi,
        rotation=0,
        seconds=0.0,
    )


def make(options: EvalOptions) -> OcriaEngine:
    """Load the model. Raises WeightsError or DeviceError."""
    torch.set_num_threads(options.num_threads)
    parse = ParseOptions(
        model=options.model or DEFAULT_MODEL,
        device=options.device,
        drafter="text-layer" if options.with_text_layer else "auto",
    )
    most_pages = _most_pages(options)
    is_apart = most_pages > 1 and resolve_device(options.device).type != "cpu"
    # An error of a page that is cut by a thread could not be told from one of the model.
    reader = load_page_reader(
        parse,
        most_pages=most_pages,
        isolates=is_apart,
        num_threads=PAGE_THREADS if is_apart else 0,
    )
    return OcriaEngine(reader, parse, options.furniture)


def _most_pages(options: EvalOptions) -> int:
    """Pages that are read at once, if memory allows; files are read one by one."""
    if options.with_text_layer:
        return 1
    if options.side_by_side is not None:
        return options.side_by_side
    # On CUDA seconds of a page that was read in company are no page's own, so that is asked for.
    return PAGES_ON_CPU if resolve_device(options.device).type == "cpu" else 1
