"""Which drafter a page gets, and what it costs to follow one."""

from ocria.engine.speculative import AutoDrafter, Drafter, NgramDrafter, PassCost, Source
from ocria.options import DrafterName
from ocria.pipeline.layer_stream import layer_stream
from ocria.pipeline.markup_ids import MarkupIds
from ocria.pipeline.text_layer import TextLayerDrafter
from ocria.rasterize import TextLayer
from ocria.tokenizer import Tokenizer

PASS_COST = PassCost(points=((1, 1.0), (16, 1.26), (17, 2.0), (32, 2.3)))
"""Of a decoder pass on a CPU with bfloat16 products, 2026-11-30, one core, 1,200 positions: 54.0 ms
for 1 row, 67.8 for 16, 107.9 for 17, 125.0 for 32. In float32 it is flatter (81.4, 79.3, 116.2 and
136.3): there, too, a single row pays for its tile."""
NGRAM_CALL, TEXT_CALL = 0.001, 0.01
"""Cost of a call in passes of one row."""
_NGRAM_START, _TEXT_START = (0.3, 0.6), (0.6, 0.9)
"""Acceptance (first token, later ones) that is expected before anything is known."""


class Drafting:
    """Makes the drafters of one document, page by page; what they learn stays with it."""

    def __init__(self, asked: DrafterName, tokenizer: Tokenizer, markup: MarkupIds) -> None:
        self._asked = asked
        self._tokenizer, self._markup = tokenizer, markup
        self._ngram = Source("ngram", NgramDrafter(), NGRAM_CALL, *_NGRAM_START)
        self._text: Source | None = None

    @property
    def wants_text(self) -> bool:
        """Whether pages should come with their text layer."""
        return self._asked in ("auto", "text-layer")

    def drafter(self, layer: TextLayer | None) -> Drafter | None:
        """The drafter of the next page; None to decode it plainly."""
        text = None if layer is None or not layer.lines else self._text_drafter(layer)
        if self._asked == "auto":
            return AutoDrafter(self._sources(text), PASS_COST)
        if self._asked == "ngram":
            return self._ngram.drafter
        return text if self._asked == "text-layer" else None

    def name(self, drafter: Drafter | None) -> str:
        """What statistics call a page's drafter: for `auto`, the source that helped most."""
        if drafter is None:
            return "none"
        return drafter.used if isinstance(drafter, AutoDrafter) else self._asked

    def _text_drafter(self, layer: TextLayer) -> TextLayerDrafter:
        return TextLayerDrafter(layer_stream(layer), self._tokenizer, self._markup)

    def _sources(self, text: Drafter | None) -> tuple[Source, ...]:
        if text is None:
            return (self._ngram,)
        known = _TEXT_START if self._text is None else (self._text.first, self._text.later)
        self._text = Source("text-layer", text, TEXT_CALL, *known)
        return self._text, self._ngram
