"""The whole document as one JSON object, still written page by page."""

import json
import re
from typing import Any, TextIO

import numpy as np

from ocria.document import Generator, Page, Source
from ocria.output.page_object import header_object, page_object

# json.dumps itself escapes C0; these are DEL, C1, line separators and reordering marks.
_UNSEEN = re.compile("[\x7f-\x9f\u2028-\u202e\u2066-\u2069\ufeff]")


def json_line(value: Any) -> str:
    """`value` as JSON on one line, keys in their given order, UTF-8 as it is.

    What a terminal would act on is escaped: a file name may hold it.
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


class JsonWriter:
    """A page a line, between the lines that make the whole a JSON object.

    Valid once `close` was called, with however many pages were written.
    """

    def __init__(self, sink: TextIO, *, source: Source, generator: Generator) -> None:
        self._sink = sink
        self._has_pages = False
        fields = header_object(source, generator).items()
        head = "".join(f'"{key}": {json_line(value)},\n' for key, value in fields)
        sink.write(f'{{\n{head}"pages": [')

    def write(self, page: Page, image: np.ndarray | None = None) -> None:
        """Writes `page`; `image` is not used."""
        self._sink.write((",\n" if self._has_pages else "\n") + json_line(page_object(page)))
        self._has_pages = True

    def close(self) -> None:
        """Ends the object; the sink stays open."""
        self._sink.write("\n]\n}\n" if self._has_pages else "]\n}\n")
        self._sink.flush()
