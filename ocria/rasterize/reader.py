"""`open_document`: one document, its pages as pictures, in order, prefetched."""

import hashlib
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from types import TracebackType

from ocria.document import Source
from ocria.errors import InputError, PageError, PageErrorCode
from ocria.rasterize.media_types import HEAD_BYTES, media_type_of
from ocria.rasterize.page_image import PageFailed, PageImage, RenderTarget
from ocria.rasterize.protocol import OpenRequest, RenderRequest
from ocria.rasterize.worker_process import OPEN_TIMEOUT_S, WorkerDied, WorkerProcess

_InFlight = deque[tuple[int, WorkerProcess]]
"""Pages that were asked for, in the order in which they will be handed over."""

_CRASH_ADVICE = "the rest of the document is not affected; repair the file or scan the page again"


def open_document(
    source: Path | bytes,
    *,
    name: str,
    password: str | None,
    max_pixels: int,
    workers: int = 1,
    page_timeout_s: float | None = None,
) -> "DocumentReader":
    """Opens a PDF or image, told apart by its first bytes.

    Args:
        source: a path, or the bytes of the document.
        name: what to call it in results and messages.
        password: for an encrypted PDF.
        max_pixels: a page or frame with more pixels is not made at all.
        workers: processes that make pages; each holds one finished page ahead of the reader.
        page_timeout_s: a page that takes longer fails with `timeout`; None waits forever.

    Raises:
        PasswordError: encrypted, and the password is missing or wrong.
        InputError: missing, a folder, unreadable, empty, damaged, or not a document.
        WorkerError: a worker process cannot be started.
    """
    if isinstance(source, Path) and _is_pipe(source):
        # A pipe gives its bytes once; workers may have to open the document again.
        source = source.read_bytes()
    # Its name in results is `-`, which is no word for a message.
    called = "standard input" if isinstance(source, bytes) and name == "-" else name
    head = source[:HEAD_BYTES] if isinstance(source, bytes) else _head(source, name)
    request = OpenRequest(
        source=source if isinstance(source, bytes) else source.absolute(),
        media_type=media_type_of(head, called),
        password=password,
        max_pixels=max_pixels,
    )
    pool = tuple(WorkerProcess(request) for _ in range(workers))
    try:
        opened = replace(_opened(pool[0], request, called), name=name)
        return DocumentReader(opened, pool, page_timeout_s)
    except BaseException:
        pool[0].kill()
        raise


class DocumentReader:
    """An open document. Use it as a context manager: closing it ends its worker processes.

    Attributes:
        source: name, digest, kind and number of pages.
    """

    def __init__(
        self, source: Source, pool: tuple[WorkerProcess, ...], page_timeout_s: float | None
    ) -> None:
        self.source = source
        self._pool = pool
        self._page_timeout_s = page_timeout_s
        self._in_flight: _InFlight = deque()

    def pages(
        self, numbers: Sequence[int], target: RenderTarget, *, with_text: bool = False
    ) -> Iterator[PageImage | PageFailed]:
        """Yields the pages `numbers` (1-based) in the order given, their text `with_text`.

        Work begins with the call, not with the first `next`, so that the first pages are made
        while a model loads. One iteration at a time: a new call ends the one before.
        """
        for number in numbers:
            assert 1 <= number <= self.source.num_pages, f"no page {number}"
        _abandon(self._in_flight)
        waiting = deque(
            RenderRequest(number=number, target=target, with_text=with_text) for number in numbers
        )
        self._in_flight = deque()
        for worker in self._pool[: len(waiting)]:
            _ask(worker, waiting.popleft(), self._in_flight)
        return self._collect(waiting, self._in_flight)

    def close(self) -> None:
        """Ends the worker processes; may be called again."""
        self._in_flight.clear()
        for worker in self._pool:
            worker.kill()

    def __enter__(self) -> "DocumentReader":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _collect(
        self, waiting: deque[RenderRequest], in_flight: _InFlight
    ) -> Iterator[PageImage | PageFailed]:
        try:
            while in_flight:
                number, worker = in_flight.popleft()
                page = self._page(number, worker)
                if waiting:
                    _ask(worker, waiting.popleft(), in_flight)
                yield page
        finally:
            _abandon(in_flight)

    def _page(self, number: int, worker: WorkerProcess) -> PageImage | PageFailed:
        try:
            return worker.answer(number, self._page_timeout_s)
        except PageError as error:
            return _failed(number, worker, error.code, str(error))
        except InputError as error:
            # The worker before this one crashed, and its successor finds the file changed.
            worker.kill()
            message = f"the document could not be opened again: {error}"
            return _failed(number, worker, "page_broken", message)
        except TimeoutError:
            worker.kill()
            limit_s = self._page_timeout_s or OPEN_TIMEOUT_S
            message = f"not done after {limit_s:g} s; give it more with --timeout"
            return _failed(number, worker, "timeout", message)
        except WorkerDied as death:
            worker.kill()
            message = f"the page's decoder crashed ({death.how}); {_CRASH_ADVICE}"
            return _failed(number, worker, "page_broken", message)
        except MemoryError:
            worker.kill()
            message = "the page does not fit in memory; give a lower --dpi or a smaller image"
            return _failed(number, worker, "out_of_memory", message)
        except BaseException:
            # What the worker will still send belongs to nobody.
            worker.kill()
            raise


def _failed(number: int, worker: WorkerProcess, code: PageErrorCode, message: str) -> PageFailed:
    size = worker.page_size
    return PageFailed(
        number=number,
        code=code,
        message=message,
        width_pt=size.width_pt,
        height_pt=size.height_pt,
        rotation=size.rotation,
    )


def _ask(worker: WorkerProcess, request: RenderRequest, in_flight: _InFlight) -> None:
    worker.ask(request)
    in_flight.append((request.number, worker))


def _abandon(in_flight: _InFlight) -> None:
    """Ends workers with a page in flight: its result could be taken for another's."""
    while in_flight:
        _, worker = in_flight.popleft()
        worker.kill()


def _opened(worker: WorkerProcess, request: OpenRequest, name: str) -> Source:
    try:
        worker.start()
        # The file is digested here while the worker starts and opens it.
        digest = _sha256(request.source)
        num_pages = worker.opened().num_pages
    except InputError as error:
        raise type(error)(f"{name}: {error}", hint=error.hint) from error
    except WorkerDied as death:
        raise InputError(
            f"{name}: the decoder crashed while opening it ({death.how})",
            hint="repair the file with another program, or print it to a new PDF",
        ) from death
    except TimeoutError as error:
        raise InputError(
            f"{name}: it could not be opened within {OPEN_TIMEOUT_S:g} s",
            hint="repair the file with another program, or print it to a new PDF",
        ) from error
    return Source(name=name, sha256=digest, media_type=request.media_type, num_pages=num_pages)


def _head(path: Path, name: str) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(HEAD_BYTES)
    except IsADirectoryError:
        # Such as `.`, which has no name of its own.
        hint = "name one document in it"
        raise InputError(f"{name or path} is a folder", hint=hint) from None
    except FileNotFoundError:
        hint = "check the path" if str(path) == name else f"check the path: {path}"
        what = "is a link to a file that does not exist" if path.is_symlink() else "does not exist"
        raise InputError(f"{name} {what}", hint=hint) from None
    except OSError as error:
        raise InputError(
            f"{name} cannot be read: {error.strerror}", hint="check the permissions of the file"
        ) from error


def _is_pipe(path: Path) -> bool:
    try:
        return path.is_fifo()
    except OSError:  # an impossible name: said where the file is opened
        return False


def _sha256(source: Path | bytes) -> str:
    if isinstance(source, bytes):
        return hashlib.sha256(source).hexdigest()
    try:
        with source.open("rb") as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise InputError(f"it cannot be read: {error.strerror}", hint="read it again") from error
