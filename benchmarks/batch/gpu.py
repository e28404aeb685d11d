"""Pages a second on a GPU: the engine alone, then whole batches by one or several processes.

    python benchmarks/batch/gpu.py --out DIR [--lanes 1 2 3] [--drafters auto none] INPUT...

The engine alone answers what a batch asks it for the same pages (up to `--pages`): the requests of
a first pass are kept, readings of a page turned and in regions too, and replayed for the clock,
cut beforehand and judged by no one. Its line says how many readings the pages took. Then a document
is opened and its first page read. A batch is `ocria batch` over the inputs, or over `--copies` of
each (a comment makes every copy another document): its rate is that of all pages from the first
that came out to the last, so that loading does not count; beside it stand the rate until nine
tenths of them had come, the whole run, and the CPU seconds of its processes. Busy is the share of
samples, four a second, in which the driver saw a kernel run. A line of CSV each.
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
from ocria.engine.speculative import Drafter
from ocria.options import DrafterName, ParseOptions
from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.rasterize import DocumentReader, PageImage, RenderTarget, TextLayer, open_document

_SAMPLE_S = 0.25


class _Asked(NamedTuple):
    """A request of the engine without the drafter that it had, and the text layer for a new one."""

    request: Request
    text: TextLayer | None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("inputs", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=128, help="for the engine alone")
    parser.add_argument("--lanes", type=int, nargs="*", default=[1, 2, 3])
    parser.add_argument("--drafters", nargs="*", default=["auto", "none"])
    parser.add_argument("--jobs", type=int, default=16)
    parser.add_argument("--copies", type=int, default=1, help="of each input, for batches")
    given = parser.parse_args()
    print("what,pages,tokens,seconds,pages_a_second,tokens_a_second,busy,all_seconds", flush=True)
    for drafter in given.drafters if given.pages else ():
        engine_alone(given.inputs, given.pages, drafter)
    inputs = copied(given.inputs, given.out / "in", given.copies) if given.lanes else []
    for lanes in given.lanes:
        for drafter in given.drafters:
            out = given.out / f"{lanes}-{drafter}"
            shutil.rmtree(out, ignore_errors=True)
            batch(inputs, out, lanes=lanes, drafter=drafter, jobs=given.jobs)


def copied(inputs: Sequence[Path], folder: Path, copies: int) -> Sequence[Path]:
    """Folders with all files of the inputs, each set of them with bytes of its own."""
    if copies == 1:
        return inputs
    files = [file for path in inputs for file in (sorted(path.rglob("*")) or [path])]
    for copy in range(copies):
        (folder / str(copy)).mkdir(parents=True, exist_ok=True)
        for number, file in enumerate(file for file in files if file.is_file()):
            to = folder / str(copy) / f"{number}-{file.name}"
            to.write_bytes(file.read_bytes() + f"\n% copy {copy}\n".encode())
    return [folder]


def engine_alone(inputs: Sequence[Path], most: int, drafter: DrafterName) -> None:
    """Answers the requests of a whole pass over pages, `PAGES_SIDE_BY_SIDE` at once."""
    options = ParseOptions(device="cuda", drafter=drafter)
    reader = load_page_reader(options, most_pages=PAGES_SIDE_BY_SIDE["cuda"])
    pictures = list(drawn(reader, inputs, most))
    with Meter() as meter:
        asked, num_tokens = first_pass(reader, pictures)
    passed = ("first pass, judged one by one", len(pictures), num_tokens)
    say(*passed, meter.seconds, meter.busy, meter.seconds)
    with Meter() as meter:
        num_tokens = replay(reader, asked)
    name = f"engine alone, {drafter}, {len(asked)} readings"
    say(name, len(pictures), num_tokens, meter.seconds, meter.busy, meter.seconds)
    first_page(reader, inputs[0])


def first_pass(reader: PageReader, pictures: Sequence[PageImage]) -> tuple[list[_Asked], int]:
    """Reads the pages; all that was asked of the engine, in that order, and tokens of the pages."""
    drafting, engine = reader.new_drafting(), reader._engine
    make, submit = drafting.drafter, engine.submit
    texts, requests = list[TextLayer | None](), list[Request]()

    def noted_drafter(text: TextLayer | None) -> Drafter | None:
        texts.append(text)
        return make(text)

    def noted_submit(request: Request) -> int:
        requests.append(replace(request, drafter=None))
        return submit(request)

    drafting.drafter, engine.submit = noted_drafter, noted_submit  # type: ignore[method-assign]
    num_tokens, waiting = 0, list(reversed(pictures))
    while waiting or reader.num_pages:
        while waiting and reader.num_pages < reader.num_slots:
            reader.submit(reader.job(waiting.pop(), drafting))
        num_tokens += sum(page.num_tokens for _, page in reader.step())
    engine.submit = submit  # type: ignore[method-assign]
    # A request follows its drafter at once, those of regions in the same order.
    return [_Asked(*both) for both in zip(requests, texts, strict=True)], num_tokens


def replay(reader: PageReader, asked: Sequence[_Asked]) -> int:
    """Tokens that the engine writes for the requests, each with a drafter that is new."""
    drafting, engine = reader.new_drafting(), reader._engine
    for request, text in asked:
        engine.submit(replace(request, drafter=drafting.drafter(text)))
    return sum(len(done.token_ids) for _, done in engine.stream() if isinstance(done, Result))


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


def drawn(reader: PageReader, inputs: Sequence[Path], most: int) -> Iterator[PageImage]:
    """Pages of the inputs."""
    left = most
    target = RenderTarget(fit=reader.size_rule)
    for path in inputs:
        with _opened(path, workers=8) as document:
            numbers = tuple(range(1, 1 + min(left, document.source.num_pages)))
            for picture in document.pages(numbers, target, with_text=reader.wants_text):
                if isinstance(picture, PageImage):
                    left -= 1
                    yield picture
        if not left:
            return


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
