"""Standard output belongs to the result, whatever a native library prints."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout, suppress
from typing import TextIO

from ocria.console.streams import reporting_write_errors, silence
from ocria.errors import OutputError

STDOUT, STDERR = 1, 2


@contextmanager
def claim_stdout(*, required: bool = True) -> Iterator[TextIO]:
    """Keeps descriptor 1 for the result, and points it at standard error for everybody else.

    The swap is made on the descriptor, so it also catches C libraries and child processes: do it
    before any of them is loaded. Text leaves as UTF-8 with `\\n`; what UTF-8 cannot carry (half of
    a surrogate pair from a file name) leaves as a backslash escape, which JSON reads back.

    Args:
        required: False when the result goes elsewhere, so that a closed descriptor is no fault.

    Raises:
        OutputError: standard output is closed, and required; or it cannot be written at the end.
        BrokenPipeError: the reader went away before everything was flushed.
    """
    private = _duplicate_stdout(required=required)
    _point_stdout_at_stderr()
    sink = os.fdopen(private, "w", encoding="utf-8", errors="backslashreplace", newline="\n")
    try:
        # Python's own prints wait in a buffer, which would be emptied into the result afterwards.
        with redirect_stdout(sys.stderr):
            yield sink
        with reporting_write_errors("standard output"):
            sink.flush()
    finally:
        os.dup2(private, STDOUT)
        # What could not be written has been reported already by the flush that failed.
        with suppress(OSError):
            sink.close()


def _duplicate_stdout(*, required: bool) -> int:
    # Python leaves sys.stdout unset when the descriptor was closed at start; by now the number
    # may have been given to another file.
    if sys.__stdout__ is not None:
        sys.__stdout__.flush()
        return os.dup(STDOUT)
    if required:
        raise OutputError("standard output is closed", hint="name a file with `-o FILE`")
    return os.open(os.devnull, os.O_WRONLY)


def _point_stdout_at_stderr() -> None:
    if sys.__stderr__ is not None:
        os.dup2(STDERR, STDOUT)
        return
    silence(STDOUT)
