"""What a person sees while pages are read: a live bar, plain lines, JSON lines, or nothing."""

import os
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Literal, Protocol

from ocria.console.failure import print_notice
from ocria.console.streams import say
from ocria.console.wording import counted, document_title, event_line

ProgressMode = Literal["auto", "plain", "json", "none"]

TERMINALS_THAT_ONLY_APPEND = frozenset({"dumb", "unknown"})


class Progress(Protocol):
    """One document's progress. Page numbers are 1-based, `seconds` are wall clock."""

    def begin(self, name: str, num_pages: int) -> None:
        """The document is open and the model is loaded."""

    def page_done(self, number: int, status: str, num_tokens: int) -> None:
        """One page has left."""

    def paused(self) -> AbstractContextManager[None]:
        """Clears the screen line while the result is written to the same terminal."""

    def notice(self, kind: str, message: str) -> None:
        """Says something about the document, such as a `warning`; also when quiet."""


class Silent:
    """Says nothing but notices."""

    def begin(self, name: str, num_pages: int) -> None: ...

    def page_done(self, number: int, status: str, num_tokens: int) -> None: ...

    def paused(self) -> AbstractContextManager[None]:
        return nullcontext()

    def notice(self, kind: str, message: str) -> None:
        print_notice(kind, message)


class PlainLines(Silent):
    """One line a page, for logs and pipes."""

    def __init__(self) -> None:
        self._num_pages = 0
        self._num_done = 0
        self._since_s = time.monotonic()

    def begin(self, name: str, num_pages: int) -> None:
        self._num_pages = num_pages
        self._since_s = time.monotonic()
        say(f"reading {document_title(name)}: {counted(num_pages, 'page')}")

    def page_done(self, number: int, status: str, num_tokens: int) -> None:
        self._num_done += 1
        place = f"({self._num_done}/{self._num_pages})"
        tokens = counted(num_tokens, "token")
        say(f"page {number} {place}: {status}, {tokens}, {self._lap_s():.1f} s")

    def _lap_s(self) -> float:
        before, self._since_s = self._since_s, time.monotonic()
        return self._since_s - before


class JsonNotices(Silent):
    """What `-q` leaves of the JSON lines."""

    def notice(self, kind: str, message: str) -> None:
        say(event_line(kind, {"message": message}))


class JsonLines(JsonNotices, PlainLines):
    """The same events as JSON objects, one a line, for programs."""

    def begin(self, name: str, num_pages: int) -> None:
        self._num_pages = num_pages
        self._since_s = time.monotonic()
        say(event_line("begin", {"name": name, "num_pages": num_pages}))

    def page_done(self, number: int, status: str, num_tokens: int) -> None:
        self._num_done += 1
        figures = {
            "number": number,
            "status": status,
            "num_tokens": num_tokens,
            "num_done": self._num_done,
            "num_pages": self._num_pages,
            "seconds": round(self._lap_s(), 3),
        }
        say(event_line("page", figures))


class LiveBar(Silent):
    """A bar with pages, tokens and the time left; gone when the document is done."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, SpinnerColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as Bar

        self._bar = Bar(
            SpinnerColumn(),
            TextColumn("{task.description}", markup=False),
            BarColumn(bar_width=24),
            TextColumn("{task.fields[figures]}"),
            TimeRemainingColumn(elapsed_when_finished=True),
            console=Console(stderr=True),
            refresh_per_second=4,  # the CPU belongs to the model
            transient=True,
        )
        self._task = self._bar.add_task("loading the model", total=None, figures="")
        self._num_pages = 0
        self._num_tokens = 0
        self._num_done = 0

    def begin(self, name: str, num_pages: int) -> None:
        self._num_pages = num_pages
        self._bar.update(self._task, description=document_title(name), total=num_pages)
        self._show_figures()

    def page_done(self, number: int, status: str, num_tokens: int) -> None:
        self._num_done += 1
        self._num_tokens += num_tokens
        self._bar.advance(self._task)
        self._show_figures()

    @contextmanager
    def paused(self) -> Iterator[None]:
        self._bar.stop()
        yield
        self._bar.start()

    @contextmanager
    def shown(self) -> Iterator["LiveBar"]:
        """Draws the bar until the block ends, however it ends."""
        self._bar.start()
        try:
            yield self
        finally:
            self._bar.stop()

    def _show_figures(self) -> None:
        pages = f"{self._num_done}/{counted(self._num_pages, 'page')}"
        figures = f"{pages}, {counted(self._num_tokens, 'token')}"
        self._bar.update(self._task, figures=figures)


def open_progress(mode: ProgressMode, *, quiet: bool) -> AbstractContextManager[Progress]:
    """Progress as asked for; `auto` is live on a terminal and plain lines elsewhere."""
    if mode == "json":
        return nullcontext(JsonNotices() if quiet else JsonLines())
    if mode == "none" or quiet:
        return nullcontext(Silent())
    if mode == "auto" and can_redraw():
        return LiveBar().shown()
    return nullcontext(PlainLines())


def can_redraw() -> bool:
    """Whether standard error is a terminal on which a line can be drawn again."""
    is_terminal = sys.stderr is not None and sys.stderr.isatty()
    return is_terminal and os.environ.get("TERM", "") not in TERMINALS_THAT_ONLY_APPEND
