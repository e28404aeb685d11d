"""Seconds a page of OCRia and its peers on the same pages, cores and threads.

    python benchmarks/accuracy/speed.py DATASET [--engine NAME]... [--per-set 2] [--passes 3]
        [--cores 0,1] [--only KIND] > speed.csv

The sample is fixed: of each set of DATASET the first `--per-set` documents in its order, each with
the first page that its truth covers. The process and its children are pinned to `--cores`, every
engine may use as many threads. Pages are rasterised before anything is timed, at 200 dpi. For each
of `--passes` an engine is loaded anew, since it may learn from what it has read, reads the last
page, which does not count, then the others. A page's time is the median of its passes: wall-clock
seconds around the engine's own call, and CPU seconds of all its threads and child processes.
Loading is timed apart.

Standard output gets a row an engine: quantiles over pages, and the spread of passes, which is the
median over pages of (slowest - fastest) / median. Run it on a quiet machine: the load average at
start and end stands in the row, and a warning is printed where it says that others were at work.
"""

from __future__ import annotations

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean, median, quantiles
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ocria.eval.engines import Engine, PageImage
    from ocria.eval.options import EvalOptions

DPI = 200
COLUMNS = (
    "engine", "version", "device", "threads", "pages", "passes", "load_s",
    "p20_s", "p50_s", "p80_s", "mean_s", "max_s", "cpu_p50_s", "cpu_mean_s",
    "spread", "failed", "load_average",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True)
class Page:
    """A page of the sample, ready to read."""

    name: str
    lang: str
    picture: PageImage


@dataclass(frozen=True, kw_only=True)
class Timed:
    """One reading."""

    seconds: float
    cpu_seconds: float
    is_failed: bool


def main() -> None:
    """Measure each engine in turn; a row is printed as soon as it is there."""
    arguments = _arguments()
    cores = sorted({int(core) for core in arguments.cores.split(",")})
    os.sched_setaffinity(0, cores)
    # Before torch and ONNX Runtime are loaded: they ask once how many threads to make.
    os.environ.update(OMP_NUM_THREADS=str(len(cores)), OPENBLAS_NUM_THREADS=str(len(cores)))
    from ocria.eval.options import EvalOptions

    options = EvalOptions(
        dataset=arguments.dataset, device=arguments.device, model=arguments.model,
        dpi=DPI, threads=len(cores), side_by_side=1,
    )  # fmt: skip
    pages = list(_sample(arguments.dataset, arguments.per_set, arguments.only))
    if len(pages) < 2:
        sys.exit("fewer than two pages to read: see --only and --per-set")
    print(f"{len(pages)} pages: {', '.join(page.name for page in pages)}", file=sys.stderr)
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    for name in arguments.engine or ["ocria", "tesseract", "rapidocr"]:
        writer.writerow(_measure(name, options, pages, arguments.passes))
        sys.stdout.flush()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("dataset", type=Path)
    parser.add_argument("--engine", action="append")
    parser.add_argument("--per-set", type=int, default=2)
    parser.add_argument("--passes", type=int, default=3)
    parser.add_argument("--cores", default="0,1")
    parser.add_argument("--only")
    parser.add_argument("--model")
    parser.add_argument("--device", default="cpu")
    return parser.parse_args()


def _sample(root: Path, per_set: int, only: str | None) -> Iterator[Page]:
    from ocria.errors import OcriaError
    from ocria.eval.datasets import load_dataset
    from ocria.eval.engines import UnreadablePage
    from ocria.eval.page_images import page_images

    taken: dict[str, int] = {}
    for item in load_dataset(root).items:
        left_out = item.metric == "none" or (only and only not in item.kind + item.group)
        if left_out or taken.get(item.group, 0) == per_set:
            continue
        first = item.pages[:1] if item.pages else (1,)
        try:
            (picture,) = page_images(item.path, first, dpi=DPI)
        except OcriaError as error:
            print(f"left out: {item.name}: {error}", file=sys.stderr)
            continue
        if isinstance(picture, UnreadablePage):
            print(f"left out: {item.name}: {picture.reason}", file=sys.stderr)
            continue
        taken[item.group] = taken.get(item.group, 0) + 1
        yield Page(name=item.name, lang=item.lang, picture=picture)


def _measure(name: str, options: EvalOptions, pages: list[Page], passes: int) -> list[str | int]:
    from ocria.eval.engines import make_engine

    load_before = os.getloadavg()[0]
    *pages, warming = pages
    load_s, runs = [], []
    for _ in range(passes):
        started = time.perf_counter()
        engine = make_engine(name, options)
        load_s.append(time.perf_counter() - started)
        _read(engine, warming)
        runs.append([_read(engine, page) for page in pages])
    load_after = os.getloadavg()[0]
    if max(load_before, load_after - options.num_threads) > 0.5:
        print(f"warning: others were at work while {name} was timed", file=sys.stderr)
    by_page = list(zip(*runs, strict=True))
    wall = [median(timed.seconds for timed in page) for page in by_page]
    cpu = [median(timed.cpu_seconds for timed in page) for page in by_page]
    p20, *_, p80 = quantiles(wall, n=5, method="inclusive") if len(wall) > 1 else wall * 2
    return [
        engine.name, engine.version, options.device, options.num_threads, len(pages), passes,
        f"{load_s[0]:.1f}",
        *(f"{s:.2f}" for s in (p20, median(wall), p80, fmean(wall), max(wall))),
        f"{median(cpu):.2f}", f"{fmean(cpu):.2f}", f"{median(map(_spread, by_page)):.2f}",
        sum(timed.is_failed for timed in runs[-1]), f"{load_before:.1f} to {load_after:.1f}",
    ]  # fmt: skip


def _read(engine: Engine, page: Page) -> Timed:
    before, started = os.times(), time.perf_counter()
    try:
        (read,) = engine.read([page.picture], lang=page.lang)
        is_failed = read.status == "failed"
    # An engine may fail in any way; its time until then is still its time.
    except Exception as error:
        print(f"{engine.name} failed on {page.name}: {error}", file=sys.stderr)
        is_failed = True
    seconds, after = time.perf_counter() - started, os.times()
    # User, system, children's user and children's system time.
    cpu_seconds = sum(after[:4]) - sum(before[:4])
    return Timed(seconds=seconds, cpu_seconds=cpu_seconds, is_failed=is_failed)


def _spread(readings: tuple[Timed, ...]) -> float:
    seconds = [timed.seconds for timed in readings]
    return (max(seconds) - min(seconds)) / median(seconds)


if __name__ == "__main__":
    main()
