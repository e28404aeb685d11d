"""Pages a second on a GPU: the engine alone, then whole batches by one or several processes.

    python benchmarks/batch/gpu.py --out DIR [--lanes 1 2 3] [--drafters auto none] INPUT...

The engine alone reads pages that are drawn and cut beforehand (up to `--pages`), once to warm up
and capture, then for the clock; then a document is opened and its first page read. A batch is
`ocria batch` over the inputs: its rate is that of all pages from the first that came out to the
last, so that loading does not count; beside it stand the rate until nine tenths of them had come,
the whole run, and the CPU seconds of its processes. Busy is the share of samples, four a second, in
which the driver saw a kernel run. A line of CSV each.
"""

import argparse
import json
import resource
import shutil
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from ocria.batch.session import PAGES_SIDE_BY_SIDE
from ocria.engine import Request, Result
from ocria.options import DrafterName, ParseOptions
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import DocumentReader, PageImage, RenderTarget, open_document

_SAMPLE_S = 0.25


class _Cut(NamedTuple):
    """A page before the engine: its picture, for the text layer, and its request."""

    picture: PageImage
    request: Request


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=128, help="for the engine alone")
    parser.add_argument("--lanes", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--drafters", nargs="*", default=["auto", "none"])
    parser.add_argument("--jobs", type=int, default=16)
    given = parser.parse_args()
    print("what,pages,tokens,seconds,pages_a_second,tokens_a_second,busy,all_seconds", flush=True)
    for drafter in given.drafters if given.pages else ():
        engine_alone(given.inputs, given.pages, drafter)
    for lanes in given.lanes:
        for drafter in given.drafters:
            out = given.out / f"{lanes}-{drafter}"
            shutil.rmtree(out, ignore_errors=True)
            batch(given.inputs, out, lanes=lanes, drafter=drafter, jobs=given.jobs)


def engine_alone(inputs: Sequence[Path], most: int, drafter: DrafterName) -> None:
    """Reads cut pages, `PAGES_SIDE_BY_SIDE` at once."""
    options = ParseOptions(device="cuda", drafter=drafter)
    reader = load_page_reader(options, most_pages=PAGES_SIDE_BY_SIDE["cuda"])
    pages = list(cut(reader, inputs, most))
    for name in ("warming up", f"engine alone, {drafter}"):
        with Meter() as meter:
            num_tokens = decode(reader, pages)
        say(name, len(pages), num_tokens, meter.seconds, meter.busy, meter.seconds)
    first_page(reader, inputs[0])


def _opened(path: Path, workers: int = 1) -> DocumentReader:
    limit = ParseOptions().max_pixels
    return open_document(
        path, name=path.name, password=None, max_pixels=limit, workers=workers, page_timeout_s=None
    )


def first_page(reader: PageReader, path: Path) -> None:
    """From the path of a document to its first page, the model warm."""
    reader.begin_document()
    with Meter() as meter, _opened(path) as document:
        target = RenderTarget(fit=reader.size_rule)
        for picture in document.pages((1,), target, with_text=reader.wants_text):
            page = reader.read(picture)
    say("first page, warm", 1, page.num_tokens, meter.seconds, meter.busy, meter.seconds)


def cut(reader: PageReader, inputs: Sequence[Path], most: int) -> Iterator[_Cut]:
    """Pages of the inputs, blank ones left out."""
    drafting, left = reader.new_drafting(), most
    target = RenderTarget(fit=reader.size_rule)
    for path in inputs:
        with _opened(path, workers=8) as document:
            numbers = tuple(range(1, 1 + min(left, document.source.num_pages)))
            for picture in document.pages(numbers, target, with_text=drafting.wants_text):
                begun = reader.job(picture, drafting).begin()
                if isinstance(begun, tuple) and isinstance(picture, PageImage):
                    left -= 1
                    yield _Cut(picture, begun[0])
        if not left:
            return


def decode(reader: PageReader, pages: Sequence[_Cut]) -> int:
    """Tokens that the engine writes for the pages, each with a drafter that is new."""
    drafting, engine = reader.new_drafting(), reader._engine
    for page in pages:
        engine.submit(replace(page.request, drafter=drafting.drafter(page.picture.text)))
    return sum(len(done.token_ids) for _, done in engine.stream() if isinstance(done, Result))


def batch(
    inputs: Sequence[Path], out: Path, *, lanes: int, drafter: DrafterName, jobs: int
) -> None:
    """One run of `ocria batch`."""
    asked = [sys.executable, "-m", "ocria", "batch", *map(str, inputs), str(out)]
    asked += ["--device", "cuda", "--lanes", str(lanes), "--drafter", drafter]
    asked += ["--jobs", str(jobs), "--progress", "json", "-f", "md,json"]
    started, came, cpu_before_s = time.monotonic(), list[float](), children_cpu_s()
    with Meter() as meter, subprocess.Popen(asked, stderr=subprocess.PIPE, text=True) as run:
        assert run.stderr is not None
        for line in run.stderr:
            event = json.loads(line) if line.startswith("{") else {"event": line.strip()}
            if event["event"] != "page":
                continue
            if not came:
                meter.begin()
            came.append(time.monotonic())
            meter.end()
    assert run.returncode in (0, 7), f"the run ended with code {run.returncode}"
    most = len(came) * 9 // 10
    name = (
        f"batch, {lanes} processes, {drafter}, first page after {came[0] - started:.1f} s, "
        f"{most / max(came[most - 1] - came[0], 1e-9):.1f} pages/s until nine tenths had come, "
        f"{children_cpu_s() - cpu_before_s:.0f} s of CPU"
    )
    seconds = came[-1] - came[0]
    results = (json.loads(path.read_text()) for path in out.rglob("*.json") if _is_result(path))
    num_tokens = sum(page["num_tokens"] for result in results for page in result["pages"])
    say(name, len(came), num_tokens, seconds, meter.busy, time.monotonic() - started)


def children_cpu_s() -> float:
    """CPU seconds of child processes that ended, and of theirs."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _is_result(path: Path) -> bool:
    return ".ocria" not in path.parts


class Meter:
    """Seconds, and how busy the GPU was meanwhile; `begin` and `end` narrow what counts."""

    def __init__(self) -> None:
        self._samples: list[tuple[float, float]] = []
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def __enter__(self) -> "Meter":
        self._thread.start()
        self.begin()
        return self

    def __exit__(self, *_: object) -> None:
        if not hasattr(self, "_ended"):
            self.end()
        self._is_over.set()
        self._thread.join()

    def begin(self) -> None:
        """What counts begins here."""
        self._began = time.monotonic()

    def end(self) -> None:
        """And ends here, if this is not called again."""
        self._ended = time.monotonic()

    @property
    def seconds(self) -> float:
        """That counted."""
        return self._ended - self._began

    @property
    def busy(self) -> float:
        """Mean share of the time in which a kernel ran; not a number without samples."""
        found = [share for at, share in self._samples if self._began <= at <= self._ended]
        return statistics.mean(found) if found else float("nan")

    def _sample(self) -> None:
        if shutil.which("nvidia-smi") is None:
            return
        asked = ["nvidia-smi", "--query-gpu=utilization.gpu", "--format=csv,noheader,nounits"]
        while not self._is_over.wait(_SAMPLE_S):
            done = subprocess.run(asked, capture_output=True, text=True, check=False)
            if done.returncode == 0 and done.stdout.split()[:1]:
                self._samples.append((time.monotonic(), float(done.stdout.split()[0]) / 100))


def say(
    name: str, num_pages: int, num_tokens: int, seconds: float, busy: float, whole_s: float
) -> None:
    """One line of the table."""
    seconds = max(seconds, 1e-9)
    rates = f"{num_pages / seconds:.1f},{num_tokens / seconds:.0f}"
    print(
        f'"{name}",{num_pages},{num_tokens},{seconds:.1f},{rates},{busy:.2f},{whole_s:.1f}',
        flush=True,
    )


if __name__ == "__main__":
    main()
