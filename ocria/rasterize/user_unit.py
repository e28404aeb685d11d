"""How long a page's unit is: /UserUnit, in points (ISO 32000-2, table 31).

PDFium neither applies nor tells it, so the page's dictionary is read from a copy of the page. That
takes a millisecond, or many where pages share large resources, so the file is first searched for
the word.
"""

import re
import zlib
from collections.abc import Iterator
from functools import cached_property
from typing import Any

from ocria.rasterize.page_copy import PageCopy

_KEY = b"/UserUnit"
_OBJECT_STREAM = re.compile(rb"/ObjStm\b.{0,400}?stream\r?\n", re.DOTALL)
_STREAM_END = re.compile(rb"endstream")
_MOST_BYTES = 1 << 24
_BELIEVABLE = (1e-3, 1e6)


class UserUnits:
    """The units of an open document's pages; `file` is its bytes.

    In an encrypted document with object streams the word cannot be searched for: all its pages
    count as measured in points.
    """

    def __init__(self, document: Any, file: Any) -> None:
        self._document = document
        self._file = file

    def of_page(self, index: int) -> float:
        """Points in one unit of page `index` (0-based); 1 where the file says nothing sensible."""
        if not self._are_used:
            return 1.0
        try:
            (value,) = PageCopy(self._document, index).entries["UserUnit"]
            unit = float(value)
        except (KeyError, ValueError):
            return 1.0
        low, high = _BELIEVABLE
        return unit if low <= unit <= high else 1.0

    @cached_property
    def _are_used(self) -> bool:
        file = memoryview(self._file).cast("B")
        if re.search(_KEY, file):
            return True
        return any(_KEY in objects for objects in _object_streams(file))


def _object_streams(file: memoryview) -> Iterator[bytes]:
    """Compressed objects, decoded as far as they are sound."""
    for head in _OBJECT_STREAM.finditer(file):
        end = _STREAM_END.search(file, head.end())
        data = file[head.end() : end.start() if end else len(file)]
        try:
            yield zlib.decompressobj().decompress(data, _MOST_BYTES)
        except zlib.error:
            continue
