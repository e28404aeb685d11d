"""Pages of many items read at once, where an engine can: the same readings, sooner.

On a CPU a decoding pass over 16 rows costs 1.26 times a pass over one (see
`ocria.pipeline.draft_costs`), so a page that is read alone pays for company that it does not have.

Seconds of such a page are shares: what was done for it alone counts in whole (cutting its picture
into patches), and each step of the engine counts in equal parts for the pages that were in it. Over
all pages they add up to the time that the engine took. Where threads draw and cut pages beside a
GPU, their time is in nobody's seconds: there these are the model's.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol, runtime_checkable

from ocria.errors import OcriaError, OutputError
from ocria.eval.drawn_ahead import Waiting, drawn_ahead
from ocria.eval.engines import Engine, PageImage, UnreadablePage
from ocria.eval.items import Item
from ocria.eval.one_by_one import cpu_time_s
from ocria.eval.prediction_store import OpenReading, PredictionError
from ocria.eval.predictions import PagePrediction, Prediction, failed_page

_DRAWN_A_PAGE = 2
"""Documents that are drawn ahead for each page that is made ready: one of a single page takes half
a second of a core, most of it for its process, a page a tenth."""

WhatIsRead = tuple[str, Path, tuple[int, ...] | None]
_log = logging.getLogger(__name__)


@runtime_checkable
class CompanyEngine(Protocol):
    """An engine that reads pages side by side."""

    name: str

    @property
    def num_slots(self) -> int:
        """Pages that it can read at once; may shrink while it reads."""
        ...

    @property
    def num_ahead(self) -> int:
        """Pages beyond these that it makes ready meanwhile; 0 where all work is the caller's."""
        ...

    def begin_document(self) -> None:
        """What is submitted from now on is of another document."""
        ...

    def submit(self, page: PageImage) -> int:
        """Takes a page; its key. An exception fails that page alone."""
        ...

    def step(self) -> list[tuple[int, PagePrediction]]:
        """Goes on with all pages; keys and readings that are done. An exception loses them all."""
        ...

    def forget_pages(self) -> None:
        """Gives up the pages that were submitted."""
        ...


@dataclass(kw_only=True)
class _Open:
    """An item that is being read; `num_due` of its pages are in the engine."""

    item: Item
    reading: OpenReading
    num_due: int = 0
    is_submitted: bool = False
    is_given_up: bool = False


@dataclass(kw_only=True)
class _InCompany:
    """A page in the engine, with its share of the time so far."""

    open_item: _Open
    number: int
    seconds: float
    cpu_seconds: float
    most: int = 1


def what_is_read(item: Item) -> WhatIsRead:
    """What items share that one reading serves: olmOCR-bench has rules on a page in two sets."""
    return item.name, item.path, item.pages


def is_for_company(engine: Engine) -> bool:
    """Whether an engine reads more than one page at once."""
    return isinstance(engine, CompanyEngine) and engine.num_slots > 1


def read_side_by_side(
    engine: Engine, waiting: Iterable[Waiting], *, threads: int, notify: Callable[[str], None]
) -> dict[WhatIsRead, Prediction]:
    """Reads what waits and keeps it; whole readings by `what_is_read`.

    An item is missing from the result where it could not be opened, drawn or kept, or where the
    engine broke down: its pages up to there are kept, and reading it alone says what is wrong.

    Raises:
        OutputError: nothing can be kept.
    """
    assert isinstance(engine, CompanyEngine)
    company = _Company(engine, threads, notify)
    try:
        drawn = drawn_ahead(waiting, _DRAWN_A_PAGE * engine.num_ahead)
        for page in _pages(engine, drawn, company.take_whole):
            company.make_room()
            company.submit(*page)
        company.read_all()
    finally:
        engine.forget_pages()
    return company.whole


def _pages(
    engine: CompanyEngine, waiting: Iterable[Waiting], end: Callable[[_Open], None]
) -> Iterator[tuple[_Open, PageImage]]:
    """Pages of item after item; an item that makes trouble ends there."""
    for one in waiting:
        reading = one.store.begin(one.item.name, one.kept)
        opened = _Open(item=one.item, reading=reading)
        engine.begin_document()
        try:
            for picture in one.pictures:
                if opened.is_given_up:
                    break
                if isinstance(picture, UnreadablePage):
                    opened.is_given_up = True
                    break
                reading.open()
                yield opened, picture
        except OutputError:
            raise
        except (PredictionError, OcriaError) as error:
            _log.info("%s is left for reading alone: %s", one.item.name, error)
            opened.is_given_up = True
        opened.is_submitted = True
        end(opened)


class _Company:
    """The pages in the engine, and the items that they are of."""

    def __init__(self, engine: CompanyEngine, threads: int, notify: Callable[[str], None]) -> None:
        self.whole: dict[WhatIsRead, Prediction] = {}
        self._engine = engine
        self._threads = threads
        self._notify = notify
        self._reading: dict[int, _InCompany] = {}

    def make_room(self) -> None:
        """Reads until another page fits."""
        engine = self._engine
        while self._reading and len(self._reading) >= engine.num_slots + engine.num_ahead:
            self._step()

    def read_all(self) -> None:
        """Reads what is in the engine to its end."""
        while self._reading:
            self._step()

    def submit(self, opened: _Open, picture: PageImage) -> None:
        """Gives the engine a page."""
        if opened.is_given_up:
            return
        started_s, cpu_started_s = time.perf_counter(), cpu_time_s()
        opened.num_due += 1
        try:
            key = self._engine.submit(picture)
        # An engine may fail in any way on a page; the others must still be read.
        except Exception as error:
            page = failed_page(picture.number, error, seconds=time.perf_counter() - started_s)
            self._keep(opened, page)
            return
        self._reading[key] = _InCompany(
            open_item=opened,
            number=picture.number,
            seconds=time.perf_counter() - started_s,
            cpu_seconds=cpu_time_s() - cpu_started_s,
        )

    def take_whole(self, opened: _Open) -> None:
        """Ends the reading of an item once all its pages are there."""
        is_whole = opened.is_submitted and not opened.is_given_up and not opened.num_due
        # What was not opened had no page to read.
        if not is_whole or not opened.reading.is_open:
            return
        self.whole[what_is_read(opened.item)] = opened.reading.finish()
        self._notify(f"{self._engine.name} read {opened.item.name}, number {len(self.whole)}")

    def _step(self) -> None:
        started_s, cpu_started_s = time.perf_counter(), cpu_time_s()
        try:
            done = self._engine.step()
        # Whose fault it was is not known: each is read alone, where the guilty one is found.
        except Exception as error:
            _log.warning("reading %d pages side by side failed: %r", len(self._reading), error)
            for company in self._reading.values():
                company.open_item.is_given_up = True
            self._reading.clear()
            self._engine.forget_pages()
            return
        self._share(time.perf_counter() - started_s, cpu_time_s() - cpu_started_s)
        for key, page in done:
            company = self._reading.pop(key)
            self._keep(company.open_item, self._timed(company, page))

    def _share(self, seconds: float, cpu_seconds: float) -> None:
        count = len(self._reading)
        for page in self._reading.values():
            page.seconds += seconds / count
            page.cpu_seconds += cpu_seconds / count
            page.most = max(page.most, count)

    def _timed(self, company: _InCompany, page: PagePrediction) -> PagePrediction:
        return replace(
            page, seconds=company.seconds, cpu_seconds=company.cpu_seconds,
            threads=self._threads, side_by_side=company.most,
        )  # fmt: skip

    def _keep(self, opened: _Open, page: PagePrediction) -> None:
        if opened.is_given_up:
            return
        opened.num_due -= 1
        opened.reading.add(page)
        self.take_whole(opened)
