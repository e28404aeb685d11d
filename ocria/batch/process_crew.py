"""Processes on the GPUs of this machine, one or several on each, spoken to over pipes.

A plain subprocess, as rasterising has: it imports this package and nothing of the caller's program.
"""

import pickle
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path
from typing import NoReturn

from ocria.batch.crew import Crew, LaneDied
from ocria.batch.lane import Lane
from ocria.batch.messages import Assignment, Message
from ocria.batch.options import BatchOptions
from ocria.document import Generator
from ocria.rasterize.worker_process import starting

_POLL_S = 0.02
_BOOT = "import sys; sys.path[:] = {path}; from ocria.batch.process_crew import serve; serve({fd})"
DEFAULT_OPENER = "ocria.batch.session:open_lane"


class _Worker:
    """A process with a lane."""

    def __init__(self, options: BatchOptions, opener: str) -> None:
        self.options = options
        ours, theirs = Pipe()
        self.pipe: Connection = ours
        path = [str(Path(entry).absolute()) for entry in sys.path]
        with theirs, starting("reading process"):
            self.process = subprocess.Popen(
                [sys.executable, "-c", _BOOT.format(path=ascii(path), fd=theirs.fileno())],
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                # Out of reach of the terminal's Ctrl-C: when lanes end is the run's decision.
                process_group=0,
            )
        self.pipe.send((opener, options))

    def end(self) -> None:
        """Ends the process at once; it has nothing to save."""
        self.pipe.close()
        self.process.kill()
        self.process.wait()


class ProcessCrew(Crew[_Worker]):
    """Lanes in processes of this machine.

    Args:
        options: see `BatchOptions`; its `jobs` are shared out.
        devices: of the lanes; one that is named twice has two.
        opener: `module:function` that makes a lane of options.
    """

    def __init__(
        self, options: BatchOptions, devices: Sequence[str], opener: str = DEFAULT_OPENER
    ) -> None:
        self._opener = opener
        self._jobs = max(1, -(-(options.jobs or 1) // len(devices)))
        # All of them share the cores.
        options = replace(options, lanes=len(devices))
        super().__init__([self._worker(options, device) for device in devices], jobs=self._jobs)

    def close(self) -> None:
        """Ends all processes."""
        for member in self._members:
            member.handle.end()

    def _worker(self, options: BatchOptions, device: str) -> _Worker:
        parse = replace(options.parse, device=device)
        return _Worker(replace(options, gpus=None, jobs=self._jobs, parse=parse), self._opener)

    def _ask(self, handle: _Worker, assignments: Sequence[Assignment]) -> None:
        # A process that has died is noticed when its answer is collected.
        with suppress(BrokenPipeError, ConnectionResetError):
            handle.pipe.send(list(assignments))

    def _wait(
        self, handles: Sequence[_Worker], wait_s: float | None
    ) -> Iterable[tuple[_Worker, Generator | Sequence[Message] | LaneDied]]:
        by_pipe = {id(handle.pipe): handle for handle in handles}
        for pipe in wait([handle.pipe for handle in handles], wait_s):
            handle = by_pipe[id(pipe)]
            yield handle, _answer(handle)

    def _replace(self, handle: _Worker) -> _Worker:
        handle.end()
        return _Worker(handle.options, self._opener)


def _answer(worker: _Worker) -> Generator | Sequence[Message] | LaneDied:
    try:
        answer = worker.pipe.recv()
    except (EOFError, ConnectionResetError, pickle.UnpicklingError):
        code = worker.process.wait()
        how = f"killed by {signal.Signals(-code).name}" if code < 0 else f"ended with code {code}"
        return LaneDied(how)
    if isinstance(answer, BaseException):
        raise answer
    return answer


def serve(descriptor: int) -> None:
    """The process: makes its lane, greets, and answers until the run closes its side."""
    import importlib

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with Connection(descriptor) as pipe, suppress(EOFError, ConnectionResetError, BrokenPipeError):
        opener, options = pipe.recv()
        module, _, function = opener.partition(":")
        try:
            lane = getattr(importlib.import_module(module), function)(options)
            pipe.send(lane.generator)
            _answer_forever(lane, pipe)
        except (EOFError, ConnectionResetError, BrokenPipeError):
            raise
        except Exception as error:
            pipe.send(error)


def _answer_forever(lane: Lane, pipe: Connection) -> NoReturn:
    """Reads on while the run is busy with what it heard: an answer is what came up meanwhile."""
    found: list[Message] = []
    asked_s: float | None = None
    while True:
        # With nothing to read and nothing to say there is only a question to wait for.
        while pipe.poll(0 if lane.num_assigned or asked_s else None):
            for assignment in pipe.recv():
                lane.submit(assignment)
            asked_s = time.monotonic()
        found += lane.poll(_POLL_S)
        if asked_s is not None and (found or time.monotonic() - asked_s > _POLL_S):
            pipe.send(found)
            found, asked_s = [], None
