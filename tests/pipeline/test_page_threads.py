"""Pages that are cut by threads while others are in the model: the same pages."""

import threading
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from PIL import Image, ImageDraw, ImageFont

from ocria.document import Page
from ocria.options import ParseOptions
from ocria.pipeline import page_job, regions
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.pipeline.page_threads import PageThreads
from ocria.pipeline.regions import SecondReading
from ocria.rasterize import PageImage

OPTIONS = ParseOptions(device="cpu", max_tokens=48)
BLANK = Page(number=1, width_pt=1, height_pt=1, rotation=0, status="blank")


@pytest.fixture(scope="module")
def alone() -> PageReader:
    return load_page_reader(OPTIONS)


def picture(number: int, text: str) -> PageImage:
    image = Image.new("RGB", (420, 192), "white")
    ImageDraw.Draw(image).text((12, 24), text, fill="black", font=ImageFont.load_default(20))
    return PageImage(
        number=number, rgb=np.asarray(image), width_pt=315, height_pt=144, rotation=0, seconds=0.0
    )


def read_all(reader: PageReader, pictures: list[PageImage]) -> dict[int, Page]:
    drafting = reader.new_drafting()
    for one in pictures:
        reader.submit(reader.job(one, drafting))
    pages = []
    while reader.num_pages:
        pages += [page for _, page in reader.step()]
    return {page.number: page for page in pages}


@pytest.mark.parametrize("num_processes", [0, 1])
def test_the_same_pages_with_threads_and_processes_and_without(
    alone: PageReader, monkeypatch: pytest.MonkeyPatch, num_processes: int
) -> None:
    in_regions: list[str] = []

    def second(whole: PageImage, *rest: Any) -> SecondReading:
        in_regions.append(threading.current_thread().name)
        return SecondReading(whole, *rest)

    monkeypatch.setattr(page_job, "SecondReading", second)
    monkeypatch.setattr(regions, "DOUBTFUL_CONFIDENCE", 1.1)
    texts = ["Total 42.50", "The old bridge was closed.", "", "Page four\n\n\nby 3 May"]
    pictures = [picture(number, text) for number, text in enumerate(texts, 1)]
    threaded = PageReader(
        alone.model, OPTIONS, most_pages=2, num_threads=2, num_processes=num_processes
    )
    found = read_all(threaded, pictures)
    assert found == {one.number: alone.read(one) for one in pictures}
    assert found[3].status == "blank"
    assert any(name.startswith("page") for name in in_regions)
    assert threaded.read(pictures[0]) == found[1]
    threaded.close()


def test_a_page_is_given_up_while_it_is_cut(
    alone: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader = PageReader(alone.model, OPTIONS, most_pages=2, num_threads=1)
    going_on = threading.Event()
    slow = reader.job(picture(1, "slow"), reader.new_drafting())
    monkeypatch.setattr(slow, "begin", lambda: (going_on.wait(10), BLANK)[1])
    key = reader.submit(slow)
    reader.cancel(key, "timeout", "too slow")
    ((found, page),) = reader.step()
    assert (found, page.status, reader.num_pages) == (key, "failed", 0)
    going_on.set()
    other = read_all(reader, [picture(2, "next")])
    assert list(other) == [2]


def test_what_fails_in_a_thread_is_raised() -> None:
    threads = PageThreads(1)

    def fail() -> Page:
        raise ValueError("no such page")

    threads.start(7, fail)
    with pytest.raises(ValueError, match="no such page"):
        threads.ended(5.0)
    assert not len(threads)
    threads.start(8, lambda: replace(BLANK, number=8))
    assert threads.ended(5.0) == [(8, replace(BLANK, number=8))]
    assert threads.ended(0.0) == []
