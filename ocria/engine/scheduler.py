"""Decides who runs next: admits waiting requests to free slots, first come first served."""

from collections import deque

from ocria.engine.request import Request, Running
from ocria.engine.state import StatePool


class Scheduler:
    """Queues of waiting and running requests."""

    def __init__(self, pool: StatePool) -> None:
        self._pool = pool
        self._waiting: deque[tuple[int, Request]] = deque()
        self.running: dict[int, Running] = {}

    @property
    def is_idle(self) -> bool:
        return not self._waiting and not self.running

    def add(self, ticket: int, request: Request) -> None:
        """Queues a request."""
        self._waiting.append((ticket, request))

    def admit(self) -> list[tuple[int, Running]]:
        """Requests that got a slot now and need their prefill."""
        admitted = []
        while self._waiting and self._pool.num_free:
            ticket, request = self._waiting.popleft()
            slot, state = self._pool.acquire()
            running = Running(request=request, slot=slot, state=state)
            self.running[ticket] = running
            admitted.append((ticket, running))
        return admitted

    def finish(self, ticket: int) -> Running:
        """Takes a request out and frees its slot."""
        running = self.running.pop(ticket)
        self._pool.release(running.slot)
        return running

    def cancel_all(self) -> None:
        """Forgets every request."""
        self._waiting.clear()
        for ticket in list(self.running):
            self.finish(ticket)
