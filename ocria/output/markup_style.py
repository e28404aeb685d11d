"""Which way of writing a page a model was trained on: chosen by its preset, never guessed."""

from dataclasses import dataclass
from typing import Literal

MarkupName = Literal["native", "markdown", "html", "doctags", "json"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MarkupStyle:
    """How a model's text is to be read.

    Attributes:
        name: `native` is the markup of our own special tokens, or simple Markdown without them;
            `markdown` may hold HTML tables, `$$` formulas and fenced code; `html` is layout blocks
            with `data-bbox` and `data-label`; `doctags` is the markup of the Docling models;
            `json` is a list of objects with `bbox`, `category` and `text`.
        last_coordinate: what the right and the bottom edge are called in boxes; None when boxes
            are pixels of the picture that the model read.
    """

    name: MarkupName = "native"
    last_coordinate: int | None = 1000
