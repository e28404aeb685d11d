"""A batch from its first document to its last: shares documents out, collects pages, writes files.

Every page goes into its document's journal as it comes. A document whose pages are all there gets
its files, then its line in the manifest; only then does its journal go. So whatever ends a run, the
next one reads only the pages that were on their way.
"""

import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from ocria.batch.discovery import Found
from ocria.batch.journal import Journal
from ocria.batch.ledger import TROUBLE, Ledger
from ocria.batch.listener import Figures, Listener
from ocria.batch.manifest import OUTPUT_EXISTS, Entry, Troubled
from ocria.batch.messages import (
    Assignment,
    Drawn,
    Finished,
    Message,
    Opened,
    PageRead,
    Refused,
    journal_header,
    unread_pages,
)
from ocria.batch.options import BatchOptions
from ocria.batch.report import Report
from ocria.document import Generator, Source
from ocria.errors import ExitCode

SPLIT_PAGES = 16
"""A longer document is shared out where there are several lanes, in pieces of this length."""
_SYNC_S = 2.0
"""Pages read since the last sync are what a machine that loses power reads again."""
_WAIT_S = 0.5


class Lanes(Protocol):
    """Whoever reads: `ocria.batch.lane.Lane`, or several of them elsewhere."""

    @property
    def generator(self) -> Generator: ...
    @property
    def num_lanes(self) -> int: ...
    @property
    def num_assigned(self) -> int: ...
    @property
    def wants_more(self) -> bool: ...
    def submit(self, assignment: Assignment) -> None: ...
    def poll(self, wait_s: float) -> Sequence[Message]: ...
    def close(self) -> None: ...


@dataclass(slots=True)
class _Document:
    """A document on its way. `source` and `journal` are there once it is open.

    `asked` has the pages of each of its assignments, None for all; `was_late` says that it could
    not be opened in time once; `said` are the pages in trouble that this run has told of.
    """

    found: Found
    started_s: float
    asked: dict[int, tuple[int, ...] | None] = field(default_factory=dict)
    was_late: bool = False
    said: set[int] = field(default_factory=set)
    source: Source | None = None
    wanted: tuple[int, ...] = ()
    journal: Journal | None = None


class BatchRun:
    """One run over found documents."""

    def __init__(
        self, options: BatchOptions, lanes: Lanes, ledger: Ledger, listener: Listener
    ) -> None:
        self.figures = Figures()
        self.report = Report()
        self._options = options
        self._lanes = lanes
        self._ledger = ledger
        self._listener = listener
        # By the key of each assignment: those of a long document share it.
        self._documents: dict[int, _Document] = {}
        self._pieces: deque[Assignment] = deque()
        self._next_key = 0
        self._synced_s = time.monotonic()
        self._is_failing = False

    @property
    def exit_code(self) -> ExitCode:
        """OK, or PARTIAL when a document failed or has pages that are not whole."""
        return ExitCode.PARTIAL if self._is_failing else ExitCode.OK

    @property
    def _is_stopping(self) -> bool:
        return self._options.fail_fast and self._is_failing

    def run(self, documents: Sequence[Found]) -> None:
        """Reads everything that is not finished, with `fail_fast` until something fails.

        Raises:
            OSError: the output folder cannot be written.
        """
        self.figures.num_found = len(documents)
        self.figures.num_ahead = sum(not self._ledger.is_listed(found) for found in documents)
        self._listener.begin(self.figures)
        waiting = self._unfinished(documents)
        try:
            while not self._is_stopping:
                while self._lanes.wants_more and (following := self._next(waiting)) is not None:
                    self._lanes.submit(following)
                if not self._lanes.num_assigned:
                    break
                for message in self._lanes.poll(_WAIT_S):
                    self._hear(message)
                self._sync_if_due()
        finally:
            for document in self._documents.values():
                if document.journal is not None:
                    document.journal.close()

    def _next(self, waiting: Iterator[Assignment]) -> Assignment | None:
        """A piece of a long document, else the next document."""
        return self._pieces.popleft() if self._pieces else next(waiting, None)

    def _unfinished(self, documents: Sequence[Found]) -> Iterator[Assignment]:
        """Assignments of the documents that need reading, each when it is asked for."""
        num_workers = max(1, (self._options.jobs or 1) // max(1, len(documents)))
        for found in documents:
            if self._is_stopping:
                return
            if self._ledger.is_finished(found):
                self._note_skipped(found)
            elif (refusal := self._ledger.refusal(found)) is not None:
                self.figures.num_ahead -= not self._ledger.is_listed(found)
                self._report(self._ledger.fail(found, OUTPUT_EXISTS, refusal, 0.0))
            else:
                document = _Document(found, time.monotonic())
                self.figures.num_ahead += self._ledger.is_listed(found)
                self.figures.reading_s = self.figures.reading_s or document.started_s
                yield self._assignment(
                    document,
                    split_above=SPLIT_PAGES if self._lanes.num_lanes > 1 else None,
                    num_workers=num_workers,
                )

    def _assignment(
        self,
        document: _Document,
        *,
        numbers: tuple[int, ...] | None = None,
        split_above: int | None = None,
        num_workers: int = 1,
    ) -> Assignment:
        self._next_key += 1
        self._documents[self._next_key] = document
        document.asked[self._next_key] = numbers
        return Assignment(
            key=self._next_key,
            path=document.found.path.absolute(),
            name=document.found.path.name,
            journal=self._ledger.journal_path(document.found).absolute(),
            identity=self._ledger.identity,
            numbers=numbers,
            split_above=split_above,
            retry_failed=self._options.retry_failed,
            num_workers=num_workers,
        )

    def _note_skipped(self, found: Found) -> None:
        self.figures.num_skipped += 1
        self._listener.document_skipped(str(found.path))
        troubled = self._ledger.troubled(found)
        if troubled is not None:
            self._is_failing = True
            self.figures.num_skipped_troubled += 1
            self._note_known(found, troubled)

    def _note_known(self, found: Found, troubled: Troubled) -> None:
        """Pages in trouble that an earlier run has read."""
        self.figures.num_known_failed += "failed" in troubled
        self._listener.trouble_known(str(found.path), troubled)

    def _hear(self, message: Message) -> None:
        document = self._documents[message.key]
        if isinstance(message, Opened):
            self._begin(message, document)
        elif isinstance(message, PageRead):
            assert document.journal is not None, "pages come after their document was opened"
            document.journal.add(message.page, message.image)
            self._count(document, message)
        elif not isinstance(message, Drawn):
            self._settle(message, document)
            del self._documents[message.key]

    def _begin(self, opened: Opened, document: _Document) -> None:
        if document.journal is None:
            document.source, document.wanted = opened.source, opened.wanted
            header = journal_header(opened.source, self._ledger.identity)
            document.journal = Journal(self._ledger.journal_path(document.found), header)
            num_known = len(opened.wanted) - len(opened.left)
            self.figures.num_resumed_pages += num_known
            self._note_opened(len(opened.wanted))
            name = str(document.found.path)
            self._listener.document_begun(name, len(opened.wanted), num_known)
        if opened.is_split:
            for first in range(0, len(opened.left), SPLIT_PAGES):
                numbers = opened.left[first : first + SPLIT_PAGES]
                self._pieces.append(self._assignment(document, numbers=numbers))

    def _note_opened(self, num_pages: int) -> None:
        self.figures.num_ahead -= 1
        self.figures.num_opened += 1
        self.figures.num_wanted_pages += num_pages

    def _count(self, document: _Document, read: PageRead) -> None:
        name, page = str(document.found.path), read.page
        self.report.add(name, page, read.seconds, read.picture)
        self.figures.pages[page.status] += 1
        self.figures.num_tokens += page.num_tokens
        if page.status in TROUBLE:
            self._is_failing = True
            document.said.add(page.number)
        self._listener.page_read(name, page)

    def _settle(self, message: Finished | Refused, document: _Document) -> None:
        """Nothing more comes of an assignment; the last one of a document ends it."""
        seconds = time.monotonic() - document.started_s
        numbers = document.asked.pop(message.key)
        if isinstance(message, Refused) and message.code == "timeout" and not document.was_late:
            # The machine may have been busy for a while: once more.
            document.was_late = True
            self._pieces.append(self._assignment(document, numbers=numbers))
        elif document.journal is None:
            assert isinstance(message, Refused), "a finished document was opened"
            self._refuse(message, document, seconds)
        else:
            if isinstance(message, Refused):
                # A piece of a document that was opened before: its pages fail, the rest is kept.
                missing = set(numbers or document.wanted) - document.journal.numbers
                for unread in unread_pages(message.key, missing, message.message):
                    document.journal.add(unread.page)
                    self._count(document, unread)
            if not document.asked:
                self._finish(document, document.journal, seconds)

    def _finish(self, document: _Document, journal: Journal, seconds: float) -> None:
        assert document.source is not None, "a journal belongs to a source"
        entry = self._ledger.finish(
            document.found, document.source, journal, document.wanted, seconds
        )
        self._report(entry)
        # What this run has read badly was told of at once.
        known = {
            status: left
            for status, numbers in entry.troubled.items()
            if (left := [number for number in numbers if number not in document.said])
        }
        if known:
            self._note_known(document.found, known)

    def _refuse(self, refused: Refused, document: _Document, seconds: float) -> None:
        self._note_opened(0)
        self._report(self._ledger.fail(document.found, refused.code, refused.message, seconds))

    def _report(self, entry: Entry) -> None:
        self.figures.documents[entry.status] += 1
        self._is_failing |= entry.status != "ok"
        self._listener.document_done(entry)

    def _sync_if_due(self) -> None:
        if time.monotonic() - self._synced_s < _SYNC_S:
            return
        for document in self._documents.values():
            if document.journal is not None and not document.journal.is_synced:
                document.journal.sync()
        self._ledger.sync()
        self._synced_s = time.monotonic()
