"""Docling: its document converter on page images, Markdown out."""

from __future__ import annotations

import io
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from typing import Any

from ocria.eval.engines import PageImage
from ocria.eval.options import EvalOptions
from ocria.eval.peers.absent import absent
from ocria.eval.predictions import PagePrediction


class Docling:
    """The default pipeline for images. Its weights must lie in its own cache already."""

    name = "docling"

    def __init__(self, converter: Any, stream_type: Any) -> None:
        self._converter = converter
        self._stream_type = stream_type
        self.version = version("docling")

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Convert each page image as a document of its own."""
        for page in pages:
            buffer = io.BytesIO()
            page.image.save(buffer, "PNG", compress_level=1)
            buffer.seek(0)
            start = time.perf_counter()
            stream = self._stream_type(name=f"page-{page.number}.png", stream=buffer)
            result = self._converter.convert(stream)
            yield PagePrediction(
                number=page.number,
                markdown=result.document.export_to_markdown(),
                seconds=time.perf_counter() - start,
            )


def make(options: EvalOptions) -> Docling:
    """Build the converter. Raises UsageError where the package is absent."""
    try:
        from docling.datamodel.base_models import DocumentStream
        from docling.document_converter import DocumentConverter
    except ImportError as error:
        raise absent("docling", "pip install docling, and fetch its models beforehand") from error
    return Docling(DocumentConverter(), DocumentStream)
