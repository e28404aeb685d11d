"""Decides who runs next: first come, first served, and everybody who runs gets a window a step.

Waiting requests take free slots in the order of their arrival. A step reads a bounded number of
prompt chunks, oldest request first, beside one verify pass over all sequences that are read: a new
page delays the others by that bound, and no page can be passed over.
"""

from collections import deque
from collections.abc import Iterator
from itertools import islice

from ocria.engine.request import Request, Running
from ocria.engine.state import StatePool
from ocria.errors import PageError


class Scheduler:
    """Queues of waiting and running requests."""

    def __init__(self, pool: StatePool, *, chunks_per_step: int) -> None:
        self._pool = pool
        self._chunks_per_step = chunks_per_step
        self._waiting: deque[tuple[int, Request]] = deque()
        self._running: dict[int, Running] = {}

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self._running

    @property
    def num_waiting(self) -> int:
        return len(self._waiting)

    @property
    def num_running(self) -> int:
        return len(self._running)

    def add(self, ticket: int, request: Request) -> None:
        """Queues a request."""
        self._waiting.append((ticket, request))

    def admit(self) -> None:
        """Gives free slots to those who have waited longest."""
        while self._waiting and self._pool.num_free:
            ticket, request = self._waiting.popleft()
            slot, state = self._pool.acquire()
            self._running[ticket] = Running(ticket, request, slot, state)

    def to_prefill(self, most: int) -> Iterator[list[Running]]:
        """Whose next prompt chunks to read together, `most` at a time, until the step has its
        share."""
        left = self._chunks_per_step
        while left:
            unread = (r for r in self._running.values() if not (r.is_read or r.is_done))
            if not (together := list(islice(unread, min(most, left)))):
                return
            left -= len(together)
            yield together

    def to_verify(self) -> list[Running]:
        """Who takes part in this step's verify pass."""
        return [r for r in self._running.values() if r.is_read and not r.is_done]

    def take_done(self) -> list[Running]:
        """Takes out who is done and frees their slots."""
        done = [running for running in self._running.values() if running.is_done]
        for running in done:
            self.cancel(running.ticket)
        return done

    def cancel(self, ticket: int) -> bool:
        """Forgets a request; whether there was one."""
        running = self._running.pop(ticket, None)
        if running is not None:
            self._pool.release(running.slot)
            return True
        kept = deque(entry for entry in self._waiting if entry[0] != ticket)
        found = len(kept) < len(self._waiting)
        self._waiting = kept
        return found

    def cancel_all(self) -> None:
        """Forgets every request."""
        self._waiting.clear()
        for ticket in list(self._running):
            self.cancel(ticket)

    def fail_all(self, error: PageError) -> None:
        """Ends whatever runs with an error."""
        for running in self._running.values():
            running.error = error

    def send_back(self) -> None:
        """Puts whatever runs in front of the queue, to be begun again."""
        running = list(self._running.values())
        for one in running:
            self.cancel(one.ticket)
        self._waiting.extendleft((one.ticket, one.request) for one in reversed(running))
