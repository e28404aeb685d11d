"""One loaded model that turns page pictures into pages, one or many at a time."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch

from ocria.document import Generator, Page
from ocria.engine import Engine, EngineConfig, Outcome
from ocria.engine.memory import slots_that_fit
from ocria.errors import DeviceError, PageErrorCode, WeightsError
from ocria.models.base import WINDOW
from ocria.models.device import dtype_of, resolve_device
from ocria.models.drafter import find_drafter
from ocria.models.finding import find_checkpoint, named_drafter
from ocria.models.presets import NATIVE
from ocria.models.qwen3_5.model import keeps_rows_apart
from ocria.models.registry import (
    Checkpoint,
    LoadedModel,
    fill,
    open_checkpoint,
)
from ocria.models.special_tokens import SpecialTokens
from ocria.options import DrafterName, ParseOptions
from ocria.pipeline.admission import MemoryNeed, admit, memory_need
from ocria.pipeline.dflash import dflash_maker
from ocria.pipeline.draft_costs import draft_costs
from ocria.pipeline.drafting import Drafting
from ocria.pipeline.markup_ids import markup_ids
from ocria.pipeline.mtp import brings_mtp, mtp_maker
from ocria.pipeline.page_job import Following, IsolatedPageJob, PageJob, ReadingRules
from ocria.pipeline.page_processes import PageProcesses, in_place
from ocria.pipeline.page_threads import PageThreads
from ocria.rasterize import PageFailed, PageImage
from ocria.version import __version__
from ocria.vision import PreprocessorConfig, SizeRule

PAGE_THREADS = 4
"""Where the model is not on the CPU: a page cut in regions takes a core for most of a second, many
pages on an H200 less than a tenth each."""
_WAIT_S = 0.1
"""For a page that is being cut while nothing else is to be done."""


REGIONS_SIDE_BY_SIDE = 8
"""Of one page, if no other pages are read: on a CPU eight rows cost a pass hardly more than one."""


class _InEngine:
    """A page's requests that the engine has, and what became of them."""

    def __init__(self, key: int, job: PageJob, num_requests: int) -> None:
        self.key, self.job = key, job
        self._outcomes: dict[int, Outcome] = {}
        self._num_requests = num_requests

    def take(self, place: int, outcome: Outcome) -> list[Outcome] | None:
        """Keeps an outcome; all of them in the order of the requests once the last one is there."""
        self._outcomes[place] = outcome
        if len(self._outcomes) < self._num_requests:
            return None
        return [self._outcomes[place] for place in range(self._num_requests)]


class PageReader:
    """A model ready to read pages; load it once, use it for any number of documents.

    `read` reads a page. To read many side by side, `submit` them and `step` until they come out;
    what a page says does not depend on its company.

    Args:
        model: the loaded checkpoint.
        options: see `ParseOptions`.
        most_pages: pages that are read side by side if memory allows.
        isolates: an unforeseen error fails its page and is not raised.
        num_threads: that cut pages while others are in the model; with 0 the model waits.
        num_processes: that look at pictures for these threads; with 0 they do it themselves.

    Attributes:
        size_rule: maps a page's size in pixels to the size in which its picture is wanted: the
            model's own, or twice its area where regions may be read.
        num_threads: that cut pages while others are in the model.
    """

    def __init__(
        self,
        model: LoadedModel,
        options: ParseOptions,
        *,
        most_pages: int = 1,
        isolates: bool = False,
        num_threads: int = 0,
        num_processes: int = 0,
    ) -> None:
        self.model = model
        self._isolates, self._most_pages = isolates, most_pages
        self._options = options
        preprocessor = image_settings(model)
        max_positions = longest_page(model.tokens, preprocessor, options.max_tokens)
        config = EngineConfig(
            stop_ids=model.tokens.stop_ids,
            forbidden_ids=model.tokens.suppressed_ids,
            max_positions=max_positions,
            num_slots=slots_that_fit(
                model.target, max_positions, max(most_pages, _most_requests(model))
            ),
        )
        self._engine = Engine(model.target, config)
        self._processes = PageProcesses(num_processes) if num_processes else None
        self._rules = ReadingRules(
            model=model,
            preprocessor=preprocessor,
            markup=markup_ids(model.tokenizer),
            max_tokens=options.max_tokens,
            stats=options.stats,
            apply=self._processes or in_place,
        )
        self._costs = draft_costs(
            model.target.device,
            num_pages=self.num_slots,
            num_layers=model.target.layout.num_layers,
        )
        self.size_rule: SizeRule = preprocessor.size_rule
        if self._rules.examines:
            self.size_rule = replace(self.size_rule, max_pixels=2 * self.size_rule.max_pixels)
        wants_dflash = self._wants("dflash")
        self._dflash = dflash_maker(model, options.drafter_model) if wants_dflash else None
        wants_mtp = self._dflash is None and self._wants("mtp")
        self._mtp = mtp_maker(model, needed=self._asked == "mtp") if wants_mtp else None
        # By ticket: the page, and the request's place among those of the page.
        self._asked_for: dict[int, tuple[_InEngine, int]] = {}
        self.num_threads = num_threads
        self._threads = PageThreads(num_threads) if num_threads else None
        self._num_in_engine = 0
        self._worked_on: dict[int, PageJob] = {}
        self._done: list[tuple[int, Page]] = []
        self._next_key = 0
        self.begin_document()

    @property
    def wants_text(self) -> bool:
        """Whether pictures should come with their page's text layer."""
        return self._drafting.wants_text

    def begin_document(self) -> None:
        """Forgets what the drafters learnt of the document before; results do not depend on it."""
        self._drafting = self.new_drafting()

    def new_drafting(self) -> Drafting:
        """What makes and teaches the drafters of one document."""
        return Drafting(
            self._asked,
            self.model.tokenizer,
            self._rules.markup,
            self._costs,
            self._dflash,
            self._mtp,
        )

    @property
    def _asked(self) -> DrafterName:
        """The drafter of the options, as far as it can be had on this device."""
        if self._options.drafter == "auto" and not keeps_rows_apart(self.model.target):
            return "none"
        return self._options.drafter

    def _wants(self, name: DrafterName) -> bool:
        """Whether a drafter with weights of its own is loaded, if there are any."""
        return self._asked == name or (self._asked == "auto" and self._costs.may_pay(name))

    @property
    def generator(self) -> Generator:
        """What makes the pages: program, model, and the settings that can change them."""
        return Generator(ocria=__version__, model=self.model.info, settings=self.settings)

    @property
    def settings(self) -> dict[str, Any]:
        """The settings that can change what is read."""
        settings = {"max_tokens": self._options.max_tokens, "dpi": self._options.dpi or "auto"}
        preset = self.model.preset
        return settings if preset is NATIVE else {**settings, "preset": preset.name}

    def read(self, picture: PageImage | PageFailed) -> Page:
        """Reads one page. A page that cannot be read comes back with status `failed`."""
        assert not self.num_pages, "`read` is for one page at a time"
        try:
            self.submit(self.job(picture, self._drafting))
            while not (done := self.step()):
                pass
        except BaseException:
            self.close()
            raise
        return done[0][1]

    def job(self, picture: PageImage | PageFailed, drafting: Drafting) -> PageJob:
        """A page to be read; its `begin` may run elsewhere, before it is submitted."""
        kind = IsolatedPageJob if self._isolates else PageJob
        return kind(picture, self._rules, drafting)

    @property
    def num_slots(self) -> int:
        """Pages that are read side by side."""
        return min(self._most_pages, self._engine.num_slots)

    @property
    def num_pages(self) -> int:
        """Pages submitted and not handed back."""
        return self._num_in_engine + len(self._worked_on) + len(self._done)

    def submit(self, job: PageJob, begun: Following | None = None) -> int:
        """Queues a page; its key.

        Args:
            job: from `job`.
            begun: what its `begin` said, if it was asked already.
        """
        key = self._next_key
        self._next_key += 1
        if begun is None:
            self._work(key, job, job.begin)
        else:
            self._go_on(key, job, begun)
        return key

    def step(self) -> list[tuple[int, Page]]:
        """One round of the engine; keys and pages that are done."""
        if self._threads is not None:
            is_idle = not self._asked_for and not self._done
            for key, following in self._threads.ended(_WAIT_S if is_idle else 0.0):
                self._go_on(key, self._worked_on.pop(key), following)
        if not self._done:
            for ticket, outcome in self._engine.step():
                page, place = self._asked_for.pop(ticket)
                if (outcomes := page.take(place, outcome)) is not None:
                    self._num_in_engine -= 1
                    page.job.teach()
                    self._work(page.key, page.job, partial(page.job.conclude, outcomes))
        done, self._done = self._done, []
        return done

    def cancel(self, key: int, code: PageErrorCode, message: str) -> None:
        """Gives a page up; it comes out of the next `step` as failed, if it is not done yet."""
        tickets = [ticket for ticket, (page, _) in self._asked_for.items() if page.key == key]
        for ticket in tickets:
            self._engine.cancel(ticket)
            page, _ = self._asked_for.pop(ticket)
        if tickets:
            self._num_in_engine -= 1
            self._done.append((key, page.job.failed(code, message)))
        if self._threads is not None and key in self._threads:
            self._threads.give_up(key)
            self._done.append((key, self._worked_on.pop(key).failed(code, message)))

    def close(self) -> None:
        """Forgets all pages."""
        self._engine.close()
        if self._threads is not None:
            self._threads.clear()
        if self._processes is not None:
            self._processes.close()
        self._worked_on.clear()
        self._asked_for.clear()
        self._num_in_engine = 0
        self._done.clear()

    def _work(self, key: int, job: PageJob, work: Callable[[], Following]) -> None:
        if self._threads is None:
            self._go_on(key, job, work())
        else:
            self._worked_on[key] = job
            self._threads.start(key, work)

    def _go_on(self, key: int, job: PageJob, following: Following) -> None:
        if isinstance(following, Page):
            self._done.append((key, following))
            return
        page = _InEngine(key, job, len(following))
        self._num_in_engine += 1
        for place, request in enumerate(following):
            self._asked_for[self._engine.submit(request)] = (page, place)


def _most_requests(model: LoadedModel) -> int:
    """Slots that one page can use: other checkpoints' pages are never read in regions."""
    return REGIONS_SIDE_BY_SIDE if model.preset is NATIVE else 1


def load_page_reader(
    options: ParseOptions,
    *,
    most_pages: int = 1,
    isolates: bool = False,
    num_threads: int = 0,
    num_processes: int = 0,
) -> PageReader:
    """Loads the checkpoint that the options name; the rest as for `PageReader`.

    Raises:
        WeightsError: missing, damaged, of an unknown architecture, or no drafter weights for
            `--drafter dflash`.
        DeviceError: the device cannot be used, or has too little memory.
    """
    folder = find_checkpoint(options.model)
    named = named_drafter(options.drafter_model)
    if find_drafter(folder, named) is None and options.drafter == "dflash":
        raise WeightsError(
            f"the model {folder.name} has no dflash drafter",
            hint="name a drafter's folder with `--drafter-model`, or leave `--drafter` out: "
            "`auto` takes the best drafter there is",
        )
    if options.drafter == "mtp" and not brings_mtp(folder):
        raise WeightsError(
            f"the model {folder.name} has no MTP head",
            hint="leave `--drafter` out: `auto` takes the best drafter there is",
        )
    model = _load(folder, options)
    return PageReader(
        model,
        options,
        most_pages=most_pages,
        isolates=isolates,
        num_threads=num_threads,
        num_processes=num_processes,
    )


def _load(folder: Path, options: ParseOptions) -> LoadedModel:
    """The model, once it is known to fit."""
    device = resolve_device(options.device)
    checkpoint = open_checkpoint(folder, device=device, precision=options.precision)
    admit(_need(checkpoint, device, options.max_tokens), checkpoint, device)
    try:
        return fill(checkpoint, device)
    except (torch.OutOfMemoryError, MemoryError) as error:
        raise DeviceError(
            f"out of memory while loading {checkpoint.info.name} on {device}",
            hint="another program took memory meanwhile; `ocria doctor` shows what is free",
        ) from error


def page_need(options: ParseOptions, device: torch.device) -> MemoryNeed:
    """What the model that the options name takes on a device to read one page."""
    folder = find_checkpoint(options.model)
    checkpoint = open_checkpoint(folder, device=device, precision=options.precision)
    return _need(checkpoint, device, options.max_tokens)


def _need(checkpoint: Checkpoint, device: torch.device, max_tokens: int) -> MemoryNeed:
    settings = image_settings(checkpoint)
    return memory_need(
        checkpoint,
        device=device,
        dtype=dtype_of(device),
        max_positions=longest_page(checkpoint.tokens, settings, max_tokens),
        max_pixels=settings.max_pixels,
    )


def longest_page(tokens: SpecialTokens, settings: PreprocessorConfig, max_tokens: int) -> int:
    """Positions that a page of the largest area takes, written to the limit."""
    merged_px = (settings.patch_size * settings.merge_size) ** 2
    prompt = settings.max_pixels // merged_px + len(tokens.prompt.fill(0, 0).token_ids)
    return prompt + max_tokens + WINDOW


def image_settings(model: LoadedModel | Checkpoint) -> PreprocessorConfig:
    """The checkpoint's own image settings, within its preset's budget."""
    own, budget = PreprocessorConfig.from_folder(model.folder), model.preset.budget
    if budget is None:
        return own
    return replace(own, min_pixels=budget.min_pixels, max_pixels=budget.max_pixels)
