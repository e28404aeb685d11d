"""Which drafter a page gets, and what it costs to follow one."""

from collections.abc import Callable

from ocria.engine.speculative import AutoDrafter, Drafter, NgramDrafter, PassCost, Past, Source
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
CALL_COST = {"ngram": 0.001, "text-layer": 0.01, "dflash": 0.35, "mtp": 0.7}
"""Cost of a call in passes of one row. DFlash of 4 M parameters, 2026-11-30, one core of a CPU with
bfloat16 products, 1,200 positions: 7.7 ms, beside 22.4 for a row and 26.8 for 16 (in float32: 10.3,
30.1 and 35.7). MTP is counted, not measured: four times one layer of 32 and the head, which is a
seventh of a 4B decoder."""
START = {"ngram": (0.3, 0.6), "text-layer": (0.6, 0.9), "dflash": (0.7, 0.8), "mtp": (0.7, 0.7)}
"""Acceptance (first token, later ones) that is expected before anything is known."""


class Drafting:
    """Makes the drafters of one document's pages; what they learn stays with it.

    Pages may be decoded side by side: each has a drafter of its own, which begins with what the
    pages that ended before have taught.

    Args:
        asked: which drafter pages get.
        tokenizer: of the model.
        markup: its block marks.
        dflash: makes a page's DFlash drafter; None without weights for one.
        mtp: the same for the checkpoint's MTP head. Both at once would need other taps.
    """

    def __init__(
        self,
        asked: DrafterName,
        tokenizer: Tokenizer,
        markup: MarkupIds,
        dflash: Callable[[], Drafter] | None = None,
        mtp: Callable[[], Drafter] | None = None,
    ) -> None:
        self._asked = asked
        self._learned = {"dflash": dflash, "mtp": mtp}
        self._tokenizer, self._markup = tokenizer, markup
        self._past = Past()
        self._acceptance = dict(START)

    @property
    def wants_text(self) -> bool:
        """Whether pages should come with their text layer."""
        return self._asked in ("auto", "text-layer")

    def drafter(self, layer: TextLayer | None) -> Drafter | None:
        """A page's drafter; None to decode it plainly."""
        if self._asked in self._learned:
            make = self._learned[self._asked]
            return make() if make else None
        text = None if layer is None or not layer.lines else self._text_drafter(layer)
        ngram = NgramDrafter(self._past)
        if self._asked == "auto":
            learned = {name: make() for name, make in self._learned.items() if make}
            sources = {"text-layer": text, "ngram": ngram, **learned}
            return AutoDrafter(
                [self._source(name, drafter) for name, drafter in sources.items() if drafter],
                PASS_COST,
            )
        if self._asked == "ngram":
            return ngram
        return text if self._asked == "text-layer" else None

    def end_page(self, drafter: Drafter | None) -> None:
        """Learns from a page that is over."""
        if isinstance(drafter, NgramDrafter):
            drafter.end_page()
        elif isinstance(drafter, AutoDrafter):
            for source in drafter.sources:
                self._acceptance[source.name] = (source.first, source.later)
                self.end_page(source.drafter)

    def name(self, drafter: Drafter | None) -> str:
        """What statistics call a page's drafter: for `auto`, the source that helped most."""
        if drafter is None:
            return "none"
        return drafter.used if isinstance(drafter, AutoDrafter) else self._asked

    def _text_drafter(self, layer: TextLayer) -> TextLayerDrafter:
        return TextLayerDrafter(layer_stream(layer), self._tokenizer, self._markup)

    def _source(self, name: str, drafter: Drafter) -> Source:
        return Source(name, drafter, CALL_COST[name], *self._acceptance[name])
