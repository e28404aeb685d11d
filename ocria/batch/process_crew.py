"""One process a GPU of this machine, spoken to over pipes.

A plain subprocess, as rasterising has: it imports this package and nothing of the caller's program.
"""

import pickle
import signal
import subprocess
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from multiprocessing.connection import Connection, Pipe, wait
from pathlib import Path

from ocria.batch.crew import Crew, LaneDied
from ocria.batch.messages import Assignment, Message
from ocria.batch.options import BatchOptions
from ocria.document import Generator

_POLL_S = 0.5
_BOOT = "import sys; sys.path[:] = {path}; from ocria.batch.process_crew import serve; serve({fd})"
DEFAULT_OPENER = "ocria.batch.session:open_lane"


class _Worker:
    """A process with a lane."""

    def __init__(self, options: BatchOptions, opener: str) -> None:
        self.options = options
        ours, theirs = Pipe()
        self.pipe: Connection = ours
        path = [str(Path(entry).absolute()) for entry in sys.path]
        with theirs:
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
    """Lanes in processes of this machine, one for each device.

    Args:
        options: see `BatchOptions`.
        devices: of the lanes.
        opener: `module:function` that makes a lane of options.
    """

    def __init__(
        self, options: BatchOptions, devices: Sequence[str], opener: str = DEFAULT_OPENER
    ) -> None:
        self._opener = opener
        super().__init__([self._worker(options, device) for device in devices])

    def close(self) -> None:
        """Ends all processes."""
        for member in self._members:
            member.handle.end()

    def _worker(self, options: BatchOptions, device: str) -> _Worker:
        parse = replace(options.parse, device=device)
        return _Worker(replace(options, gpus=None, parse=parse), self._opener)

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
            while True:
                for assignment in pipe.recv():
                    lane.submit(assignment)
                pipe.send(lane.poll(_POLL_S))
        except (EOFError, ConnectionResetError, BrokenPipeError):
            raise
        except Exception as error:
            pipe.send(error)
