"""How a quantisation says what it is doing."""

from collections.abc import Callable

Progress = Callable[[str, int, int], None]
"""What is being done, how much of it is done, and how much there is."""


class Counter:
    """Turns names of finished products into progress."""

    def __init__(self, what: str, total: int, progress: Progress) -> None:
        self._what, self._total, self._progress, self._done = what, total, progress, 0

    def count(self, _: str) -> None:
        """Hears that one more is done."""
        self._done += 1
        self._progress(self._what, self._done, self._total)
