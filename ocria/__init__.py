"""OCRia reads PDFs and page images into Markdown and JSON.

    import ocria

    document = ocria.parse("report.pdf")
    for page in ocria.iter_pages("report.pdf", pages="1-3"):
        print(page.number, page.status, len(page.blocks))

Importing this package imports no torch: the model is loaded by the first parse.
"""

import os
from collections.abc import Iterator
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ocria.document import Block, Document, Generator, ModelInfo, Page, PageFailure, Source
from ocria.errors import (
    DeviceError,
    InputError,
    OcriaError,
    OutputError,
    PageError,
    PasswordError,
    UsageError,
    WeightsError,
    WorkerError,
)
from ocria.options import ParseOptions
from ocria.version import __version__

if TYPE_CHECKING:
    from ocria.pipeline import PageStream

# Read by the OpenMP runtime when torch loads, so it stands where nothing has loaded it yet. Waiting
# threads spin for milliseconds by default: a decoding step on a busy machine took 2,300 ms that
# way. Threads that sleep at once cost a quiet machine half its second core (24 ms a step; 16 with
# a short spin). Figures: docs/log.md.
if "OMP_WAIT_POLICY" not in os.environ:
    os.environ.setdefault("GOMP_SPINCOUNT", "4000")

__all__ = [
    "Block",
    "DeviceError",
    "Document",
    "Generator",
    "InputError",
    "ModelInfo",
    "OcriaError",
    "OutputError",
    "Page",
    "PageError",
    "PageFailure",
    "ParseOptions",
    "PasswordError",
    "Source",
    "UsageError",
    "WeightsError",
    "WorkerError",
    "__version__",
    "iter_pages",
    "parse",
]


def parse(source: str | PathLike[str] | bytes, **options: Any) -> Document:
    """Reads a whole document.

    Args:
        source: path of a PDF or image, or its bytes.
        options: fields of `ParseOptions`, such as `pages="1-3"` or `device="cpu"`.

    Returns:
        The document. A page that could not be read is in it with status `failed`.

    Raises:
        UsageError: an option that cannot be meant, or a page out of range.
        InputError: the input is missing or no document; `PasswordError` when it is locked.
        WeightsError: the model is missing, damaged or of an unknown architecture.
        DeviceError: the device is not there, or its memory does not suffice.
        TypeError: an option that does not exist.
    """
    with _open(source, ParseOptions(**options)) as stream:
        pages = tuple(parsed.page for parsed in stream)
        return Document(source=stream.source, generator=stream.generator, pages=pages)


def iter_pages(source: str | PathLike[str] | bytes, **options: Any) -> Iterator[Page]:
    """Reads a document page by page, in order, each as soon as it is done.

    Takes what `parse` takes and raises what `parse` raises. Wrong options raise at once, the
    rest at the first page. Closing the iterator early frees the worker processes.
    """
    return _pages(source, ParseOptions(**options))


def _pages(source: str | PathLike[str] | bytes, options: ParseOptions) -> Iterator[Page]:
    with _open(source, options) as stream:
        for parsed in stream:
            yield parsed.page


def _open(source: str | PathLike[str] | bytes, options: ParseOptions) -> "PageStream":
    from ocria.pipeline import open_stream

    if isinstance(source, bytes):
        return open_stream(source, name="-", options=options)
    path = Path(source)
    return open_stream(path, name=path.name, options=options)
