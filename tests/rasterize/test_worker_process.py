"""Disposable workers: crashes, hangs, interrupts, and nothing left behind."""

import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from ocria.rasterize import PageFailed, PageImage, RenderTarget, open_document

ROOT = Path(__file__).resolve().parents[2]
OPTIONS = {"name": "x.pdf", "password": None, "max_pixels": 10_000_000}

# Stands where the size rule does, and so runs inside the worker, in the middle of a page.
TROUBLE = """
import os, signal, time

class Trouble:
    def __init__(self, kind, width_px):
        self.kind, self.width_px = kind, width_px

    def __call__(self, height_px, width_px):
        if width_px == self.width_px:
            if self.kind == "crash":
                os.kill(os.getpid(), signal.SIGSEGV)
            if self.kind == "hang":
                time.sleep(60)
            if self.kind == "memory":
                bytearray(1 << 50)
            if self.kind == "bug":
                raise ZeroDivisionError("oops")
            if self.kind == "noise":
                os.write(1, b"library noise")
                os.write(2, b"library noise")
        return height_px, width_px
"""


@pytest.fixture
def trouble(tmp_path, monkeypatch):
    """trouble(kind, width_px): something goes wrong on pages of that width."""
    (tmp_path / "trouble_in_a_worker.py").write_text(TROUBLE)
    monkeypatch.syspath_prepend(tmp_path)
    import trouble_in_a_worker

    yield lambda *args: RenderTarget(fit=trouble_in_a_worker.Trouble(*args))
    del sys.modules["trouble_in_a_worker"]


@pytest.fixture
def five_pages(make_pdf):
    """Pages 100, 200, 300, 400 and 500 pixels wide at 150 dpi."""
    return make_pdf(*[(48 * (index + 1), 48, b"") for index in range(5)])


def children() -> set[int]:
    listed = Path("/proc/self/task") / str(os.getpid()) / "children"
    if not listed.exists():
        pytest.skip("no /proc/…/children on this system")
    return {int(pid) for pid in listed.read_text().split()}


def wait_until(holds, seconds: float = 60.0) -> None:
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, "it never happened"
        time.sleep(0.02)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("kind", "code", "said"),
    [
        ("crash", "page_broken", "SIGSEGV"),
        ("hang", "timeout", "not done after 0.5 s"),
        ("memory", "out_of_memory", "memory"),
        ("bug", "page_broken", "ZeroDivisionError: oops"),
    ],
)
def test_trouble_costs_one_page(five_pages, trouble, workers, kind, code, said):
    options = {**OPTIONS, "workers": workers, "page_timeout_s": 0.5 if kind == "hang" else None}
    with open_document(five_pages, **options) as document:
        pages = list(document.pages([1, 2, 3, 4, 5], trouble(kind, 300)))
    assert [page.number for page in pages] == [1, 2, 3, 4, 5]
    failed = [page for page in pages if isinstance(page, PageFailed)]
    assert [(page.number, page.code) for page in failed] == [(3, code)]
    assert said in failed[0].message
    assert (failed[0].width_pt, failed[0].height_pt) == (144, 48)
    assert [page.rgb.shape[1] for page in pages if page not in failed] == [100, 200, 400, 500]


def test_a_killed_worker_is_replaced(five_pages, target):
    before = children()
    with open_document(five_pages, **OPTIONS) as document:
        (worker,) = children() - before
        os.kill(worker, signal.SIGKILL)
        pages = list(document.pages([1, 2, 3], target))
    assert [type(page) for page in pages] == [PageFailed, PageImage, PageImage]
    assert "SIGKILL" in pages[0].message


def test_a_file_that_vanishes_costs_pages_not_the_run(five_pages, trouble, tmp_path):
    path = tmp_path / "x.pdf"
    path.write_bytes(five_pages)
    with open_document(path, **OPTIONS) as document:
        path.unlink()
        pages = list(document.pages([1, 2, 3], trouble("crash", 200)))
    assert [type(page) for page in pages] == [PageImage, PageFailed, PageFailed]
    assert "could not be opened again" in pages[2].message


def test_workers_write_nowhere(five_pages, trouble, capfd):
    with open_document(five_pages, **OPTIONS) as document:
        assert len(list(document.pages([1, 2, 3], trouble("noise", 200)))) == 3
    assert capfd.readouterr() == ("", "")


def test_a_late_reader_is_no_timeout(five_pages, target):
    with open_document(five_pages, **OPTIONS, page_timeout_s=0.2) as document:
        pages = document.pages([1, 2], target)
        next(pages)
        time.sleep(0.6)
        assert isinstance(next(pages), PageImage)


def test_work_begins_before_the_first_page_is_taken(five_pages, target, tmp_path):
    with open_document(five_pages, **OPTIONS) as document:
        began = time.monotonic()
        pages = document.pages([1], replace(target, dpi=600))
        assert time.monotonic() - began < 5
        assert document._in_flight
        assert len(list(pages)) == 1


@pytest.mark.parametrize("how", ["finished", "closed", "dropped", "failed"])
def test_nothing_is_left_behind(five_pages, target, how):
    before = children()
    try:
        with open_document(five_pages, **OPTIONS, workers=2) as document:
            pages = document.pages([1, 2, 3, 4, 5], target)
            next(pages)
            assert children() - before
            if how == "finished":
                list(pages)
            if how == "closed":
                pages.close()
            if how == "failed":
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        pass
    assert children() == before


PARENT = """
import os, sys
from pathlib import Path
from ocria.rasterize import RenderTarget, open_document
from ocria.vision import SizeRule

target = RenderTarget(fit=SizeRule(factor=32, min_pixels=65536, max_pixels=262144))
with open_document(Path(sys.argv[1]), name="x", password=None, max_pixels=10**7) as document:
    for page in document.pages([1, 2, 3, 4, 5], target):
        children = Path(f"/proc/self/task/{os.getpid()}/children").read_text()
        print(page.number, children, flush=True)
        sys.stdin.readline()
"""


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGKILL])
def test_workers_end_with_an_interrupted_or_killed_parent(five_pages, tmp_path, ending):
    path = tmp_path / "x.pdf"
    path.write_bytes(five_pages)
    parent = subprocess.Popen(
        [sys.executable, "-c", PARENT, str(path)],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    with parent:
        number, worker = parent.stdout.readline().split()
        assert number == b"1"
        # As a terminal does it: to the whole foreground group.
        os.killpg(parent.pid, ending)
        assert parent.wait(60) == -ending
    wait_until(lambda: not Path(f"/proc/{int(worker)}").exists())


def test_workers_import_no_torch():
    code = "import sys, ocria.rasterize.worker, ocria.vision; print('torch' in sys.modules)"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert run.stdout == "False\n"
