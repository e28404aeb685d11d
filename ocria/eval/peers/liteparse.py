"""LiteParse: its own parser on an image-only PDF made of the page image."""

from __future__ import annotations

import tempfile
import time
from collections.abc import Iterator, Sequence
from importlib.metadata import version
from pathlib import Path
from typing import Any

from ocria.eval.engines import PageImage
from ocria.eval.normalize import escape_markdown
from ocria.eval.options import EvalOptions
from ocria.eval.peers.absent import absent
from ocria.eval.predictions import PagePrediction


class LiteParse:
    """Each page is written as a PDF that holds its picture alone, so that no text layer is read."""

    name = "liteparse"

    def __init__(self, parser: Any) -> None:
        self._parser = parser
        self.version = version("liteparse")

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read each page image in turn."""
        with tempfile.TemporaryDirectory(prefix="ocria-eval-") as folder:
            for page in pages:
                path = Path(folder) / f"page-{page.number}.pdf"
                page.image.save(path, "PDF", resolution=page.dpi)
                start = time.perf_counter()
                result = self._parser.parse(str(path))
                yield PagePrediction(
                    number=page.number,
                    markdown=escape_markdown(result.text),
                    seconds=time.perf_counter() - start,
                )


def make(options: EvalOptions) -> LiteParse:
    """Load the package. Raises UsageError where it is absent."""
    try:
        import liteparse
    except ImportError as error:
        raise absent("liteparse", "pip install liteparse") from error
    return LiteParse(liteparse.LiteParse())
