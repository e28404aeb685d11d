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

_FETCH = "`docling-tools models download` fetches them; DOCLING_ARTIFACTS_PATH names another folder"


class Docling:
    """The default pipeline for images, with weights that lie on this machine already."""

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
    """Build the pipeline. Raises WeightsError where package or weights are absent.

    Left to itself the package fetches what it lacks; told of a folder, it takes that or fails.
    """
    try:
        from docling.datamodel.accelerator_options import AcceleratorOptions
        from docling.datamodel.base_models import DocumentStream, InputFormat
        from docling.datamodel.pipeline_options import ThreadedPdfPipelineOptions
        from docling.datamodel.settings import settings
        from docling.document_converter import DocumentConverter, ImageFormatOption
    except ImportError as error:
        raise absent("docling", "pip install docling") from error
    folder = settings.artifacts_path or settings.cache_dir / "models"
    if not folder.is_dir():
        raise absent("docling", _FETCH, what=f"has no weights in {folder}")
    pipeline = ThreadedPdfPipelineOptions(
        artifacts_path=folder,
        accelerator_options=AcceleratorOptions(
            num_threads=options.num_threads, device=options.device
        ),
    )
    converter = DocumentConverter(
        format_options={InputFormat.IMAGE: ImageFormatOption(pipeline_options=pipeline)}
    )
    try:
        converter.initialize_pipeline(InputFormat.IMAGE)
    # Each of its models has errors of its own for files that are missing.
    except Exception as error:
        raise absent("docling", _FETCH, what=f"cannot load its weights: {error}") from error
    return Docling(converter, DocumentStream)
