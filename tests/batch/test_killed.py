"""Killed at any moment, a batch goes on and ends with the bytes of an undisturbed run."""

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from documents import mixed_folder

from ocria.batch.journal import read_contents

PROGRAM = [sys.executable, str(Path(__file__).parent / "stand_in.py"), "batch"]
SLOTS = 4


def command(source: Path, out: Path, *extra: str) -> list[str]:
    return [*PROGRAM, str(source), str(out), "-f", "md,json", "--jobs", "2", "-q", *extra]


def environment(log: Path, delay_s: float) -> dict[str, str]:
    return os.environ | {
        "STAND_IN_LOG": str(log),
        "STAND_IN_DELAY": str(delay_s),
        "STAND_IN_SLOTS": str(SLOTS),
    }


def results(out: Path) -> dict[str, bytes]:
    """Every file but those of the run itself."""
    return {
        str(path.relative_to(out)): path.read_bytes()
        for path in out.rglob("*")
        if path.is_file() and path.suffix in (".md", ".json")
    }


def pages_read(log: Path) -> list[str]:
    lines = log.read_text().splitlines() if log.exists() else []
    return [line.split(" ", 1)[1] for line in lines]


def num_journaled(out: Path) -> int:
    journals = (out / ".ocria" / "journal").glob("*.jsonl")
    return sum(len(read_contents(path).offsets) for path in journals)


def num_finished(out: Path) -> int:
    return sum(path.read_text().count("page ") for path in out.rglob("*.md"))


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("in")
    assert mixed_folder(folder, 200) >= 200
    return folder


@pytest.fixture(scope="module")
def undisturbed(source: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    out = tmp_path_factory.mktemp("clean")
    log = out.with_suffix(".log")
    subprocess.run(command(source, out), env=environment(log, 0), check=True, timeout=300)
    found = results(out)
    assert found and max(Counter(pages_read(log)).values()) == 1
    return found


def kill_and_go_on(
    source: Path, undisturbed: dict[str, bytes], folder: Path, *, after: int, pause_s: float
) -> dict[str, int]:
    """Kills a run that has read `after` pages, then gives the command again; counts of pages."""
    out, log = folder / "out", folder / "log"
    process = subprocess.Popen(command(source, out), env=environment(log, 0.005))
    deadline = time.monotonic() + 200
    while len(pages_read(log)) < after and process.poll() is None:
        assert time.monotonic() < deadline, "the run stands still"
        time.sleep(0.002)
    time.sleep(pause_s)
    process.send_signal(signal.SIGKILL)
    process.wait()
    before, kept = pages_read(log), num_journaled(out) + num_finished(out)
    # Of what was read, all but the pages in flight is kept.
    assert kept >= len(before) - SLOTS
    subprocess.run(command(source, out), env=environment(log, 0), check=True, timeout=300)
    assert results(out) == undisturbed
    again = [page for page, times in Counter(pages_read(log)).items() if times > 1]
    assert len(again) <= SLOTS
    assert not list((out / ".ocria" / "journal").glob("*")), "finished documents leave no journal"
    assert not list(out.rglob("*.part"))
    return {"read": len(before), "kept": kept, "repeated": len(again)}


@pytest.mark.parametrize("after", [30, 150])
def test_killed_once(
    source: Path, undisturbed: dict[str, bytes], tmp_path: Path, after: int
) -> None:
    kill_and_go_on(source, undisturbed, tmp_path, after=after, pause_s=0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(20))
def test_killed_at_random_moments(
    source: Path,
    undisturbed: dict[str, bytes],
    tmp_path: Path,
    seed: int,
    record_property: Callable[[str, object], None],
) -> None:
    generator = random.Random(seed)
    after, pause_s = generator.randint(0, 195), generator.uniform(0, 0.05)
    counts = kill_and_go_on(source, undisturbed, tmp_path, after=after, pause_s=pause_s)
    for name, count in counts.items():
        record_property(name, count)
