"""Pages read one after another, each with its own seconds."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import replace

from ocria.eval.engines import Engine, PageImage
from ocria.eval.predictions import PagePrediction, failed_page


def read_one_by_one(
    engine: Engine, images: list[PageImage], lang: str, threads: int
) -> Iterator[PagePrediction]:
    """Pages with the CPU time that each took, all threads and ended children counted."""
    started = cpu_time_s()
    for page in _read_pages(engine, images, lang):
        now = cpu_time_s()
        yield replace(page, cpu_seconds=now - started, threads=threads)
        started = cpu_time_s()


def cpu_time_s() -> float:
    """CPU seconds of this process so far, all threads and ended children counted."""
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system


def _read_pages(engine: Engine, images: list[PageImage], lang: str) -> Iterator[PagePrediction]:
    """Pages as the engine gives them; where it raises, the page due fails and the rest goes on."""
    waiting = images
    while waiting:
        started = time.perf_counter()
        done = 0
        try:
            for page in engine.read(waiting, lang=lang):
                done += 1
                started = time.perf_counter()
                yield page
            return
        # Any engine may fail in any way on a page; the others must still be read.
        except Exception as error:
            if done < len(waiting):
                number = waiting[done].number
                yield failed_page(number, error, seconds=time.perf_counter() - started)
        waiting = waiting[done + 1 :]
