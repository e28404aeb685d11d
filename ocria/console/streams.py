"""The standard streams while the program runs: missing ones filled in, failing ones answered.

Standard error may be closed, full or gone; what is said there is never worth a document. Standard
output that cannot be written is an error of its own.
"""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from ocria.errors import OutputError

STANDARD_DESCRIPTORS = (0, 1, 2)
WRITE_HINT = "is the disk full?"


@contextmanager
def guarded_streams() -> Iterator[None]:
    """Within the block, writing to `sys.stderr` always succeeds, whatever becomes of the words.

    Raises:
        OutputError: within the block, when `sys.stdout` cannot be written.
        BrokenPipeError: within the block, when the reader of `sys.stdout` went away.
    """
    _fill_missing_descriptors()
    stdout, stderr = sys.stdout, sys.stderr
    if stdout is not None:
        sys.stdout = cast(TextIO, _Strict(stdout))
    # Not None: `print(file=None)` would write into the result.
    sys.stderr = cast(TextIO, _Lenient(_nowhere() if stderr is None else stderr))
    try:
        yield
    finally:
        sys.stdout, sys.stderr = stdout, stderr


def say(line: str) -> None:
    """Writes one line to standard error: every word of ours to the person takes this way."""
    if sys.stderr is not None:
        print(line, file=sys.stderr, flush=True)


@contextmanager
def reporting_write_errors(name: str) -> Iterator[None]:
    """Turns a failed write to `name` into an OutputError; a closed pipe stays what it is."""
    try:
        yield
    except BrokenPipeError:
        raise
    except OSError as error:
        raise OutputError(f"cannot write {name}", hint=WRITE_HINT) from error


def silence(descriptor: int) -> None:
    """Points `descriptor` nowhere: Python flushes what it still holds at exit, and would complain.

    The exit code would become 120, whatever the program had said.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, descriptor)
    os.close(nowhere)


class _Guarded:
    """A text stream; what is not answered here goes to the stream itself."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


class _Lenient(_Guarded):
    """Gives up in silence."""

    def write(self, text: str) -> int:
        try:
            return self._stream.write(text)
        except OSError:
            silence(self._stream.fileno())
            return len(text)

    def flush(self) -> None:
        try:
            self._stream.flush()
        except OSError:
            silence(self._stream.fileno())


class _Strict(_Guarded):
    """Fails in our own words."""

    def write(self, text: str) -> int:
        with self._reporting():
            return self._stream.write(text)

    def flush(self) -> None:
        with self._reporting():
            self._stream.flush()

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            with reporting_write_errors("standard output"):
                yield
        except OutputError:
            silence(self._stream.fileno())
            raise


def _fill_missing_descriptors() -> None:
    # The next file that is opened would get the number, and native libraries would write into it.
    for descriptor in STANDARD_DESCRIPTORS:
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)


def _nowhere() -> TextIO:
    return open(os.devnull, "w", encoding="utf-8")  # noqa: PTH123
