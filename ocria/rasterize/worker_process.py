"""The parent's handle of one worker process: start, ask, answer, kill.

A plain subprocess rather than `multiprocessing`: that would import the caller's main module
again (torch included, or a fork bomb in a script without a main guard) and share its streams.
"""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

from ocria.errors import WorkerError
from ocria.rasterize.page_image import PageImage
from ocria.rasterize.pixels import PageSize
from ocria.rasterize.protocol import (
    OpenReply,
    OpenRequest,
    RenderReply,
    RenderRequest,
    Request,
    TextReply,
    receive,
    receive_into,
    send,
)
from ocria.rasterize.text_layer import TextLayer

OPEN_TIMEOUT_S = 120.0
"""For opening a document, the start of the process included."""

TEXT_TIMEOUT_S = 10.0
"""For a page's text layer, after its picture is done: a page that takes longer goes without."""

_LATE_GRACE_S = 1.0
"""A result that is already waiting is taken even when the caller comes late to collect it."""

_BOOT = "import sys; sys.path[:] = {path}; from {module} import main; main({fd})"


class WorkerDied(Exception):
    """The process ended without an answer; `how` says how, for people."""

    def __init__(self, how: str) -> None:
        super().__init__(how)
        self.how = how


class WorkerProcess:
    """One disposable process that has one document open.

    At most one page is asked for at a time: the finished picture waits in the worker until it
    is collected, so that a slow reader holds one page a worker in memory and no more.

    Attributes:
        page_size: of the page asked for last, as far as its answer has told.
    """

    def __init__(self, document: OpenRequest) -> None:
        self.page_size = PageSize()
        self._document = document
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._asked: RenderRequest | None = None
        self._asked_at = 0.0
        self._greeting_due = False

    def start(self) -> None:
        """Starts the process, if it is not running, and sends it the document.

        Raises:
            WorkerError: it cannot be started.
        """
        if self._process is not None:
            return
        ours, theirs = socket.socketpair()
        self._channel = ours
        with theirs:
            self._process = spawn("ocria.rasterize.worker", theirs.fileno())
        self._greeting_due = True
        self._send(self._document)

    def opened(self) -> OpenReply:
        """Waits until the document is open.

        Raises:
            InputError: as the worker found it.
            TimeoutError: opening took longer than `OPEN_TIMEOUT_S`.
            WorkerDied: the process ended.
        """
        reply = self._receive(OPEN_TIMEOUT_S)
        self._greeting_due = False
        assert isinstance(reply, OpenReply)
        return reply

    def ask(self, request: RenderRequest) -> None:
        """Asks for a page; starts or restarts the process when it is not running.

        Raises:
            WorkerError: it cannot be started.
        """
        self.start()
        self._send(request)
        self._asked, self._asked_at = request, time.monotonic()
        self.page_size = PageSize()

    def answer(self, number: int, timeout_s: float | None) -> PageImage:
        """Waits for the page asked for.

        Raises:
            OcriaError: as the worker found it.
            TimeoutError: the page took longer than `timeout_s` since it was asked for.
            WorkerDied: the process ended.
        """
        if self._greeting_due:
            self.opened()
            self._asked_at = time.monotonic()
        reply = self._receive(self._left_s(timeout_s))
        if isinstance(reply, PageSize):
            self.page_size = reply
            reply = self._receive(self._left_s(timeout_s))
        assert isinstance(reply, RenderReply) and self._asked is not None
        try:
            text = self._text() if self._asked.with_text else None
        except (WorkerDied, TimeoutError):
            self.kill()
            self.ask(replace(self._asked, with_text=False))
            return self.answer(number, timeout_s)
        return self._page_image(number, reply, text)

    def kill(self) -> None:
        """Ends the process at once; it has nothing to save."""
        if self._channel is not None:
            self._channel.close()
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        self._channel = self._process = None

    def _left_s(self, timeout_s: float | None) -> float | None:
        elapsed_s = time.monotonic() - self._asked_at
        return timeout_s and max(timeout_s - elapsed_s, _LATE_GRACE_S)

    def _text(self) -> TextLayer | None:
        reply = self._receive(TEXT_TIMEOUT_S)
        assert isinstance(reply, TextReply)
        return reply.layer

    def _send(self, message: Request) -> None:
        assert self._channel is not None
        # A process that has died is noticed, with its reason, when its answer is collected.
        with suppress(BrokenPipeError, ConnectionResetError):
            send(self._channel, message)

    def _receive(self, timeout_s: float | None) -> OpenReply | PageSize | RenderReply | TextReply:
        assert self._channel is not None
        self._channel.settimeout(timeout_s)
        try:
            reply = receive(self._channel)
        except (EOFError, ConnectionResetError) as error:
            raise WorkerDied(self._how_it_ended()) from error
        finally:
            self._channel.settimeout(None)
        if isinstance(reply, Exception):
            raise reply
        return reply

    def _page_image(self, number: int, reply: RenderReply, text: TextLayer | None) -> PageImage:
        assert self._channel is not None
        rgb = np.empty((reply.height_px, reply.width_px, 3), np.uint8)
        try:
            receive_into(self._channel, rgb.data.cast("B"))
        except (EOFError, ConnectionResetError) as error:
            raise WorkerDied(self._how_it_ended()) from error
        rgb.flags.writeable = False
        return PageImage(
            number=number,
            rgb=rgb,
            width_pt=self.page_size.width_pt,
            height_pt=self.page_size.height_pt,
            rotation=self.page_size.rotation,
            seconds=reply.seconds,
            text=text,
        )

    def _how_it_ended(self) -> str:
        assert self._process is not None
        code = self._process.wait()
        if code < 0:
            return f"killed by {signal.Signals(-code).name}"
        return f"ended with code {code}"


def spawn(module: str, descriptor: int) -> subprocess.Popen[bytes]:
    """A process that runs `main` of a module on a socket that it inherits, and says nothing.

    Raises:
        WorkerError: it cannot be started.
    """
    # Entries such as "" mean the current folder, which may have changed by a restart.
    path = [str(Path(entry).absolute()) for entry in sys.path]
    with starting("rasterising process"):
        return subprocess.Popen(
            [sys.executable, "-c", _BOOT.format(path=ascii(path), module=module, fd=descriptor)],
            pass_fds=(descriptor,),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            # Out of reach of the terminal's Ctrl-C from the first instant.
            process_group=0,
            env={**os.environ, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"},
        )


@contextmanager
def starting(what: str) -> Iterator[None]:
    """Tells a process that cannot be started from a document that cannot be read.

    Raises:
        WorkerError: the block raised an OSError.
    """
    try:
        yield
    except OSError as error:
        raise WorkerError(
            f"the {what} cannot be started: {sys.executable}: {error.strerror}",
            hint="no document is at fault: see to this Python, or to memory and limits, and run "
            "again",
        ) from error
