"""Batches from processes that may die: each worker has a pipe of its own and is replaced.

A rasteriser that crashes takes its worker along. PyTorch's own loader then ends the run; here the
batch is lost, counted, and a worker with a fresh seed takes the place.
"""

from __future__ import annotations

import ctypes
import multiprocessing as mp
import os
import pickle
import queue
import signal
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any

import torch

from .batches import Batch

# prctl(2): the child gets this signal when its parent is gone.
_PR_SET_PDEATHSIG = 1
# Batches that wait on the trainer's side, beside one in each worker's hand.
_AHEAD = 6
Stream = Callable[[int], Iterator[Batch]]


@dataclass
class _Worker:
    process: BaseProcess
    pipe: Connection


class Feed:
    """An endless stream of batches out of `count` processes.

    Args:
        stream: makes the batches of a worker from its number; numbers are never used twice.
        pin: copies batches to page-locked memory for the trip to the device.

    Attributes:
        lost: workers that died.
    """

    def __init__(self, stream: Stream, count: int, *, pin: bool = False) -> None:
        self._stream, self._pin = stream, pin
        self._context = mp.get_context("fork")
        self._next_number = self.lost = 0
        self._closed = False
        self._workers = [self._start() for _ in range(count)]
        self._ready: queue.Queue[Batch] = queue.Queue(_AHEAD)
        self._thread = threading.Thread(target=self._collect, daemon=True)
        self._thread.start()

    def next(self, timeout_s: float = 300.0) -> Batch:
        """The next batch.

        Raises:
            queue.Empty: none came in time, so no worker can make any.
        """
        return self._ready.get(timeout=timeout_s)

    def close(self) -> None:
        """Ends the workers; pages half made are dropped."""
        self._closed = True
        for worker in self._workers:
            worker.process.kill()

    def _start(self) -> _Worker:
        ours, theirs = self._context.Pipe(duplex=False)
        number = self._next_number
        self._next_number += 1
        process = self._context.Process(
            target=_work, args=(self._stream, number, theirs), daemon=True
        )
        process.start()
        theirs.close()
        return _Worker(process, ours)

    def _collect(self) -> None:
        while not self._closed:
            pipes: dict[Any, int] = {w.pipe: i for i, w in enumerate(self._workers)}
            # All that are ready take their turn, or quick batches would crowd out slow ones.
            for pipe in wait(list(pipes), timeout=1.0):
                index = pipes[pipe]
                try:
                    batch = _unpacked(self._workers[index].pipe.recv_bytes())
                except (EOFError, OSError, pickle.UnpicklingError):
                    self._replace(index)
                    continue
                self._ready.put(batch.pin_memory() if self._pin else batch)

    def _replace(self, index: int) -> None:
        if self._closed:
            return
        self.lost += 1
        self._workers[index].process.kill()
        self._workers[index].process.join()
        self._workers[index].pipe.close()
        self._workers[index] = self._start()


def _work(stream: Stream, number: int, pipe: Connection) -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # One core a worker: typst would start a thread for each core of the machine.
    os.environ["RAYON_NUM_THREADS"] = "1"
    for batch in stream(number):
        parts = {name: tensor.numpy() for name, tensor in batch.tensors().items()}
        pipe.send_bytes(pickle.dumps((batch.family, parts), protocol=5))


def _unpacked(message: bytes) -> Batch:
    family, parts = pickle.loads(message)
    return Batch(family=family, **{name: torch.from_numpy(part) for name, part in parts.items()})
