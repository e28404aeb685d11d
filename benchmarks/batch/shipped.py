"""Batches with the shipped model, killed and read in other ways: the bytes must stay the same.

    python benchmarks/batch/shipped.py --out DIR [--pages 12] [--kills 2] [--ray]

Prints a line of CSV for each run: what it was, pages that were kept, pages that it read, pages on
their way when it was killed at most, seconds, and whether the results have the clean run's bytes.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path

from PIL import Image, ImageDraw, ImageFont

from ocria.batch.journal import read_contents

_PROGRAM = (
    "import sys; from ocria.batch import session; "
    "session.PAGES_SIDE_BY_SIDE['cpu'] = int(sys.argv.pop(1)); "
    "from ocria.cli import main; sys.exit(main())"
)
_TEXT = "the river carries timber past old mills while seven clerks count every barge twice"
_SIDE_BY_SIDE = 8


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--pages", type=int, default=12)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--ray", action="store_true", help="also on a local Ray cluster")
    given = parser.parse_args()
    source = given.out / "in"
    draw_pages(source, given.pages)
    print("run,kept,read,in_flight_at_most,seconds,equal", flush=True)
    clean = finished(given.out / "clean", command(source, given.out / "clean"))
    say("clean, --jobs 2, 8 side by side", 0, *clean, True)
    expected = results(given.out / "clean")
    assert len(expected) == 2 * given.pages, "a clean run has two files a page"
    for seed in range(given.kills):
        out = given.out / f"killed-{seed}"
        after = random.Random(seed).randrange(1, given.pages - 1)
        kill(command(source, out), after, pause_s=random.Random(seed).uniform(0, 3))
        kept = num_kept(out)
        read, seconds = finished(out, command(source, out))
        assert kept + read == given.pages, "a page that was kept was read again"
        say(f"killed after {after} pages, resumed", kept, read, seconds, results(out) == expected)
    files = sorted(map(str, source.iterdir()))
    ways = {
        "--jobs 1, 1 side by side": (1, ["--jobs", "1"], [str(source)]),
        "--jobs 4, 3 side by side, files backwards": (3, ["--jobs", "4"], files[::-1]),
    }
    if given.ray:
        ways["--ray local"] = (_SIDE_BY_SIDE, ["--ray", "local"], [str(source)])
    for number, (name, (slots, extra, inputs)) in enumerate(ways.items()):
        out = given.out / f"way-{number}"
        read, seconds = finished(out, command(*inputs, out, extra=extra, slots=slots))
        say(name, 0, read, seconds, results(out) == expected)


def draw_pages(folder: Path, count: int) -> None:
    """Pictures of three lines of words and a number, each file different."""
    folder.mkdir(parents=True, exist_ok=True)
    for seed in range(count):
        generator, image = random.Random(seed), Image.new("RGB", (512, 224), "white")
        draw, font = ImageDraw.Draw(image), ImageFont.load_default(26)
        for line in range(3):
            words = " ".join(generator.choices(_TEXT.split(), k=5))
            draw.text((24, 24 + 58 * line), f"{words} {seed}", "black", font)
        image.save(folder / f"page-{seed:02}.png")


def command(*inputs_and_out: str | Path, extra: Sequence[str] = (), slots: int = 8) -> list[str]:
    """`ocria batch` with so many pages side by side, its events on standard error."""
    program = [sys.executable, "-c", _PROGRAM, str(slots), "batch", *map(str, inputs_and_out)]
    options = ["-f", "md,json", "--device", "cpu", "--progress", "json"]
    return [*program, *options, *(extra or ("--jobs", "2"))]


def finished(out: Path, asked: Sequence[str]) -> tuple[int, float]:
    """Runs to the end; pages read and seconds."""
    started = time.monotonic()
    done = subprocess.run(asked, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode in (0, 7), done.stderr
    journals = (out / ".ocria" / "journal").glob("*")
    assert not list(journals), "finished documents leave no journal"
    return len(list(page_events(done.stderr.splitlines()))), time.monotonic() - started


def kill(asked: Sequence[str], after: int, pause_s: float) -> None:
    """Runs until so many pages are read and a moment longer, then kills the process."""
    process = subprocess.Popen(asked, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    events = page_events(process.stderr)
    for _ in range(after):
        next(events)
    time.sleep(pause_s)
    process.kill()
    process.wait()


def page_events(lines: Iterator[str] | Sequence[str]) -> Iterator[dict[str, object]]:
    """Those of the events that tell of a page."""
    for line in lines:
        if line.startswith("{") and json.loads(line)["event"] == "page":
            yield json.loads(line)


def num_kept(out: Path) -> int:
    """Pages that a killed run has left, in results and in journals; a document is one page."""
    manifest = out / "manifest.jsonl"
    lines = manifest.read_text().splitlines(keepends=True) if manifest.exists() else []
    finished = {json.loads(line)["output"] for line in lines if line.endswith("\n")}
    names = {sha256(output.encode()).hexdigest()[:32] for output in finished}
    journals = (out / ".ocria" / "journal").glob("*.jsonl")
    unfinished = [path for path in journals if path.stem not in names]
    return len(finished) + sum(len(read_contents(path).offsets) for path in unfinished)


def results(out: Path) -> dict[str, bytes]:
    """Every file but those of the run itself, by its name: paths differ where files were named."""
    return {
        path.name: path.read_bytes()
        for path in out.rglob("*")
        if path.suffix in (".md", ".json") and path.is_file()
    }


def say(name: str, kept: int, read: int, seconds: float, equal: bool) -> None:
    """One line of the table."""
    print(f'"{name}",{kept},{read},{_SIDE_BY_SIDE},{seconds:.1f},{equal}', flush=True)


if __name__ == "__main__":
    os.environ.setdefault("OMP_NUM_THREADS", "2")
    main()
