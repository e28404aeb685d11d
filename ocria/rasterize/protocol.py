"""The messages between `DocumentReader` and its worker processes, in pickled frames.

The parent sends one `OpenRequest`, then any number of page requests, each answered in order.
A worker answers with the result, or with the `OcriaError` that explains its absence; before either
comes the `PageSize`, once it is known, so that a page has one even if the worker dies over it. A
`RenderReply` is followed by a `TextReply`, if text was asked for, and by the pixels as one raw
frame, so that megabytes are not pickled. Pixels wait until they are collected, so the text goes
before them; a crash over it is met by asking for the page again without. The parent ends a worker
by closing the channel.
"""

import pickle
import socket
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocria.rasterize.page_image import RenderTarget
from ocria.rasterize.pixels import PageSize
from ocria.rasterize.text_layer import TextLayer


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenRequest:
    """Open the document. Sent rather than put in argv, where a password would be public."""

    source: Path | bytes
    media_type: str
    password: str | None
    max_pixels: int


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenReply:
    """The document is open."""

    num_pages: int


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderRequest:
    """Make the picture of page `number` (1-based), and read its text layer `with_text`."""

    number: int
    target: RenderTarget
    with_text: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class RenderReply:
    """A picture; its RGB bytes, height_px * width_px * 3, are the last frame of the answer."""

    height_px: int
    width_px: int
    seconds: float


@dataclass(frozen=True, kw_only=True, slots=True)
class TextReply:
    """The page's text; None when the document is no PDF, or when it could not be read."""

    layer: TextLayer | None


Request = OpenRequest | RenderRequest
Reply = OpenReply | PageSize | RenderReply | TextReply | Exception

_LENGTH = struct.Struct("<Q")


def send(channel: socket.socket, message: object) -> None:
    """Sends one message; blocks until the other side has room, which bounds what is in flight."""
    payload = pickle.dumps(message, protocol=pickle.HIGHEST_PROTOCOL)
    channel.sendall(_LENGTH.pack(len(payload)))
    channel.sendall(payload)


def receive(channel: socket.socket) -> Any:
    """Returns the next message.

    Raises:
        EOFError: the other side has closed the channel, or died in the middle of a message.
        TimeoutError: nothing came within the channel's timeout.
    """
    head = bytearray(_LENGTH.size)
    receive_into(channel, memoryview(head))
    payload = bytearray(_LENGTH.unpack(head)[0])
    receive_into(channel, memoryview(payload))
    return pickle.loads(payload)


def receive_into(channel: socket.socket, buffer: memoryview) -> None:
    """Fills `buffer` (bytes) from the channel; raises as `receive` does."""
    while buffer:
        count = channel.recv_into(buffer)
        if count == 0:
            raise EOFError("the channel was closed")
        buffer = buffer[count:]
