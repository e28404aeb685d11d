"""What a run tells whoever watches it, and the figures of a run."""

import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Protocol

from ocria.batch.manifest import Entry, Troubled
from ocria.document import Page

# Before either is done no time left is said.
_MIN_DOCUMENTS = 3
_MIN_PAGES = 10


class Listener(Protocol):
    """Hears of a run as it goes."""

    def begin(self, figures: "Figures") -> None:
        """The model is loaded and the documents are found; `figures` go on changing."""

    def document_begun(self, name: str, num_pages: int, num_known: int) -> None:
        """A document is open; `num_known` of its pages were read by an earlier run."""

    def page_read(self, name: str, page: Page) -> None:
        """One page is done, well or badly."""

    def document_done(self, entry: Entry) -> None:
        """A document has its files, or has failed."""

    def document_skipped(self, name: str) -> None:
        """A document was finished by an earlier run."""

    def trouble_known(self, name: str, troubled: Troubled) -> None:
        """A document, done or skipped, has pages that an earlier run could not read whole.

        `troubled` is empty where the earlier run did not say which.
        """


@dataclass(kw_only=True, slots=True)
class Figures:
    """What a run has done so far. Counts only: nothing in it grows with the number of documents.

    Attributes:
        num_found: documents.
        num_passed_over: other files in folders.
        num_ahead: of these, not open yet, but for those that the manifest lists as finished.
        num_opened: of these, those whose pages are known; one that is no document has none.
        num_wanted_pages: pages of the opened documents.
        documents: how many ended with each status.
        num_skipped: documents that an earlier run has finished.
        num_skipped_troubled: of these, those that are not whole.
        num_known_failed: documents with pages that failed in an earlier run and were not retried.
        pages: how many were read with each status.
        num_tokens: written by the model.
        num_resumed_pages: pages of opened documents that an earlier run has read.
        started_s: on the monotonic clock.
        reading_s: likewise, when the first document that needs reading was handed out.
    """

    num_found: int = 0
    num_passed_over: int = 0
    num_ahead: int = 0
    num_opened: int = 0
    num_wanted_pages: int = 0
    documents: Counter[str] = field(default_factory=Counter)
    num_skipped: int = 0
    num_skipped_troubled: int = 0
    num_known_failed: int = 0
    pages: Counter[str] = field(default_factory=Counter)
    num_tokens: int = 0
    num_resumed_pages: int = 0
    started_s: float = field(default_factory=time.monotonic)
    reading_s: float | None = None

    @property
    def elapsed_s(self) -> float:
        return time.monotonic() - self.started_s

    @property
    def num_pages(self) -> int:
        """Pages read by this run."""
        return self.pages.total()

    @property
    def num_failed(self) -> int:
        """Documents without a whole result."""
        return self.documents["failed"] + self.documents["partial"]

    @property
    def num_unread(self) -> int:
        """Documents that have not ended; after the run those that `fail_fast` has left."""
        return self.num_found - self.documents.total() - self.num_skipped

    def eta_s(self) -> float | None:
        """Seconds that the rest is likely to take; None while nothing can be said.

        By pages: those of opened documents are known, those ahead are thought as long as these.
        What an earlier run has read needs no time, and the time in which it was looked through
        says nothing of pages. The first document says little of the others: nothing is said
        before a few are done, or a long one.
        """
        done, fresh_pages = self.documents.total(), self.num_pages
        is_early = done < _MIN_DOCUMENTS and fresh_pages < _MIN_PAGES
        if is_early or not done or not fresh_pages or self.reading_s is None:
            return None
        opened_left = self.num_wanted_pages - self.num_resumed_pages - fresh_pages
        ahead = self.num_ahead * self.num_wanted_pages / self.num_opened
        return (opened_left + ahead) * (time.monotonic() - self.reading_s) / fresh_pages
