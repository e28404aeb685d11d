"""JSON Lines: what the document is, then a page a line."""

from typing import TextIO

import numpy as np

from ocria.document import Generator, Page, Source
from ocria.output.json import json_line
from ocria.output.page_object import header_object, page_object


class JsonlWriter:
    """Each line is flushed as it is written, so that a reader sees pages as they are done."""

    def __init__(self, sink: TextIO, *, source: Source, generator: Generator) -> None:
        self._sink = sink
        self._line(header_object(source, generator))

    def write(self, page: Page, image: np.ndarray | None = None) -> None:
        """Writes and flushes `page`; `image` is not used."""
        self._line(page_object(page))

    def close(self) -> None:
        """Nothing is left to write; the sink stays open."""
        self._sink.flush()

    def _line(self, value: dict[str, object]) -> None:
        self._sink.write(json_line(value) + "\n")
        self._sink.flush()
