"""Items that wait to be read, their pages drawn by threads before they are asked for."""

from __future__ import annotations

import queue
import threading
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from ocria.eval.engines import PageImage, UnreadablePage
from ocria.eval.items import Item
from ocria.eval.prediction_store import PredictionStore
from ocria.eval.predictions import PagePrediction

_PAGES_AHEAD = 2
"""Of a document, 11 MB each for A4 at 200 dpi."""
_STOP_CHECK_S = 0.2

Picture = PageImage | UnreadablePage


@dataclass(frozen=True, kw_only=True)
class Waiting:
    """An item with pages to read.

    `kept` were read before; `pictures` are those still to read, made one by one as they are asked
    for.
    """

    item: Item
    store: PredictionStore
    kept: Sequence[PagePrediction]
    pictures: Iterator[Picture]


def drawn_ahead(waiting: Iterable[Waiting], num_documents: int) -> Iterator[Waiting]:
    """The same items; of so many behind the one that is read, pages are being drawn."""
    if not num_documents:
        yield from waiting
        return
    drawn: deque[tuple[Waiting, _Drawn]] = deque()
    items = iter(waiting)
    try:
        while True:
            while len(drawn) <= num_documents and (one := next(items, None)) is not None:
                pictures = _Drawn(one.pictures)
                drawn.append((replace(one, pictures=pictures), pictures))
            if not drawn:
                return
            yield drawn[0][0]
            drawn.popleft()[1].close()
    finally:
        for _, pictures in drawn:
            pictures.close()


class _Drawn(Iterator[Picture]):
    """Pictures that a thread makes; what it raises comes where the next one is due."""

    def __init__(self, pictures: Iterator[Picture]) -> None:
        self._ready: queue.Queue[Picture | BaseException] = queue.Queue(_PAGES_AHEAD)
        self._is_closed = threading.Event()
        self._end: BaseException | None = None
        threading.Thread(target=self._draw, args=(pictures,), name="drawing", daemon=True).start()

    def __next__(self) -> Picture:
        # Nothing comes behind the end: whoever asks again is told again.
        item = self._end or self._ready.get()
        if isinstance(item, BaseException):
            self._end = item
            raise item
        return item

    def close(self) -> None:
        """Ends the thread: no more pages are wanted."""
        self._is_closed.set()

    def _draw(self, pictures: Iterator[Picture]) -> None:
        try:
            for picture in pictures:
                self._hand_on(picture)
                if self._is_closed.is_set():
                    return
        except BaseException as error:
            self._hand_on(error)
        else:
            self._hand_on(StopIteration())

    def _hand_on(self, item: Picture | BaseException) -> None:
        while not self._is_closed.is_set():
            with suppress(queue.Full):
                self._ready.put(item, timeout=_STOP_CHECK_S)
                return
