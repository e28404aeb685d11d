"""Threads for what pages need of a CPU, so that the model need not wait for it."""

import queue
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial

from ocria.pipeline.page_job import Following


class PageThreads:
    """Runs the work of pages, each known by a key; results come in no order.

    Args:
        num_threads: NumPy and Pillow leave the interpreter to others while they work.
    """

    def __init__(self, num_threads: int) -> None:
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="page")
        self._working: dict[int, Future[Following]] = {}
        self._ended: queue.SimpleQueue[tuple[int, Future[Following]]] = queue.SimpleQueue()

    def __len__(self) -> int:
        """Pages that are worked on."""
        return len(self._working)

    def __contains__(self, key: int) -> bool:
        return key in self._working

    def start(self, key: int, work: Callable[[], Following]) -> None:
        """Begins a page's next piece of work."""
        future = self._pool.submit(work)
        self._working[key] = future
        future.add_done_callback(partial(self._end, key))

    def ended(self, wait_s: float) -> list[tuple[int, Following]]:
        """Keys and what their work gave, or raised; waits at most `wait_s` for a first one."""
        found: list[tuple[int, Following]] = []
        while True:
            try:
                key, future = self._ended.get(timeout=wait_s) if wait_s else self._ended.get(False)
            except queue.Empty:
                return found
            wait_s = 0.0
            # Work of a page that was given up is not wanted any more.
            if self._working.get(key) is future:
                del self._working[key]
                found.append((key, future.result()))

    def give_up(self, key: int) -> None:
        """Forgets a page."""
        self._working.pop(key).cancel()

    def clear(self) -> None:
        """Forgets all pages."""
        for key in list(self._working):
            self.give_up(key)

    def _end(self, key: int, future: Future[Following]) -> None:
        self._ended.put((key, future))
