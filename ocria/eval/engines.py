"""Engines by name: OCRia, its peers, and stand-ins in tests are one thing to the runner."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from PIL import Image

from ocria.errors import UsageError
from ocria.eval.options import EvalOptions
from ocria.eval.predictions import PagePrediction


@dataclass(frozen=True, kw_only=True)
class PageImage:
    """One page as pixels (RGB): all that an engine is given.

    `source` is set only where reading the text layer is measured on purpose.
    """

    number: int
    image: Image.Image
    dpi: float
    source: Path | None = None


@dataclass(frozen=True, kw_only=True)
class UnreadablePage:
    """A page that could not be rasterised, so that no engine can be blamed for it."""

    number: int
    reason: str


class Engine(Protocol):
    """A reader of page images. One object reads a whole data set, so models load once."""

    name: str
    version: str

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        """Read the pages of one document in order.

        A page that cannot be read comes back with status `failed`; an exception fails the page
        that was due.
        """
        ...


EngineMaker = Callable[[EvalOptions], Engine]

_MAKERS: dict[str, str] = {
    "ocria": "ocria.eval.ocria_engine",
    "tesseract": "ocria.eval.peers.tesseract",
    "rapidocr": "ocria.eval.peers.rapidocr",
    "docling": "ocria.eval.peers.docling",
    "liteparse": "ocria.eval.peers.liteparse",
}
_added: dict[str, EngineMaker] = {}


def engine_names() -> tuple[str, ...]:
    """Names that `make_engine` knows."""
    return (*_MAKERS, *_added)


def register_engine(name: str, maker: EngineMaker) -> None:
    """Make another engine known under a name."""
    _added[name] = maker


def make_engine(name: str, options: EvalOptions) -> Engine:
    """Load an engine.

    Raises UsageError for an unknown one, WeightsError with a hint for one that is not installed.
    """
    if name in _added:
        return _added[name](options)
    if name not in _MAKERS:
        raise UsageError(f"unknown engine `{name}`", hint=f"known are {', '.join(engine_names())}")
    # Imported by need: a peer's package is optional, and the product must not load it.
    maker: EngineMaker = importlib.import_module(_MAKERS[name]).make
    return maker(options)
