"""Which drafter a page gets."""

from collections.abc import Callable

from ocria.engine.speculative import (
    AutoDrafter,
    DFlashDrafter,
    Drafter,
    NgramDrafter,
    Past,
    Source,
)
from ocria.options import DrafterName
from ocria.pipeline.draft_costs import START, DraftCosts
from ocria.pipeline.layer_stream import layer_stream
from ocria.pipeline.markup_ids import MarkupIds
from ocria.pipeline.text_layer import TextLayerDrafter
from ocria.rasterize import TextLayer
from ocria.tokenizer import Tokenizer


class Drafting:
    """Makes the drafters of one document's pages; what they learn stays with it.

    Pages may be decoded side by side: each has a drafter of its own, which begins with what the
    pages that ended before have taught.

    Args:
        asked: which drafter pages get.
        tokenizer: of the model.
        markup: its block marks.
        costs: of drafting on the device.
        dflash: makes a page's DFlash drafter; None without weights for one.
        mtp: the same for the checkpoint's MTP head. Both at once would need other taps.
    """

    def __init__(
        self,
        asked: DrafterName,
        tokenizer: Tokenizer,
        markup: MarkupIds,
        costs: DraftCosts,
        dflash: Callable[[], Drafter] | None = None,
        mtp: Callable[[], Drafter] | None = None,
    ) -> None:
        self._asked = asked
        self._learned = {"dflash": dflash, "mtp": mtp}
        self._tokenizer, self._markup, self._costs = tokenizer, markup, costs
        self._past = Past()
        self._acceptance = dict(START)

    @property
    def wants_text(self) -> bool:
        """Whether pages should come with their text layer."""
        return self._asked == "text-layer" or self._has("text-layer")

    def drafter(self, layer: TextLayer | None) -> Drafter | None:
        """A page's drafter; None to decode it plainly."""
        if self._asked in self._learned:
            make = self._learned[self._asked]
            return make() if make else None
        if self._asked == "auto":
            return self._auto(layer)
        if self._asked == "ngram":
            return NgramDrafter(self._past)
        return self._text_drafter(layer) if self._asked == "text-layer" else None

    def end_page(self, drafter: Drafter | None) -> None:
        """Learns from a page that is over."""
        if isinstance(drafter, NgramDrafter | DFlashDrafter):
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

    def _has(self, name: str) -> bool:
        """Whether a source is one of `auto`'s."""
        return self._asked == "auto" and self._costs.may_pay(name)

    def _auto(self, layer: TextLayer | None) -> AutoDrafter | None:
        """What is worth its cost here; None if nothing is."""
        makers: dict[str, Callable[[], Drafter | None] | None] = {
            "text-layer": lambda: self._text_drafter(layer),
            "ngram": lambda: NgramDrafter(self._past),
            **self._learned,
        }
        sources = [
            self._source(name, drafter)
            for name, make in makers.items()
            if make and self._has(name) and (drafter := make())
        ]
        return AutoDrafter(sources, self._costs.of_pass, self._costs.grant) if sources else None

    def _text_drafter(self, layer: TextLayer | None) -> TextLayerDrafter | None:
        if layer is None or not layer.lines:
            return None
        return TextLayerDrafter(layer_stream(layer), self._tokenizer, self._markup)

    def _source(self, name: str, drafter: Drafter) -> Source:
        return Source(name, drafter, self._costs.of_call[name], *self._acceptance[name])
