"""Document, Page and Block: what a parse returns. Knows no format and no model.

Lengths are PDF points (1/72 inch), origin top left, after the page has been turned upright.
Page numbers are 1-based, as people count.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

SCHEMA = "ocria.document/1"

BlockType = Literal[
    "heading",
    "paragraph",
    "list_item",
    "table",
    "formula",
    "code",
    "figure",
    "caption",
    "footnote",
    "header",
    "footer",
    "page_number",
    "form_field",
    "other",
]
PageStatus = Literal["ok", "blank", "repaired", "truncated", "failed"]
Rotation = Literal[0, 90, 180, 270]

FURNITURE: frozenset[str] = frozenset({"header", "footer", "page_number"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Block:
    """One block of a page, in reading order.

    `text` is plain text, `markdown` the same with marks, `html` is set for tables and `latex`
    for formulas only. `level` is 1..6 for headings, and the nesting depth from 1 for list items.
    """

    id: str
    type: BlockType
    text: str
    markdown: str
    level: int | None = None
    bbox: tuple[float, float, float, float] | None = None
    html: str | None = None
    latex: str | None = None
    confidence: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PageFailure:
    """Why a page has no result. `code` is one of `ocria.errors.PageErrorCode`."""

    code: str
    message: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Decoding:
    """How a page was decoded. `tokens_per_step` is emitted tokens / target passes."""

    drafter: str
    steps: int
    tokens_per_step: float
    accepted_histogram: tuple[int, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PageSeconds:
    """Seconds spent on a page, by stage."""

    rasterize: float
    vision: float
    prefill: float
    decode: float


@dataclass(frozen=True, kw_only=True, slots=True)
class PageStats:
    """Figures that vary from run to run; they leave only with `--stats`."""

    seconds: PageSeconds
    decoding: Decoding | None


@dataclass(frozen=True, kw_only=True, slots=True)
class Page:
    """One page: its size, what became of it, and its blocks in reading order."""

    number: int
    width_pt: float
    height_pt: float
    rotation: Rotation = 0
    status: PageStatus
    error: PageFailure | None = None
    blocks: tuple[Block, ...] = ()
    confidence: float | None = None
    num_tokens: int = 0
    stats: PageStats | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Source:
    """Where the pages came from. `num_pages` counts the whole document, not a selection."""

    name: str
    sha256: str
    media_type: str
    num_pages: int


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelInfo:
    """Which weights read the document. `precision` names the formats of the decoder."""

    name: str
    digest: str
    precision: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Generator:
    """What made the document: program, model, and the settings that can change the result."""

    ocria: str
    model: ModelInfo
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class Document:
    """A parsed document."""

    source: Source
    generator: Generator
    pages: tuple[Page, ...]
