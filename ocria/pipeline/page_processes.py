"""Processes for what pages need of a CPU, where threads would hold up the one that decodes.

What is called there are pure functions of pictures and readings. Like a rasterising worker each
process is a plain subprocess that imports no torch and ends when its channel closes: none outlives
its reader, however that ends.
"""

import queue
import signal
import socket
import subprocess
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar, TypeVarTuple

from ocria.rasterize.protocol import receive, send
from ocria.rasterize.worker_process import spawn

_Args = TypeVarTuple("_Args")
_T = TypeVar("_T")


class Apply(Protocol):
    """Calls a pure function of a module, here or elsewhere."""

    def __call__(self, function: Callable[[*_Args], _T], /, *args: *_Args) -> _T: ...


def in_place(function: Callable[[*_Args], _T], /, *args: *_Args) -> _T:
    """Calls it on this thread."""
    return function(*args)


class PageProcesses:
    """Calls functions in processes of its own, as many at once as there are of them.

    The threads that call wait. What a process cannot do, or dies over, is done in place.
    """

    def __init__(self, num_processes: int) -> None:
        self._processes = [_Process() for _ in range(num_processes)]
        # The latest first: those that are not needed are not started.
        self._idle: queue.LifoQueue[_Process] = queue.LifoQueue()
        for process in self._processes:
            self._idle.put(process)

    def __call__(self, function: Callable[[*_Args], _T], /, *args: *_Args) -> _T:
        process = self._idle.get()
        try:
            answer = process.answer(function, args)
        finally:
            self._idle.put(process)
        return function(*args) if answer is None else answer[0]

    def close(self) -> None:
        """Ends the processes; another call starts them anew."""
        for process in self._processes:
            process.end()


class _Process:
    """One process, started when it is asked for the first time."""

    def __init__(self) -> None:
        self._running: tuple[subprocess.Popen[bytes], socket.socket] | None = None

    def answer(self, *call: object) -> Any:
        """A tuple with what a call gave; None if it raised, or the process died."""
        try:
            if self._running is None:
                ours, theirs = socket.socketpair()
                with theirs:
                    self._running = spawn(__name__, theirs.fileno()), ours
            _, channel = self._running
            send(channel, call)
            return receive(channel)
        except BaseException as error:
            # What it may still send belongs to nobody.
            self.end()
            if not isinstance(error, Exception):
                raise
            return None

    def end(self) -> None:
        """Ends the process at once; it has nothing to save."""
        running, self._running = self._running, None
        if running is not None:
            process, channel = running
            process.kill()
            process.wait()
            channel.close()


def main(descriptor: int) -> None:
    """The process: answers calls on an inherited socket until the other side closes."""
    # When it ends is the parent's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with socket.socket(fileno=descriptor) as channel, suppress(EOFError, OSError):
        while True:
            send(channel, _called(*receive(channel)))


def _called(function: Callable[..., object], args: Any) -> tuple[object] | None:
    try:
        return (function(*args),)
    except Exception:
        # In place it is raised again.
        return None
