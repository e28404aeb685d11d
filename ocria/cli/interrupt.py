"""Ctrl-C and kill between pages, never within one: what was written ends with a whole page."""

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


class InterruptGate:
    """Holds the first signal back while a page is written; a second one is not held back.

    The second gets through because a write may wait for ever on a reader that stands still.
    """

    def __init__(self) -> None:
        self._is_shut = False
        self._pending: int | None = None

    @contextmanager
    def installed(self) -> Iterator["InterruptGate"]:
        """Answers the signals within the block. Main thread only.

        Raises:
            KeyboardInterrupt: at SIGINT.
            SystemExit: with 128 + number at the others, as a shell reports them.
        """
        # What a shell told us to ignore (`nohup`, a job in the background) stays ignored.
        wanted = [number for number in SIGNALS if signal.getsignal(number) != signal.SIG_IGN]
        previous = {number: signal.signal(number, self._answer) for number in wanted}
        try:
            yield self
        finally:
            for number, handler in previous.items():
                signal.signal(number, handler)

    @contextmanager
    def shut(self) -> Iterator[None]:
        """Runs a block whole; a signal that came within it is answered after it."""
        self._is_shut = True
        try:
            yield
        finally:
            self._is_shut = False
        if self._pending is not None:
            number, self._pending = self._pending, None
            _leave(number)

    def _answer(self, number: int, frame: FrameType | None) -> None:
        if self._is_shut and self._pending is None:
            self._pending = number
            return
        _leave(number)


def _leave(number: int) -> None:
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise SystemExit(128 + number)
