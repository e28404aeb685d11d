"""A fast stand-in for the model, and `ocria` with it: run as `python stand_in.py batch …`.

A page's text is a digest of its pixels, or the word for one without ink, so that equal bytes mean
equal pages in equal places. What happens on the way is set by variables:

    STAND_IN_LOG      file that gets a line for each page read: process, digest, number
    STAND_IN_DELAY    seconds a page
    STAND_IN_SLOTS    pages side by side, 4 by default
    STAND_IN_FAIL     digest prefix of pages that fail with `decode_failed`
    STAND_IN_HANG     digest prefix of pages that are never done
    STAND_IN_CRASH    digest prefix of pages that end the process
"""

import os
import signal
import sys
import time
from dataclasses import dataclass
from hashlib import sha256
from types import SimpleNamespace
from typing import Any

from ocria.batch import BatchOptions
from ocria.batch.lane import Lane
from ocria.document import Block, Generator, ModelInfo, Page, PageFailure
from ocria.rasterize import PageFailed, PageImage
from ocria.vision import SizeRule

WHITE = "white paper"


@dataclass
class Job:
    """A page on its way."""

    picture: PageImage | PageFailed

    def begin(self) -> Any:
        if isinstance(self.picture, PageFailed):
            return self.failed(self.picture.code, self.picture.message)
        if self.picture.rgb.min() == 255:
            return WHITE
        return _digest(self.picture.rgb.tobytes())[:16]

    def failed(self, code: str, message: str) -> Page:
        return Page(
            number=self.picture.number,
            width_pt=self.picture.width_pt,
            height_pt=self.picture.height_pt,
            status="failed",
            error=PageFailure(code=code, message=message),
        )

    def page(self, digest: str) -> Page:
        number = self.picture.number
        text = f"page {number} shows {digest}"
        block = Block(
            id=f"p{number}-b1", type="paragraph", text=text, markdown=text, confidence=0.1 + 0.2
        )
        return Page(
            number=number,
            width_pt=self.picture.width_pt,
            height_pt=self.picture.height_pt,
            status="ok",
            blocks=(block,),
            confidence=1 / 3,
            num_tokens=len(text),
        )


class StandInReader:
    """Reads one page a step, whichever waits longest."""

    def __init__(self, model: str = "stand-in", slots: int | None = None) -> None:
        self.size_rule = SizeRule(factor=32, min_pixels=4_096, max_pixels=16_384)
        self.generator = Generator(
            ocria="0",
            model=ModelInfo(
                name=model, digest=sha256(model.encode()).hexdigest(), precision="none"
            ),
            settings={"max_tokens": 8192},
        )
        self.num_slots = slots or int(os.environ.get("STAND_IN_SLOTS", "4"))
        self._delay_s = float(os.environ.get("STAND_IN_DELAY", "0"))
        self._pages: dict[int, tuple[Job, Any]] = {}
        self._next_key = 0

    @property
    def num_pages(self) -> int:
        return len(self._pages)

    def new_drafting(self) -> Any:
        return SimpleNamespace(wants_text=False)

    def job(self, picture: PageImage | PageFailed, drafting: Any) -> Job:
        return Job(picture)

    def submit(self, job: Job, begun: Any = None) -> int:
        assert self.num_pages < self.num_slots, "more pages than slots"
        self._next_key += 1
        self._pages[self._next_key] = (job, begun)
        return self._next_key

    def step(self) -> list[tuple[int, Page]]:
        for key, (job, begun) in self._pages.items():
            if isinstance(begun, Page) or not _matches("STAND_IN_HANG", begun):
                del self._pages[key]
                return [(key, self._read(job, begun))]
        time.sleep(0.01)
        return []

    def cancel(self, key: int, code: str, message: str) -> None:
        job, _ = self._pages[key]
        self._pages[key] = (job, job.failed(code, message))

    def close(self) -> None:
        self._pages.clear()

    def _read(self, job: Job, begun: Any) -> Page:
        if isinstance(begun, Page):
            return begun
        time.sleep(self._delay_s)
        if "STAND_IN_LOG" in os.environ:
            line = f"{os.getpid()} {begun} {job.picture.number}\n"
            descriptor = os.open(
                os.environ["STAND_IN_LOG"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644
            )
            os.write(descriptor, line.encode())
            os.close(descriptor)
        if _matches("STAND_IN_CRASH", begun):
            os.kill(os.getpid(), signal.SIGKILL)
        if _matches("STAND_IN_FAIL", begun):
            return job.failed("decode_failed", "the stand-in was told to fail")
        return job.page(begun)


def _digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def _matches(variable: str, digest: str) -> bool:
    prefix = os.environ.get(variable)
    return bool(prefix) and digest.startswith(str(prefix))


def make_lane(reader: Any, options: BatchOptions) -> Lane:
    return Lane(
        reader,
        options.parse,
        jobs=options.jobs or 1,
        timeout_s=options.timeout_s,
        with_images=options.shows_pages,
    )


def open_lane(options: BatchOptions) -> Lane:
    reader: Any = StandInReader(options.parse.model)
    return make_lane(reader, options)


if __name__ == "__main__":
    from ocria.batch import session
    from ocria.cli import main

    session.choose_lanes = open_lane
    sys.exit(main())
