"""What all rungs share: the model, its pages' limits, and how its steps are counted."""

from dataclasses import dataclass, field, replace

from ocria.bench.measured_target import ImageTokens
from ocria.bench.options import BENCH_WINDOW
from ocria.bench.page_set import BenchPage, PageSet
from ocria.bench.traffic import Counter
from ocria.engine import EngineConfig
from ocria.models.base import WINDOW, Target
from ocria.models.registry import LoadedModel


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchModel:
    """A target with its page set.

    Attributes:
        target: computes the passes by the reference path.
        product: by the path that this version takes on this device; may be the same object.
        product_bytes: bytes of a pass's weights as `product` keeps them.
        loaded: the checkpoint; None for random weights.
        counter: bytes and operations of its steps.
        page_set: what is read.
        max_tokens: limit for each page.
        stop_ids: tokens that end a page; none for random weights, so that all run to the limit.
        forbidden_ids: tokens that are never chosen.
        images: image tokens of the target's own vision tower.
    """

    target: Target
    product: Target
    product_bytes: int
    loaded: LoadedModel | None
    counter: Counter
    page_set: PageSet
    max_tokens: int
    stop_ids: frozenset[int]
    forbidden_ids: frozenset[int]
    images: ImageTokens = field(default_factory=dict)

    @property
    def as_product(self) -> "BenchModel":
        """The same pages by the product's own path."""
        return replace(self, target=self.product)

    @property
    def pages(self) -> tuple[BenchPage, ...]:
        return self.page_set.pages

    @property
    def mean_length(self) -> float:
        """Committed positions of a page, in the mean over its decoding at full length."""
        prompts = [len(page.prompt.token_ids) for page in self.pages]
        return sum(prompts) / len(prompts) + self.max_tokens / 2

    def engine_config(self, *, num_slots: int = 1) -> EngineConfig:
        """The engine that reads these pages, and nothing longer."""
        longest = max(len(page.prompt.token_ids) for page in self.pages)
        return EngineConfig(
            stop_ids=self.stop_ids,
            forbidden_ids=self.forbidden_ids,
            # One token more: a forced text ends with its stop token.
            max_positions=longest + self.max_tokens + 1 + WINDOW,
            num_slots=num_slots,
            window=BENCH_WINDOW,
        )
