"""One way to write a document, whatever the format."""

import io
from typing import Protocol, TextIO

import numpy as np

from ocria.document import Document, Generator, Page, Source
from ocria.options import Furniture, OutputFormat
from ocria.output.html import HtmlWriter
from ocria.output.json import JsonWriter
from ocria.output.jsonl import JsonlWriter
from ocria.output.markdown import MarkdownWriter


class Writer(Protocol):
    """Takes pages in order. `close` ends the document but leaves the sink open."""

    def write(self, page: Page, image: np.ndarray | None = None) -> None:
        """Writes one page; `image` is the upright page, RGB uint8 [H, W, 3], for HTML."""

    def close(self) -> None:
        """Ends the document. Without it, JSON and HTML are cut off."""


def open_writer(
    fmt: OutputFormat,
    sink: TextIO,
    *,
    source: Source,
    generator: Generator,
    furniture: Furniture = "drop",
    page_markers: bool = False,
) -> Writer:
    """A writer of `fmt` into `sink`, which must take `\\n` and UTF-8 as they are.

    `furniture` (running heads, feet, page numbers) matters to Markdown and HTML, `page_markers`
    to Markdown; JSON always holds everything. What stands before the pages is written at once.
    """
    match fmt:
        case "md":
            return MarkdownWriter(sink, furniture=furniture, page_markers=page_markers)
        case "json":
            return JsonWriter(sink, source=source, generator=generator)
        case "jsonl":
            return JsonlWriter(sink, source=source, generator=generator)
        case "html":
            return HtmlWriter(sink, source=source, generator=generator, furniture=furniture)


def render(
    document: Document,
    fmt: OutputFormat,
    *,
    furniture: Furniture = "drop",
    page_markers: bool = False,
) -> str:
    """A finished document as text; the same bytes that `open_writer` streams (without images)."""
    sink = io.StringIO()
    writer = open_writer(
        fmt,
        sink,
        source=document.source,
        generator=document.generator,
        furniture=furniture,
        page_markers=page_markers,
    )
    for page in document.pages:
        writer.write(page)
    writer.close()
    return sink.getvalue()
