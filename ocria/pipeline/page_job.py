"""One page on its way through the model: ink test, patches, request, blocks; turned, or in regions.

A job is asked what comes next: requests for the engine, or the finished page. Its work is all on
the CPU and touches nothing that other jobs change, so `begin` and `conclude` may run on any thread.
`teach` changes what drafters of other pages read: it belongs to the thread that decodes.
"""

import logging
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from ocria.document import (
    Decoding,
    Page,
    PageFailure,
    PageSeconds,
    PageStats,
    PageStatus,
)
from ocria.engine import Finish, Outcome, Request, Result
from ocria.engine.speculative import Drafter
from ocria.errors import PageError
from ocria.models.base import ImagePatches
from ocria.models.device import staged
from ocria.models.presets import NATIVE
from ocria.models.registry import LoadedModel
from ocria.output import DecodedText, PageGeometry, build_page_blocks
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import MarkupIds
from ocria.pipeline.page_processes import Apply, in_place
from ocria.pipeline.regions import Reading, SecondReading, tables
from ocria.pipeline.turning import opening_turn, turn_ids, turned
from ocria.rasterize import PageFailed, PageImage
from ocria.vision import PreprocessorConfig, cut, measure_ink, page_regions, seen, sized

_log = logging.getLogger(__name__)
_STATUS: Mapping[Finish, PageStatus] = {"eos": "ok", "length": "truncated", "loop": "repaired"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ReadingRules:
    """What all pages of a reader have in common.

    Attributes:
        model: the loaded checkpoint.
        preprocessor: its image settings.
        markup: its block marks.
        max_tokens: limit for a page.
        stats: measure each page.
        apply: calls what looks at pictures.
    """

    model: LoadedModel
    preprocessor: PreprocessorConfig
    markup: MarkupIds
    max_tokens: int
    stats: bool
    apply: Apply = in_place

    @property
    def examines(self) -> bool:
        """Whether readings are held against the picture: boxes moved to the ink, doubtful pages
        read in regions. Only our own checkpoints' errors were measured."""
        return self.model.preset is NATIVE


Following = tuple[Request, ...] | Page
"""What a page wants next: requests that may be read side by side, or nothing, being done."""


class _Asked(NamedTuple):
    """What was asked of the engine.

    Attributes:
        picture: of the page or region.
        drafter: of the request.
        read_px: width and height in which it is read.
        cut_s: seconds that cutting it into patches took.
    """

    picture: PageImage
    drafter: Drafter | None
    read_px: tuple[int, int]
    cut_s: float


class PageJob:
    """One page: `begin`, then `conclude` with outcomes until the page is there."""

    def __init__(
        self, picture: PageImage | PageFailed, rules: ReadingRules, drafting: Drafting
    ) -> None:
        self.picture = picture
        self._rules = rules
        self._drafting = drafting
        self._asked: list[_Asked] = []
        self._pixels = np.empty((0, 0), np.uint8)
        self._as_it_came: PageImage | None = None
        self._second: SecondReading | None = None
        self._spent: PageStats | None = None

    def begin(self) -> Following:
        """The first request; or the page, if it is blank or could not be drawn."""
        if isinstance(self.picture, PageFailed):
            return self.failed(self.picture.code, self.picture.message)
        started = time.perf_counter()
        pixels = self._seen(self.picture)
        if self._rules.apply(measure_ink, pixels).is_blank:
            return self._blank(self.picture, time.perf_counter() - started)
        return self._whole(pixels, started)

    def conclude(self, outcomes: Sequence[Outcome]) -> Following:
        """The page; or other requests: for the page turned, or for its regions.

        Args:
            outcomes: of the requests that were asked for last, in their order.
        """
        started = time.perf_counter()
        following = self._following(outcomes)
        if isinstance(following, Page) and following.stats:
            seconds = following.stats.seconds
            seconds = replace(seconds, vision=seconds.vision + time.perf_counter() - started)
            return replace(following, stats=replace(following.stats, seconds=seconds))
        return following

    def _following(self, outcomes: Sequence[Outcome]) -> Following:
        if self._second is not None:
            return self._joined(self._second, outcomes)
        (outcome,) = outcomes
        if isinstance(outcome, PageError):
            return self.failed(outcome.code, str(outcome))
        assert isinstance(self.picture, PageImage), "a page without a picture asks for nothing"
        reading = self._reading(self._asked[0], outcome)
        turn = opening_turn(outcome.token_ids, self._rules.markup)
        if not turn:
            return self._judged(self.picture, reading)
        # The turn's own reading is one token; what it cost belongs to the page.
        self._spent, started = reading.page.stats, time.perf_counter()
        if self._as_it_came is None:
            self._as_it_came, self.picture = self.picture, turned(self.picture, turn)
            return self._whole(self._seen(self.picture), started)
        # It would turn the turned page as well, so it cannot tell: the page is read as it came.
        self.picture = self._as_it_came
        return self._whole(self._seen(self.picture), started, may_turn=False)

    def teach(self) -> None:
        """Lets the drafters of its document learn from what was read; before `conclude`."""
        for asked in self._asked:
            self._drafting.end_page(asked.drafter)

    def failed(self, code: str, message: str) -> Page:
        """The page without a result."""
        return Page(
            number=self.picture.number,
            width_pt=self.picture.width_pt,
            height_pt=self.picture.height_pt,
            rotation=self.picture.rotation,
            status="failed",
            error=PageFailure(code=code, message=message),
        )

    def _judged(self, picture: PageImage, first: Reading) -> Following:
        """The page; or requests for its regions, if it is doubtful and can be cut."""
        rules = self._rules
        if not rules.examines:
            return first.page
        started = time.perf_counter()
        first = rules.apply(Reading.examined, first, self._pixels)
        if not first.is_doubtful:
            return first.final
        regions = rules.apply(page_regions, picture.rgb, list(tables(first)))
        if not regions:
            return first.final
        second = SecondReading(picture, first, regions, rules.max_tokens)
        self._second, self._spent, self._asked = second, first.page.stats, []
        requests = []
        for region, limit in zip(second.pictures, second.limits, strict=True):
            request = self._request(region, self._seen(region), started, may_turn=False)
            requests.append(replace(request, max_tokens=limit))
            started = time.perf_counter()
        return tuple(requests)

    def _joined(self, second: SecondReading, outcomes: Sequence[Outcome]) -> Page:
        """The better of two readings; the first, if a region could not be read."""
        readings = []
        for asked, outcome in zip(self._asked, outcomes, strict=True):
            if isinstance(outcome, PageError):
                return self._with_all_seconds(second.first.final)
            readings.append(self._reading(asked, outcome))
            self._spent = readings[-1].page.stats
        joined = self._rules.apply(Reading.examined, second.joined(readings), self._pixels)
        return self._with_all_seconds(second.better(joined))

    def _with_all_seconds(self, page: Page) -> Page:
        if page.stats is None or self._spent is None:
            return page
        return replace(page, stats=replace(page.stats, seconds=self._spent.seconds))

    def _seen(self, picture: PageImage) -> NDArray[np.uint8]:
        return seen(picture.rgb, self._rules.preprocessor)

    def _whole(
        self, pixels: NDArray[np.uint8], started: float, *, may_turn: bool = True
    ) -> Following:
        assert isinstance(self.picture, PageImage), "a page without a picture asks for nothing"
        self._asked, self._pixels = [], pixels
        return (self._request(self.picture, pixels, started, may_turn=may_turn),)

    def _request(
        self, picture: PageImage, pixels: NDArray[np.uint8], started: float, *, may_turn: bool
    ) -> Request:
        rules = self._rules
        patches = cut(rules.apply(sized, pixels, rules.preprocessor), rules.preprocessor)
        merge, side = rules.preprocessor.merge_size, rules.preprocessor.patch_size
        drafter = self._drafting.drafter(picture.text)
        read_px = (patches.grid_w * side, patches.grid_h * side)
        self._asked.append(_Asked(picture, drafter, read_px, time.perf_counter() - started))
        prompt = rules.model.tokens.prompt.fill(patches.grid_h // merge, patches.grid_w // merge)
        target = rules.model.target
        values_PC = staged(torch.from_numpy(patches.values), target.device, target.dtype)
        return Request(
            prompt=prompt,
            image=ImagePatches(values_PC, patches.grid_h, patches.grid_w),
            max_tokens=rules.max_tokens,
            drafter=drafter,
            not_first=frozenset() if may_turn else turn_ids(rules.markup),
        )

    def _reading(self, asked: _Asked, result: Result) -> Reading:
        rules, decoded, picture = self._rules, self._decoded(result), asked.picture
        geometry = PageGeometry(
            number=picture.number,
            width_pt=picture.width_pt,
            height_pt=picture.height_pt,
            rotation=picture.rotation,
            read_px=asked.read_px,
        )
        blocks = build_page_blocks(decoded, geometry, rules.model.preset.markup)
        status = _STATUS[result.finish]
        if blocks.repaired and status == "ok":
            status = "repaired"
        page = Page(
            number=picture.number,
            width_pt=blocks.width_pt,
            height_pt=blocks.height_pt,
            rotation=blocks.rotation,
            status=status,
            blocks=blocks.blocks,
            confidence=decoded.page_confidence(),
            num_tokens=len(result.token_ids),
            stats=self._stats(asked, result) if rules.stats else None,
        )
        return Reading(page, decoded.text_logprobs(), result.finish == "loop")

    def _decoded(self, result: Result) -> DecodedText:
        spelling = self._rules.model.tokenizer.spell(result.token_ids)
        return DecodedText(
            text=spelling.text,
            token_ends=spelling.token_ends,
            token_logprobs=result.logprobs,
            special_spans=spelling.special_spans,
        )

    def _stats(self, asked: _Asked, result: Result) -> PageStats:
        """The last reading's figures with the seconds of all; rasterising was done once."""
        before = self._spent.seconds if self._spent else None
        seconds = PageSeconds(
            rasterize=asked.picture.seconds,
            vision=asked.cut_s + result.vision_s + (before.vision if before else 0.0),
            prefill=result.prefill_s + (before.prefill if before else 0.0),
            decode=result.decode_s + (before.decode if before else 0.0),
        )
        return PageStats(seconds=seconds, decoding=self._decoding(asked, result))

    def _decoding(self, asked: _Asked, result: Result) -> Decoding | None:
        if not result.steps:
            return None
        return Decoding(
            drafter=self._drafting.name(asked.drafter),
            steps=result.steps,
            tokens_per_step=round(len(result.token_ids) / result.steps, 3),
            accepted_histogram=result.accepted,
        )

    def _blank(self, picture: PageImage, seconds: float) -> Page:
        spent = PageSeconds(rasterize=picture.seconds, vision=seconds, prefill=0.0, decode=0.0)
        return Page(
            number=picture.number,
            width_pt=picture.width_pt,
            height_pt=picture.height_pt,
            rotation=picture.rotation,
            status="blank",
            stats=PageStats(seconds=spent, decoding=None) if self._rules.stats else None,
        )


class IsolatedPageJob(PageJob):
    """A page whose surprises are its own: one among ten thousand documents does not end the run."""

    def begin(self) -> Following:
        """As `PageJob.begin`; an unforeseen error fails the page."""
        try:
            return super().begin()
        except MemoryError:
            return self.failed("out_of_memory", "the page does not fit in memory; lower --dpi")
        except Exception as error:
            return self._surprised(error)

    def teach(self) -> None:
        """As `PageJob.teach`; a drafter that cannot learn ends nothing."""
        try:
            super().teach()
        except Exception:
            _log.exception("a drafter could not learn from page %d", self.picture.number)

    def conclude(self, outcomes: Sequence[Outcome]) -> Following:
        """As `PageJob.conclude`; an unforeseen error fails the page."""
        try:
            return super().conclude(outcomes)
        except Exception as error:
            return self._surprised(error)

    def _surprised(self, error: Exception) -> Page:
        described = f"{type(error).__name__}: {error}"
        return self.failed("decode_failed", f"a bug of OCRia, please report it: {described}")
