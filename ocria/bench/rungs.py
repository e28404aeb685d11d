"""Rungs of the ladder: ways to decode the page set, each of which may be missing here."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Protocol

from ocria.bench.bench_model import BenchModel
from ocria.bench.driver import drive, joined
from ocria.bench.figures import LaunchCounts, PageOutput, RungRun
from ocria.bench.launches import count_launches
from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.page_set import BenchPage
from ocria.engine import Engine, Request
from ocria.engine.speculative import Drafter

REFERENCE = "reference"
"""Arithmetic of the reference path, which every other one is held against."""
FUSED = "fused"
"""Arithmetic of the model's fused kernels."""

PageDrafters = Callable[[Sequence[BenchPage]], Iterator[Drafter | None]]
"""Yields the drafter of one page after the other, each asked for when its turn has come."""


class Rung(Protocol):
    """One way to decode.

    Attributes:
        name: in tables and in `--rung`.
        arithmetic: rungs that share it must write the same tokens.
        weight_bytes: bytes of the weights that one pass reads, as this rung stores them.
    """

    name: str
    arithmetic: str
    weight_bytes: int

    def unavailable(self) -> str | None:
        """Why it cannot run here; None if it can."""
        ...

    def run(self) -> RungRun:
        """Decodes the whole page set."""
        ...

    def warm_up(self) -> None:
        """Decodes a little, so that compiling and first touches stay out of the figures."""
        ...

    def launches(self) -> LaunchCounts | None:
        """What the host asks of the device in a step; None where that is not counted."""
        ...


class MissingRung:
    """A rung of the ladder that this version or machine does not have."""

    arithmetic = REFERENCE
    weight_bytes = 0

    def __init__(self, name: str, why: str) -> None:
        self.name = name
        self._why = why

    def unavailable(self) -> str | None:
        """The reason."""
        return self._why

    def run(self) -> RungRun:
        """Never called."""
        raise AssertionError(f"{self.name} is not available: {self._why}")

    def warm_up(self) -> None:
        """Never called."""
        raise AssertionError(f"{self.name} is not available: {self._why}")

    def launches(self) -> LaunchCounts | None:
        """Nothing runs, so nothing is counted."""
        return None


class EngineRung:
    """The product's engine with one drafter, one page after the other or several at once.

    Args:
        model: target and pages.
        drafters: None decodes plainly.
        num_slots: sequences at once.
        arithmetic: see `Rung`.
        weight_bytes: None takes what the reference path keeps.
    """

    def __init__(
        self,
        name: str,
        model: BenchModel,
        drafters: PageDrafters | None = None,
        *,
        num_slots: int = 1,
        arithmetic: str = REFERENCE,
        weight_bytes: int | None = None,
    ) -> None:
        self.name = name
        self.arithmetic = arithmetic
        self.weight_bytes = weight_bytes or model.counter.weight_bytes()
        self._model = model
        self._drafters = drafters
        self._num_slots = num_slots
        self._target = MeasuredTarget(model.target, model.images)
        self._engine: Engine | None = None

    def unavailable(self) -> str | None:
        """It always runs."""
        return None

    def run(self) -> RungRun:
        """Decodes the whole page set: page by page, or as many at once as there are slots."""
        # A drafter that looks at hidden rows asks for them when it is made; the others pay nothing.
        self._target.tap_layers = ()
        pages = self._model.pages
        if self._num_slots > 1:
            filled = (pages * self._num_slots)[: max(self._num_slots, len(pages))]
            run = self._drive(self._requests(filled))
            return _without_copies(run, len(pages))
        return joined([self._drive([request]) for request in self._requests(pages)])

    def warm_up(self) -> None:
        """A few steps of the first page."""
        first = self._model.pages[:1]
        self._drive(self._requests(first, max_tokens=min(8, self._model.max_tokens)))

    def launches(self) -> LaunchCounts | None:
        """Profiles steps of the first page."""
        request = next(self._requests(self._model.pages[:1]))
        self._target.num_passes = 0
        return count_launches(self._engine_of(), self._target, request)

    def _engine_of(self) -> Engine:
        # Made late: a rung that is not run needs no memory.
        if self._engine is None:
            config = self._model.engine_config(num_slots=self._num_slots)
            self._engine = Engine(self._target, config)
        return self._engine

    def _drive(self, requests: Iterator[Request] | Sequence[Request]) -> RungRun:
        return drive(self._engine_of(), self._target, list(requests))

    def _requests(
        self, pages: Sequence[BenchPage], max_tokens: int | None = None
    ) -> Iterator[Request]:
        drafters = iter(()) if self._drafters is None else self._drafters(pages)
        for page in pages:
            yield Request(
                prompt=page.prompt,
                image=page.image,
                max_tokens=max_tokens or self._model.max_tokens,
                drafter=next(drafters, None),
            )


def _without_copies(run: RungRun, num_pages: int) -> RungRun:
    """The outputs of the pages; those of their copies are held against them first."""
    pages: list[PageOutput] = list(run.outputs[:num_pages])
    for index, output in enumerate(run.outputs):
        if output != pages[index % num_pages]:
            # The first copy that differs stands for its page, so that the comparison sees it.
            pages[index % num_pages] = output
    return replace(run, outputs=tuple(pages))
