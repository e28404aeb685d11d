"""What looks at pictures in processes: the same results, and none is lost with a process."""

import os
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, Page
from ocria.pipeline.page_processes import PageProcesses
from ocria.pipeline.regions import Reading
from ocria.vision import measure_ink, page_regions

WORDS = "Nobody came to see the second ship since the first one was the last"
IMAGE = Image.new("RGB", (800, 1000), "white")
for y in range(60, 900, 30):
    ImageDraw.Draw(IMAGE).text((60, y), WORDS, fill="black", font=ImageFont.load_default(18))
RGB = np.asarray(IMAGE)


@pytest.fixture
def processes() -> Iterator[PageProcesses]:
    made = PageProcesses(2)
    yield made
    made.close()


def reading(number: int) -> Reading:
    boxes = [(55.0, 70.0 + 90 * n + number, 690.0, 140.0 + 90 * n) for n in range(6)]
    blocks = [
        Block(id=f"p1-b{n}", type="paragraph", text=WORDS * 3, markdown=WORDS * 3, bbox=box)
        for n, box in enumerate(boxes, 1)
    ]
    page = Page(number=number, width_pt=800, height_pt=1000, status="ok", blocks=tuple(blocks))
    return Reading(page, [-0.25, -0.5], False)


def test_readings_are_examined_as_in_place(processes: PageProcesses) -> None:
    readings = [reading(number) for number in range(1, 6)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: processes(Reading.examined, one, RGB), readings))
    assert found == [one.examined(RGB) for one in readings]
    assert found[0].page != readings[0].page and found[0].loss.num_lines
    for one, other in zip(processes(page_regions, RGB), page_regions(RGB), strict=True):
        assert one.box == other.box and np.array_equal(one.rgb, other.rgb)
    assert not processes(eval, "'torch' in __import__('sys').modules")


def test_nothing_is_lost_with_a_process(processes: PageProcesses) -> None:
    first = processes(os.getpid)
    os.kill(first, signal.SIGKILL)
    assert processes(measure_ink, RGB) == measure_ink(RGB)
    assert processes(os.getpid) not in (first, os.getpid())
    # It dies over this one, which is done here instead.
    dies = f"(o := __import__('os')).getpid() == {os.getpid()} or o.kill(o.getpid(), 9)"
    assert processes(eval, dies) is True
    with pytest.raises(ZeroDivisionError):
        processes(divmod, 1, 0)


def test_each_ends_when_its_reader_is_gone(processes: PageProcesses) -> None:
    with ThreadPoolExecutor(2) as threads:
        list(threads.map(lambda _: processes(measure_ink, RGB), range(8)))
    first, other = (process._running for process in processes._processes)
    assert first and other
    first[1].close()
    assert first[0].wait(10) == 0 and other[0].poll() is None
