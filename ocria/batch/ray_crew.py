"""Lanes on a Ray cluster: one actor a GPU, or a core where there is none.

The cluster's machines share the documents and the output folder; nothing else. Actors hold no state
that a run needs: pages come back as they are read, and the run alone writes.
"""

import os
import signal
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

from ocria.batch.crew import Crew, LaneDied
from ocria.batch.lane import Lane
from ocria.batch.messages import Assignment, Message
from ocria.batch.options import BatchOptions
from ocria.document import Generator
from ocria.errors import DeviceError, OcriaError, UsageError

LaneOpener = Callable[[BatchOptions], Lane]
_POLL_S = 0.5
_JOBS_A_CORE = 1
_JOBS_A_GPU = 8


class _Seat:
    """An actor and the answer that it owes."""

    def __init__(self, actor: Any, owed: Any) -> None:
        self.actor = actor
        self.owed = owed


class LaneActor:
    """What runs in the cluster: a lane that answers by turns."""

    def __init__(self, open_lane: LaneOpener, options: BatchOptions) -> None:
        self._lane = open_lane(options)

    def greet(self) -> Generator:
        """What it reads with."""
        return self._lane.generator

    def exchange(self, assignments: Sequence[Assignment]) -> list[Message]:
        """Takes assignments; what became known since."""
        for assignment in assignments:
            self._lane.submit(assignment)
        return self._lane.poll(_POLL_S)


class RayCrew(Crew[_Seat]):
    """Lanes on the cluster that `options.ray` names, or on one started here for `local`.

    Raises:
        UsageError: Ray is not installed.
        DeviceError: the cluster cannot be reached, or has nothing to read on.
    """

    def __init__(self, options: BatchOptions, open_lane: LaneOpener) -> None:
        self._ray = _ray()
        self._owns_cluster = _connect(self._ray, options.ray or "local")
        on_gpus, count = _places(self._ray, options)
        jobs = options.jobs or (_JOBS_A_GPU if on_gpus else _JOBS_A_CORE)
        device = "cuda" if on_gpus else "cpu"
        self._options = replace(
            options, jobs=jobs, ray=None, parse=replace(options.parse, device=device)
        )
        resources = {"num_gpus": 1, "num_cpus": 1} if on_gpus else {"num_cpus": 1}
        self._new_actor = self._ray.remote(LaneActor).options(max_restarts=0, **resources).remote
        self._open_lane = open_lane
        super().__init__([self._seat() for _ in range(count)], jobs=jobs)

    def close(self) -> None:
        """Ends all actors, and the cluster if it was started here."""
        for member in self._members:
            with suppress(Exception):
                self._ray.kill(member.handle.actor)
        if self._owns_cluster:
            self._ray.shutdown()

    def _seat(self) -> _Seat:
        actor = self._new_actor(self._open_lane, self._options)
        return _Seat(actor, actor.greet.remote())

    def _ask(self, handle: _Seat, assignments: Sequence[Assignment]) -> None:
        handle.owed = handle.actor.exchange.remote(list(assignments))

    def _wait(
        self, handles: Sequence[_Seat], wait_s: float | None
    ) -> Iterable[tuple[_Seat, Generator | Sequence[Message] | LaneDied]]:
        owed = {handle.owed: handle for handle in handles}
        done, _ = self._ray.wait(list(owed), num_returns=1, timeout=wait_s)
        more, _ = self._ray.wait(list(owed), num_returns=len(owed), timeout=0)
        for answer in {*done, *more}:
            yield owed[answer], self._answer(answer)

    def _answer(self, answer: Any) -> Generator | Sequence[Message] | LaneDied:
        errors = self._ray.exceptions
        try:
            return self._ray.get(answer)
        except errors.RayTaskError as error:
            # An error of the model or of ours, not of the cluster.
            if isinstance(error.cause, OcriaError):
                raise error.cause from error
            raise
        except errors.RayError as error:
            return LaneDied(type(error).__name__)

    def _replace(self, handle: _Seat) -> _Seat:
        with suppress(Exception):
            self._ray.kill(handle.actor)
        return self._seat()


def _ray() -> Any:
    # Nothing is reported to anybody.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
    except ImportError as error:
        raise UsageError(
            "--ray needs Ray, which is not installed", hint="pip install 'ocria[ray]'"
        ) from error
    return ray


def _connect(ray: Any, address: str) -> bool:
    """Connects, or starts a cluster; whether it was started here.

    Raises:
        DeviceError: nobody answers at the address, or no cluster could be started.
    """
    if ray.is_initialized():
        return False
    is_local = address == "local"
    # Ray takes SIGTERM for itself; how a run ends is for the program to say.
    handler = signal.getsignal(signal.SIGTERM)
    try:
        if not is_local:
            _knock(address)
        own = {"include_dashboard": False} if is_local else {}
        ray.init(address=address, log_to_driver=False, logging_level="error", **own)
    except Exception as error:  # a node that is late to start is one, of no class of its own
        if is_local:
            hint = "try again when the machine is less busy, or leave `--ray` out"
            raise DeviceError("no Ray cluster can be started here", hint=hint) from error
        raise DeviceError(
            f"no Ray cluster can be reached at {address}",
            hint="start one with `ray start --head`, or use `--ray local`",
        ) from error
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGTERM, handler)
    return is_local


def _knock(address: str) -> None:
    """Fails at once where nobody listens: Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if port.isdecimal():
        socket.create_connection((host.strip("[]"), int(port)), timeout=10).close()


def _places(ray: Any, options: BatchOptions) -> tuple[bool, int]:
    """Whether to read on GPUs, and on how many of them, or cores."""
    resources = ray.cluster_resources()
    gpus, cores = int(resources.get("GPU", 0)), int(resources.get("CPU", 0))
    wanted = options.parse.device
    if wanted != "cpu" and gpus:
        return True, min(gpus, options.gpus or gpus)
    if wanted.startswith("cuda") or not cores:
        raise DeviceError(
            f"the Ray cluster has {gpus} GPUs and {cores} cores",
            hint="add machines to it, or use `--device cpu`",
        )
    return False, cores
