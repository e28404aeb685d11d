"""LiteParse: its own parser on an image-only PDF made of the page image, Markdown out."""

from __future__ import annotations

import io
import time
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ocria.eval.engines import PageImage
from ocria.eval.options import EvalOptions
from ocria.eval.peers.absent import absent
from ocria.eval.peers.tesseract import Tesseract, find_program
from ocria.eval.predictions import PagePrediction

JPEG_QUALITY = 95


class LiteParse:
    """Each page is handed over as a PDF that holds its picture alone: no text layer to read.

    It draws the PDF at the picture's own resolution, so that it sees the pixels that all others see
    but for a weak JPEG, the only form in which Pillow puts colour into a PDF.

    Its recognition is Tesseract's. It fetches language data from the network unless told where
    some lies, so it is always told.
    """

    name = "liteparse"

    def __init__(self, build: Callable[..., Any], tesseract: Tesseract) -> None:
        self._build = build
        self._tesseract = tesseract
        self._parsers: dict[tuple[str, int], Any] = {}
        self.version = version("liteparse")

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read each page image in turn, in the stated language where its data is installed."""
        languages = self._tesseract.languages(lang)
        for page in pages:
            parser = self._parser(languages, round(page.dpi))
            buffer = io.BytesIO()
            page.image.save(buffer, "PDF", resolution=round(page.dpi), quality=JPEG_QUALITY)
            start = time.perf_counter()
            result = parser.parse(buffer.getvalue())
            yield PagePrediction(
                number=page.number,
                markdown=result.text,
                seconds=time.perf_counter() - start,
            )

    def _parser(self, languages: str, dpi: int) -> Any:
        if (languages, dpi) not in self._parsers:
            self._parsers[languages, dpi] = self._build(
                ocr_language=languages,
                tessdata_path=str(self._tesseract.data_folder),
                output_format="markdown",
                dpi=float(dpi),
                num_workers=1,
                quiet=True,
            )
        return self._parsers[languages, dpi]


def make(options: EvalOptions) -> LiteParse:
    """Load the package. Raises WeightsError where it or Tesseract's language data is absent."""
    try:
        import liteparse
    except ImportError as error:
        raise absent("liteparse", "pip install liteparse") from error
    tesseract = Tesseract(find_program("liteparse"), options.num_threads)
    if not Path(tesseract.data_folder).is_dir():
        raise absent("liteparse", "Tesseract's language data was not found")
    return LiteParse(liteparse.LiteParse, tesseract)
