"""What looks at pictures in processes: the same results, and none is lost with a process."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Block, Page
from ocria.errors import PageError
from ocria.pipeline.page_processes import PageProcesses, in_place
from ocria.pipeline.regions import Reading
from ocria.vision import PreprocessorConfig, SizeRule, measure_ink, page_regions, sized

WORDS = "Nobody came to see the second ship since the first one was the last"


@pytest.fixture
def processes() -> Iterator[PageProcesses]:
    made = PageProcesses(2)
    yield made
    made.close()


@pytest.fixture(scope="module")
def rgb() -> NDArray[np.uint8]:
    image = Image.new("RGB", (800, 1000), "white")
    for y in range(60, 900, 30):
        ImageDraw.Draw(image).text((60, y), WORDS, fill="black", font=ImageFont.load_default(18))
    return np.asarray(image)


def reading(number: int) -> Reading:
    boxes = [(55.0, 70.0 + 90 * n + number, 690.0, 140.0 + 90 * n) for n in range(6)]
    blocks = tuple(
        Block(id=f"p1-b{n}", type="paragraph", text=WORDS * 3, markdown=WORDS * 3, bbox=box)
        for n, box in enumerate(boxes, 1)
    )
    page = Page(number=number, width_pt=800, height_pt=1000, status="ok", blocks=blocks)
    return Reading(replace(page, confidence=0.97), [-0.25, -0.5], False)


def equal(one: Reading, other: Reading) -> bool:
    return one == other and repr(one) == repr(other)


def test_readings_are_examined_as_in_place(
    processes: PageProcesses, rgb: NDArray[np.uint8]
) -> None:
    readings = [reading(number) for number in range(1, 6)]
    with ThreadPoolExecutor(4) as threads:
        found = list(threads.map(lambda one: processes(Reading.examined, one, rgb), readings))
    wanted = [in_place(Reading.examined, one, rgb) for one in readings]
    assert all(map(equal, found, wanted))
    assert wanted[0].page != readings[0].page and wanted[0].loss.num_lines
    assert processes(measure_ink, rgb) == measure_ink(rgb)
    for one, other in zip(processes(page_regions, rgb), page_regions(rgb), strict=True):
        assert one.box == other.box and np.array_equal(one.rgb, other.rgb)


def test_a_death_loses_nothing(processes: PageProcesses, rgb: NDArray[np.uint8]) -> None:
    wanted = measure_ink(rgb)
    first = processes(os.getpid)
    os.kill(first, signal.SIGKILL)
    assert processes(measure_ink, rgb) == wanted
    second = processes(os.getpid)
    assert second not in (first, os.getpid())
    # It dies over the call, which is done here instead.
    assert processes(_end_of, os.getpid()) == "survived"
    assert processes(measure_ink, rgb) == wanted


def _end_of(survivor: int) -> str:
    if os.getpid() != survivor:
        os.kill(os.getpid(), signal.SIGKILL)
    return "survived"


def test_errors_are_those_of_this_process(processes: PageProcesses) -> None:
    config = PreprocessorConfig(
        patch_size=16, merge_size=2, min_pixels=65536, max_pixels=1 << 20,
        image_mean=(0.5,) * 3, image_std=(0.5,) * 3, rescale_factor=1 / 255, do_grayscale=True,
    )  # fmt: skip
    with pytest.raises(PageError, match="too long"):
        processes(sized, np.zeros((6000, 8), np.uint8), config)
    assert processes(SizeRule(factor=32, min_pixels=1, max_pixels=9999), 64, 64) == (64, 64)


def test_no_torch_and_no_orphans() -> None:
    """Ended the hard way, a reader takes its processes along."""
    script = (
        "import os, sys, time\n"
        "from ocria.pipeline.page_processes import PageProcesses\n"
        "from ocria.pipeline.regions import Reading\n"
        "p = PageProcesses(1)\n"
        "assert p(eval, \"__import__('sys').modules.get('torch')\") is None\n"
        "print(p(os.getpid), flush=True)\n"
        "time.sleep(60)\n"
    )
    path = os.pathsep.join(sys.path)
    lane = subprocess.Popen(
        [sys.executable, "-c", script],
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": path},
    )
    assert lane.stdout is not None
    worker = int(lane.stdout.readline())
    lane.kill()
    lane.wait()
    lane.stdout.close()
    deadline = time.monotonic() + 10
    while _runs(worker):
        assert time.monotonic() < deadline, "it outlived its reader"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    """A zombie that nobody has waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        return False
