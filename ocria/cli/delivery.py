"""Carries one document from its page stream to its destination, page by page."""

import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TextIO

from ocria.cli.destination import Destination, StreamDestination, open_file
from ocria.cli.interrupt import InterruptGate
from ocria.cli.report import Tally
from ocria.console import (
    Progress,
    ProgressMode,
    claim_stdout,
    counted,
    document_title,
    open_progress,
    printable,
    reporting_write_errors,
    say,
)
from ocria.errors import ExitCode, InputError, OutputError
from ocria.options import Furniture, OutputFormat, ParseOptions

if TYPE_CHECKING:
    from ocria.output import Writer
    from ocria.pipeline import PageStream

STDIN = "-"


@dataclass(frozen=True, kw_only=True, slots=True)
class DeliveryOptions:
    """Where a result goes, in which form, and what is said meanwhile.

    Attributes:
        output: None is standard output.
    """

    format: OutputFormat
    output: Path | None
    overwrite: bool
    furniture: Furniture
    page_markers: bool
    progress: ProgressMode
    quiet: bool
    stats: bool


def deliver(document: str, options: ParseOptions, delivery: DeliveryOptions) -> ExitCode:
    """Reads `document` (a path, or `-`) and writes it as `delivery` says.

    Raises:
        OcriaError: nothing could be read, or the result could not be written.
        KeyboardInterrupt: Ctrl-C; the pages finished by then are kept.
    """
    _refuse_own_input(document, delivery.output)
    with ExitStack() as stack:
        # First of all, so that no library that loads later can write into the result.
        stdout = stack.enter_context(claim_stdout(required=delivery.output is None))
        gate = stack.enter_context(InterruptGate().installed())
        destination = stack.enter_context(_open_destination(stdout, delivery))
        progress = stack.enter_context(open_progress(delivery.progress, quiet=delivery.quiet))
        stream = stack.enter_context(_open_document(document, options))
        progress.begin(stream.source.name, len(stream.page_numbers))
        tally = _Carrier(stream, destination, progress, gate, delivery).carry()
    _report(tally, stream.source.name, progress, delivery)
    return tally.exit_code


class _Carrier:
    """The parts of one delivery while it lasts."""

    def __init__(
        self,
        stream: "PageStream",
        destination: Destination,
        progress: Progress,
        gate: InterruptGate,
        delivery: DeliveryOptions,
    ) -> None:
        self._stream = stream
        self._destination = destination
        self._progress = progress
        self._gate = gate
        self._tally = Tally()
        self._name = str(delivery.output) if delivery.output else "standard output"
        with self._writing():
            self._writer = _open_writer(destination.sink, stream, delivery)

    def carry(self) -> Tally:
        """Writes every page; what is finished is kept, however the run ends."""
        try:
            for parsed in self._stream:
                with self._writing():
                    self._writer.write(parsed.page, parsed.image)
                    self._destination.sink.flush()
                    self._tally.add(parsed.page)
                page = parsed.page
                self._progress.page_done(page.number, page.status, page.num_tokens)
        except (OutputError, BrokenPipeError):
            raise
        except BaseException:
            self._keep_finished_pages()
            raise
        with self._writing():
            self._writer.close()
            self._destination.publish()
        return self._tally

    def _keep_finished_pages(self) -> None:
        with self._writing():
            self._writer.close()
            kept = self._destination.keep_partial() if self._tally.num_pages else None
        if self._tally.num_pages:
            where = f" in {kept}" if kept else ""
            pages = counted(self._tally.num_pages, "finished page")
            self._progress.notice("note", f"kept {pages}{where}")

    @contextmanager
    def _writing(self) -> Iterator[None]:
        with self._gate.shut(), self._progress.paused(), reporting_write_errors(self._name):
            yield


def _open_writer(sink: TextIO, stream: "PageStream", delivery: DeliveryOptions) -> "Writer":
    from ocria.output import open_writer

    return open_writer(
        delivery.format,
        sink,
        source=stream.source,
        generator=stream.generator,
        furniture=delivery.furniture,
        page_markers=delivery.page_markers,
    )


def _refuse_own_input(document: str, output: Path | None) -> None:
    if output is not None and document != STDIN and _is_same_file(output, document):
        raise OutputError(f"the output is the input: {output}", hint="name another file with `-o`")


def _is_same_file(one: Path, other: str) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # missing or impossible: said where each of them is opened
        return False


@contextmanager
def _open_destination(stdout: TextIO, delivery: DeliveryOptions) -> Iterator[Destination]:
    if delivery.output is None:
        yield StreamDestination(stdout)
        return
    with open_file(delivery.output, overwrite=delivery.overwrite) as destination:
        yield destination


def _open_document(document: str, options: ParseOptions) -> "PageStream":
    # Loads torch: after standard output is claimed, and after everything that can fail sooner.
    from ocria.pipeline import open_stream

    if document != STDIN:
        path = Path(document)
        return open_stream(path, name=path.name, options=options)
    if sys.stdin is None:
        raise InputError("standard input is closed", hint="name a file instead of `-`")
    content = sys.stdin.buffer.read()
    if not content:
        hint = "pipe a document into it, or name a file instead of `-`"
        raise InputError("standard input is empty", hint=hint)
    return open_stream(content, name=STDIN, options=options)


def _report(tally: Tally, name: str, progress: Progress, delivery: DeliveryOptions) -> None:
    for line in tally.trouble:
        progress.notice("warning", line)
    if (doubts := tally.doubts()) is not None:
        progress.notice("warning", doubts)
    if not delivery.quiet and delivery.progress != "json":
        target = str(delivery.output) if delivery.output else None
        say(printable(tally.summary(document_title(name), target)))
    if delivery.stats:
        say(tally.stats_line(name))
