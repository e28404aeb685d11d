"""One model with its rasterising processes: assignments in, pages out.

Threads open documents, cut their pages into patches and put these into a queue that holds few; the
lane's own thread feeds the model from it, so that the model never waits for one slow document and
memory does not grow with their number.
"""

import queue
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple, Protocol

from ocria.batch.journal import pages_left
from ocria.batch.messages import (
    Assignment,
    Drawn,
    Finished,
    Message,
    Opened,
    PageRead,
    Refused,
    journal_header,
)
from ocria.batch.thumbnail import Selection, png, thumbnail
from ocria.document import Generator, Page
from ocria.errors import InputError, OcriaError, PageErrorCode, PasswordError, WorkerError
from ocria.options import ParseOptions
from ocria.pipeline.stream import upright
from ocria.rasterize import (
    DocumentReader,
    PageFailed,
    PageImage,
    RenderTarget,
    SizeFit,
    open_document,
    page_range,
)

if TYPE_CHECKING:
    # These load torch, which a stand-in model does without.
    from ocria.pipeline.drafting import Drafting
    from ocria.pipeline.page_job import Following, PageJob

_READY_AHEAD = 4
"""Pages cut and waiting beside those in the model, about 15 MB each at a megapixel."""
_STOP_CHECK_S = 0.2


class Reader(Protocol):
    """What a lane needs of `ocria.pipeline.page_reader.PageReader`."""

    @property
    def size_rule(self) -> SizeFit: ...
    @property
    def generator(self) -> Generator: ...
    @property
    def num_slots(self) -> int: ...
    @property
    def num_pages(self) -> int: ...
    def new_drafting(self) -> "Drafting": ...
    def job(self, picture: PageImage | PageFailed, drafting: "Drafting") -> "PageJob": ...
    def submit(self, job: "PageJob", begun: "Following | None" = None) -> int: ...
    def step(self) -> list[tuple[int, Page]]: ...
    def cancel(self, key: int, code: PageErrorCode, message: str) -> None: ...
    def close(self) -> None: ...


class _Ready(NamedTuple):
    """A page that is ready for the model."""

    key: int
    job: "PageJob"
    begun: "Following"


class _Reading(NamedTuple):
    """A page in the model."""

    key: int
    job: "PageJob"
    begun_s: float


_Item = _Ready | Opened | Drawn | Refused | BaseException


class Lane:
    """Reads assignments until closed.

    Args:
        reader: the model.
        options: how documents are read.
        jobs: documents that are drawn side by side.
        timeout_s: for a page: drawing and reading each.
        with_images: hand pages over with their pictures.
    """

    def __init__(
        self,
        reader: Reader,
        options: ParseOptions,
        *,
        jobs: int,
        timeout_s: float | None,
        with_images: bool = False,
    ) -> None:
        self.generator = reader.generator
        self.num_lanes = 1
        self.num_assigned = 0
        self._reader = reader
        self._options = options
        self._timeout_s = timeout_s
        self._with_images = with_images
        self._num_undrawn = 0
        self._most_undrawn = jobs + 2
        self._assignments: queue.SimpleQueue[Assignment | None] = queue.SimpleQueue()
        self._ready: queue.Queue[_Item] = queue.Queue(max(_READY_AHEAD, jobs))
        self._reading: dict[int, _Reading] = {}
        self._num_left: dict[int, int] = {}
        self._selection = Selection()
        self._is_stopping = threading.Event()
        self._feeders = [
            threading.Thread(target=self._feed, name=f"feeder-{n}", daemon=True)
            for n in range(jobs)
        ]
        for feeder in self._feeders:
            feeder.start()

    @property
    def wants_more(self) -> bool:
        """Whether another assignment would keep a rasteriser busy.

        However many documents it takes to fill the model: what is drawn waits in a short queue.
        """
        return self._num_undrawn < self._most_undrawn

    def submit(self, assignment: Assignment) -> None:
        """Queues an assignment."""
        self.num_assigned += 1
        self._num_undrawn += 1
        self._assignments.put(assignment)

    def poll(self, wait_s: float) -> list[Message]:
        """One round of the model; what became known. Waits at most `wait_s` for something to do."""
        messages = list(self._take_ready(wait_s))
        self._cancel_late()
        if self._reader.num_pages:
            for key, page in self._reader.step():
                reading = self._reading.pop(key)
                messages += [self._page_read(reading, page), *self._count_down(reading.key)]
        return messages

    def close(self) -> None:
        """Ends the threads and their processes; what is unfinished is given up."""
        self._is_stopping.set()
        for _ in self._feeders:
            self._assignments.put(None)
        for feeder in self._feeders:
            feeder.join(timeout=5)
        self._reader.close()

    def _take_ready(self, wait_s: float) -> Iterator[Message]:
        """Feeds the model as long as it has free slots and pages are ready."""
        while self._reader.num_pages < self._reader.num_slots:
            try:
                # With nothing to read, waiting costs nothing.
                item = self._ready.get(
                    block=not self._reader.num_pages and wait_s > 0, timeout=wait_s
                )
            except queue.Empty:
                return
            wait_s = 0
            yield from self._take(item)

    def _take(self, item: _Item) -> Iterator[Message]:
        if isinstance(item, BaseException):
            raise item
        if isinstance(item, _Ready):
            key = self._reader.submit(item.job, item.begun)
            self._reading[key] = _Reading(item.key, item.job, time.monotonic())
            return
        if isinstance(item, Drawn):
            self._num_undrawn -= 1
            # Its last page may be done already.
            if item.key in self._num_left:
                yield item
            return
        yield item
        if isinstance(item, Refused):
            self.num_assigned -= 1
            self._num_undrawn -= 1
        else:
            self._num_left[item.key] = 1 + (0 if item.is_split else len(item.left))
            yield from self._count_down(item.key)

    def _page_read(self, reading: _Reading, page: Page) -> PageRead:
        seconds, drawn = time.monotonic() - reading.begun_s, reading.job.picture
        if not isinstance(drawn, PageImage):
            return PageRead(reading.key, page, seconds, None, None)
        picture = thumbnail(drawn.rgb) if self._selection.wants(page, seconds) else None
        image = png(upright(drawn, page)) if self._with_images else None
        return PageRead(reading.key, page, seconds, picture, image)

    def _count_down(self, key: int) -> Iterator[Message]:
        self._num_left[key] -= 1
        if not self._num_left[key]:
            del self._num_left[key]
            self.num_assigned -= 1
            yield Finished(key)

    def _cancel_late(self) -> None:
        if self._timeout_s is None:
            return
        begun_before_s = time.monotonic() - self._timeout_s
        for key, reading in self._reading.items():
            if reading.begun_s < begun_before_s:
                message = f"not read after {self._timeout_s:g} s; give it more with --timeout"
                self._reader.cancel(key, "timeout", message)

    def _feed(self) -> None:
        """A thread: opens documents and cuts their pages, one document after the other."""
        while (assignment := self._assignments.get()) is not None:
            try:
                self._feed_document(assignment)
                self._hand_on(Drawn(assignment.key))
            except _Stopping:
                return
            except InputError as error:
                self._hand_on_quietly(Refused(assignment.key, _code_of(error), str(error)))
            except OSError as error:
                self._hand_on_quietly(Refused(assignment.key, "input", f"cannot be read: {error}"))
            except WorkerError as error:
                # The next document would meet the same.
                self._hand_on_quietly(error)
                return
            except OcriaError as error:
                self._hand_on_quietly(Refused(assignment.key, "usage", str(error)))
            except BaseException as error:
                self._hand_on_quietly(error)
                return

    def _feed_document(self, assignment: Assignment) -> None:
        options = self._options
        with open_document(
            assignment.path,
            name=assignment.name,
            password=options.password,
            max_pixels=options.max_pixels,
            workers=assignment.num_workers,
            page_timeout_s=self._timeout_s,
        ) as document:
            opened = self._opened(assignment, document)
            self._hand_on(opened)
            if opened.left and not opened.is_split:
                self._feed_pages(assignment.key, document, opened.left)

    def _feed_pages(self, key: int, document: DocumentReader, numbers: tuple[int, ...]) -> None:
        drafting = self._reader.new_drafting()
        target = RenderTarget(fit=self._reader.size_rule, dpi=self._options.dpi)
        pictures = document.pages(numbers, target, with_text=drafting.wants_text)
        for picture in pictures:
            job = self._reader.job(picture, drafting)
            self._hand_on(_Ready(key, job, job.begin()))

    def _opened(self, assignment: Assignment, document: DocumentReader) -> Opened:
        source = document.source
        wanted = page_range(self._options.pages, source.num_pages)
        left = assignment.numbers
        if left is None:
            header = journal_header(source, assignment.identity)
            left = pages_left(
                assignment.journal, header, wanted, retry_failed=assignment.retry_failed
            )
        limit = assignment.split_above
        is_split = limit is not None and len(left) > limit
        return Opened(assignment.key, source, wanted, left, is_split)

    def _hand_on(self, item: _Item) -> None:
        while not self._is_stopping.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=_STOP_CHECK_S)
                return
        raise _Stopping

    def _hand_on_quietly(self, item: _Item) -> None:
        with suppress(_Stopping):
            self._hand_on(item)


class _Stopping(Exception):
    """The lane is being closed."""


def _code_of(error: InputError) -> str:
    if isinstance(error.__cause__, TimeoutError):
        return "timeout"
    return "password" if isinstance(error, PasswordError) else "input"
