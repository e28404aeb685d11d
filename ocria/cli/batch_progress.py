"""What a person or a program sees of a batch while it runs."""

import time
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path

from ocria.batch import Entry, Figures, Troubled
from ocria.console import (
    ProgressMode,
    can_redraw,
    counted,
    event_line,
    print_notice,
    printable,
    say,
)
from ocria.document import Page

_STATUS_S = 10.0
_MOST_NAMED = 10
_WORDS = {"failed": "failed", "truncated": "truncated at the token limit"}


class Quiet:
    """Says what went wrong and nothing else."""

    def __init__(self) -> None:
        self.figures = Figures()

    def begin(self, figures: Figures) -> None:
        self.figures = figures

    def document_begun(self, name: str, num_pages: int, num_known: int) -> None: ...

    def page_read(self, name: str, page: Page) -> None:
        if page.status == "failed":
            reason = page.error.message if page.error else "no reason known"
            self.warn(f"{name}: page {page.number} failed: {reason}")
        elif page.status == "truncated":
            self.warn(f"{name}: page {page.number} was truncated at the token limit")

    def document_done(self, entry: Entry) -> None:
        if entry.error is not None:
            self.warn(_with_path(entry.input, entry.error["message"]))

    def document_skipped(self, name: str) -> None: ...

    def trouble_known(self, name: str, troubled: Troubled) -> None:
        which = [f"{_pages(numbers)} {_WORDS[status]}" for status, numbers in troubled.items()]
        what = ", ".join(which) or "some pages failed or truncated"
        self.warn(f"{name}: not whole since an earlier run: {what}")

    def warn(self, message: str) -> None:
        print_notice("warning", message)


class PlainLines(Quiet):
    """One line a document, and one every ten seconds, for logs and pipes."""

    def __init__(self) -> None:
        super().__init__()
        self._said_s = time.monotonic()

    def begin(self, figures: Figures) -> None:
        super().begin(figures)
        say(f"reading {counted(figures.num_found, 'document')}")
        _say_passed_over(figures)

    def page_read(self, name: str, page: Page) -> None:
        super().page_read(name, page)
        if time.monotonic() - self._said_s >= _STATUS_S:
            self._said_s = time.monotonic()
            say(status_line(self.figures))

    def document_done(self, entry: Entry) -> None:
        super().document_done(entry)
        if entry.error is None:
            pages = counted(entry.num_pages, "page")
            say(f"{printable(entry.input)}: {entry.status}, {pages}, {entry.seconds:.1f} s")


class JsonLines(Quiet):
    """Every event as a JSON object, one a line, for programs."""

    def begin(self, figures: Figures) -> None:
        super().begin(figures)
        passed_over = figures.num_passed_over
        fields = {"num_documents": figures.num_found, "num_passed_over": passed_over}
        say(event_line("begin", fields))

    def document_begun(self, name: str, num_pages: int, num_known: int) -> None:
        fields = {"name": name, "num_pages": num_pages, "num_known": num_known}
        say(event_line("document_begun", fields))

    def page_read(self, name: str, page: Page) -> None:
        figures = self.figures
        fields = {
            "name": name,
            "number": page.number,
            "status": page.status,
            "error": page.error and {"code": page.error.code, "message": page.error.message},
            "num_tokens": page.num_tokens,
            "num_pages": figures.num_pages,
            "num_failed": figures.pages["failed"],
            "pages_per_second": round(figures.num_pages / figures.elapsed_s, 3),
            "tokens_per_second": round(figures.num_tokens / figures.elapsed_s, 1),
            "eta_s": _rounded(figures.eta_s()),
        }
        say(event_line("page", fields))

    def document_done(self, entry: Entry) -> None:
        fields = {
            "name": entry.input,
            "output": entry.output,
            "status": entry.status,
            "num_pages": entry.num_pages,
            "seconds": entry.seconds,
            "error": entry.error,
        }
        say(event_line("document", fields))

    def document_skipped(self, name: str) -> None:
        say(event_line("skipped", {"name": name}))

    def trouble_known(self, name: str, troubled: Troubled) -> None:
        say(event_line("known_trouble", {"name": name, "pages": troubled}))


class LiveBar(Quiet):
    """A bar over documents, with what is read a second and the time left."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        self._bar = Progress(
            SpinnerColumn(),
            BarColumn(bar_width=24),
            TextColumn("{task.description}", markup=False),
            console=Console(stderr=True),
            refresh_per_second=4,
            transient=True,
        )
        self._task = self._bar.add_task("loading the model", total=None)

    def begin(self, figures: Figures) -> None:
        super().begin(figures)
        self._bar.update(self._task, total=figures.num_found)
        _say_passed_over(figures)
        self._show()

    def page_read(self, name: str, page: Page) -> None:
        super().page_read(name, page)
        self._show()

    def document_done(self, entry: Entry) -> None:
        super().document_done(entry)
        self._bar.advance(self._task)
        self._show()

    def document_skipped(self, name: str) -> None:
        self._bar.advance(self._task)

    def warn(self, message: str) -> None:
        self._bar.console.print(f"warning: {printable(message)}", markup=False, highlight=False)

    @contextmanager
    def shown(self) -> Iterator["LiveBar"]:
        """Draws the bar until the block ends, however it ends."""
        self._bar.start()
        try:
            yield self
        finally:
            self._bar.stop()

    def _show(self) -> None:
        self._bar.update(self._task, description=status_line(self.figures))


def status_line(figures: Figures) -> str:
    """How far a run is."""
    done = figures.documents.total() + figures.num_skipped
    parts = [
        f"{done:,}/{counted(figures.num_found, 'document')}",
        counted(figures.num_pages, "page"),
        f"{figures.num_pages / figures.elapsed_s:.2f} pages/s",
        f"{figures.num_tokens / figures.elapsed_s:,.0f} tokens/s",
    ]
    if figures.pages["failed"]:
        parts.append(f"{counted(figures.pages['failed'], 'page')} failed")
    if (eta_s := figures.eta_s()) is not None:
        parts.append(f"{_duration(eta_s)} left")
    return ", ".join(parts)


def open_batch_progress(mode: ProgressMode, *, quiet: bool) -> AbstractContextManager[Quiet]:
    """Progress as asked for; `auto` is live on a terminal and plain lines elsewhere."""
    if mode == "json":
        return nullcontext(JsonLines())
    if mode == "none" or quiet:
        return nullcontext(Quiet())
    if mode == "auto" and can_redraw():
        return LiveBar().shown()
    return nullcontext(PlainLines())


def _say_passed_over(figures: Figures) -> None:
    if number := figures.num_passed_over:
        say(f"passing over {counted(number, 'other file')}; -v names them")


def _pages(numbers: Sequence[int]) -> str:
    """Such as `pages 3, 7`; of many the first ones, and how many more."""
    named = ", ".join(map(str, numbers[:_MOST_NAMED]))
    more = f" and {len(numbers) - _MOST_NAMED:,} more" if len(numbers) > _MOST_NAMED else ""
    return f"page{'s' if len(numbers) > 1 else ''} {named}{more}"


def _with_path(path: str, message: str) -> str:
    """The message with the path in front, or for the name there."""
    name = Path(path).name
    is_there = message.startswith((f"{name} ", f"{name}: "))
    return path + message[len(name) :] if is_there else f"{path}: {message}"


def _duration(seconds: float) -> str:
    minutes, rest_s = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest_s:02}" if hours else f"{minutes}:{rest_s:02}"


def _rounded(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds, 1)
