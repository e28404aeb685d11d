"""Ctrl-C between pages, never within one: what has been written ends with a whole page."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType


class InterruptGate:
    """Holds the first SIGINT back while a page is written; a second one is not held back.

    The second gets through because a write may wait for ever on a reader that stands still.
    """

    def __init__(self) -> None:
        self._is_shut = False
        self._is_pending = False

    @contextmanager
    def installed(self) -> Iterator["InterruptGate"]:
        """Answers SIGINT within the block. Main thread only."""
        previous = signal.signal(signal.SIGINT, self._answer)
        try:
            yield self
        finally:
            signal.signal(signal.SIGINT, previous)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Runs a block whole.

        Raises:
            KeyboardInterrupt: after the block, when the signal came within it.
        """
        self._is_shut = True
        try:
            yield
        finally:
            self._is_shut = False
        if self._is_pending:
            self._is_pending = False
            raise KeyboardInterrupt

    def _answer(self, signal_number: int, frame: FrameType | None) -> None:
        if self._is_shut and not self._is_pending:
            self._is_pending = True
            return
        raise KeyboardInterrupt
