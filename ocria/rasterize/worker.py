"""The worker process: opens one document and answers questions about its pages.

It is disposable. Whatever PDFium or an image decoder does to it, a crash, a hang, a runaway
allocation, costs the page that was asked for and nothing else. It imports neither torch nor the
rest of the program, so that starting and restarting are quick.
"""

import contextlib
import resource
import signal
import socket
import time
from functools import partial
from pathlib import Path
from typing import Protocol

from ocria.errors import InputError, OcriaError, PageError
from ocria.rasterize.media_types import PDF
from ocria.rasterize.page_image import RenderTarget
from ocria.rasterize.pixels import Announce, Pixels
from ocria.rasterize.protocol import (
    OpenReply,
    OpenRequest,
    RenderReply,
    RenderRequest,
    TextReply,
    receive,
    send,
)
from ocria.rasterize.text_layer import TextLayer

_BASE_MEMORY_BYTES = 2 << 30
"""Interpreter, libraries, and what PDFium takes for a page of many layers."""
_MEMORY_BYTES_PER_PIXEL = 12
"""A decoded picture (4), its turned copy (4), the outgoing bytes (3), and some slack."""

_REPAIR = "repair the file with another program, or save it in another format"


class PageSource(Protocol):
    """An open document of either kind."""

    num_pages: int

    def render(self, number: int, target: RenderTarget, announce: Announce) -> Pixels:
        """Makes the picture of page `number`, announcing its size first; raises `PageError`."""
        ...

    def text_layer(self, number: int) -> TextLayer | None:
        """The text that page `number` carries; None for a kind of document that has none."""
        ...


def main(descriptor: int) -> None:
    """Serves the parent on an inherited socket until it closes its side."""
    # Ctrl-C reaches the whole foreground group; when workers end is the parent's decision.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    # An error on the channel means that the parent has gone: there is nobody to tell.
    with socket.socket(fileno=descriptor) as channel, contextlib.suppress(EOFError, OSError):
        _serve(channel)


def _serve(channel: socket.socket) -> None:
    request: OpenRequest = receive(channel)
    try:
        pages = open_pages(request)
        _limit_memory(request)
    except (OcriaError, ImportError) as error:
        send(channel, error)
        return
    except Exception as error:
        # A decoder's own exception may not survive pickling, or drag its library along.
        send(channel, InputError(f"it is damaged or cut short: {_told(error)}", hint=_REPAIR))
        return
    send(channel, OpenReply(num_pages=pages.num_pages))
    while True:
        _answer(channel, pages, receive(channel))


def open_pages(request: OpenRequest) -> PageSource:
    """Opens the document; raises `InputError`."""
    # Each kind is imported when it is met: a PDF needs no Pillow.
    if request.media_type == PDF:
        from ocria.rasterize.pdf_pages import PdfPages

        return PdfPages(request.source, password=request.password, max_pixels=request.max_pixels)
    from ocria.rasterize.image_pages import ImagePages

    return ImagePages(request.source, max_pixels=request.max_pixels)


def _answer(channel: socket.socket, pages: PageSource, request: RenderRequest) -> None:
    started = time.perf_counter()
    try:
        pixels = pages.render(request.number, request.target, partial(send, channel))
    except PageError as error:
        send(channel, error)
        return
    except MemoryError:
        send(channel, PageError("out_of_memory", "the page does not fit in memory"))
        return
    except Exception as error:
        send(channel, PageError("page_broken", f"the page cannot be decoded: {_told(error)}"))
        return
    reply = RenderReply(
        height_px=pixels.height_px,
        width_px=pixels.width_px,
        seconds=time.perf_counter() - started,
    )
    send(channel, reply)
    if request.with_text:
        send(channel, TextReply(layer=_text_layer(pages, request.number)))
    channel.sendall(pixels.data)


def _text_layer(pages: PageSource, number: int) -> TextLayer | None:
    try:
        return pages.text_layer(number)
    except Exception:
        # The text only saves time: whatever is wrong with it, the page is read from its picture.
        return None


def _told(error: Exception) -> str:
    return f"{type(error).__name__}: {error}"


def _limit_memory(request: OpenRequest) -> None:
    """Caps the address space, so that a picture bomb inside a page ends this process only."""
    source = request.source
    document = source.stat().st_size if isinstance(source, Path) else len(source)
    limit = _BASE_MEMORY_BYTES + document + _MEMORY_BYTES_PER_PIXEL * request.max_pixels
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard == resource.RLIM_INFINITY or limit < hard:
        resource.setrlimit(resource.RLIMIT_AS, (limit, hard))
