"""Damaged, hostile and merely odd files: the run goes on, and each says what became of it.

Rasterising is real; the model is a stand-in.
"""

import json
import os
import shutil
import subprocess
import sys
import tarfile
import time
from collections import Counter
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from documents import image_file, pdf
from mutator import MUTATIONS, mutate
from runs import go, manifest, options_of
from stand_in import WHITE, Job, StandInReader

from ocria.batch.report import NAME as REPORT
from ocria.errors import ExitCode
from ocria.rasterize import RenderTarget, open_document

Record = Callable[[str, object], None]
FILES = Path(__file__).parents[1] / "rasterize" / "files"
SHARED = Path(os.environ.get("OCRIA_SHARED", Path(__file__).resolve().parents[3] / "shared"))
REAL = SHARED / "data" / "real-dev.tar"
TIMEOUT_S = 20.0
STATUSES = {"ok", "blank", "repaired", "truncated", "failed"}


def check(options: Any, *, deadline_s: float) -> dict[str, dict[str, Any]]:
    """Runs a batch that must come to its end in time and report every file."""
    started = time.monotonic()
    code, witness = go(options)
    assert code in (ExitCode.OK, ExitCode.PARTIAL)
    assert time.monotonic() - started < deadline_s
    entries = manifest(options)
    assert len(entries) == witness.figures.num_found == witness.figures.documents.total()
    for entry in entries.values():
        assert set(entry["pages"]) <= STATUSES
        has_pages = set(entry["pages"]) - {"failed"} or not entry["num_pages"]
        assert (entry["status"] == "failed") == (entry["error"] is not None or not has_pages)
        assert sum(entry["pages"].values()) == entry["num_pages"]
    assert (options.out_dir / REPORT).exists()
    assert (witness.figures.num_ahead, witness.figures.num_opened) == (0, len(entries))
    return entries


def mutations(folder: Path, originals: list[bytes], count: int) -> None:
    folder.mkdir(parents=True)
    for seed in range(count):
        kind, damaged = mutate(originals[seed // len(MUTATIONS) % len(originals)], seed)
        (folder / f"{seed:05}-{kind}.pdf").write_bytes(damaged)


def test_mutations_are_fixed_by_their_seed() -> None:
    original = pdf(2, 1)
    assert mutate(original, 17) == mutate(original, 17)
    damaged = [mutate(original, seed)[1] for seed in range(3 * len(MUTATIONS))]
    assert sum(one != original for one in damaged) >= len(damaged) - 1


def test_damaged_files_are_survived(tmp_path: Path) -> None:
    mutations(tmp_path / "in", [pdf(2, 1), pdf(5, 2)], 2 * len(MUTATIONS))
    inputs = tuple(str(path) for path in sorted((tmp_path / "in").iterdir()))
    options = options_of(tmp_path / "in", inputs=inputs, timeout_s=TIMEOUT_S)
    entries = check(options, deadline_s=180)
    assert {entry["status"] for entry in entries.values()} >= {"ok", "failed"}


@pytest.mark.slow
def test_two_thousand_damaged_files_are_survived(tmp_path: Path, record_property: Record) -> None:
    originals = [pdf(n, n) for n in (1, 2, 7)]
    mutations(tmp_path / "in", originals, 2000)
    inputs = tuple(str(path) for path in sorted((tmp_path / "in").iterdir()))
    options = options_of(tmp_path / "in", inputs=inputs, timeout_s=TIMEOUT_S)
    entries = check(options, deadline_s=3600)
    assert len(entries) == 2000
    kinds: dict[str, Counter[str]] = {name: Counter() for name in MUTATIONS}
    for output, entry in entries.items():
        found = kinds[output[6:].removesuffix(".pdf")]
        found[f"document {entry['status']}"] += 1
        found.update(pages_told(options.out_dir / f"{output}.json", originals))
    for name, found in kinds.items():
        record_property(name, dict(sorted(found.items())))


def pages_told(path: Path, originals: list[bytes]) -> Counter[str]:
    """How a result names its pages: `same` shows what some page of an original shows."""
    known = shown(originals)
    told: Counter[str] = Counter()
    for page in json.loads(path.read_text())["pages"] if path.exists() else ():
        text = page["blocks"][0]["text"].partition(" shows ")[2] if page["blocks"] else ""
        kind = "white" if text == WHITE else "same" if text in known else "other"
        told[f"page {page['status']}" + (f" {kind}" if page["status"] == "ok" else "")] += 1
    return told


@cache
def _shown(original: bytes) -> frozenset[str]:
    target = RenderTarget(fit=StandInReader().size_rule, dpi=None)
    with open_document(original, name="-", password=None, max_pixels=1 << 24) as document:
        numbers = range(1, document.source.num_pages + 1)
        return frozenset(Job(picture).begin() for picture in document.pages(numbers, target))


def shown(originals: list[bytes]) -> frozenset[str]:
    """What the stand-in says of each page of the originals."""
    return frozenset().union(*map(_shown, originals))


def test_each_kind_of_trouble_has_its_status(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    folder.mkdir()
    files = {
        "whole.pdf": pdf(2, 1),
        "photo.jpg": image_file(1, ".jpg"),
        "empty.pdf": b"",
        "text.pdf": b"just words",
        "office.docx": b"PK\x03\x04 word",
        "cut.pdf": pdf(3, 2)[:40],
        "nameless": pdf(1, 3),
        "n\u00e4me \u6587\u66f8\n.pdf": pdf(1, 4),
        "x" * 240 + ".pdf": pdf(1, 5),
        "no font.pdf": pdf(1, 6, drawing=b"BT /F9 12 Tf (lost) Tj ET\n"),
    }
    for name, data in files.items():
        (folder / name).write_bytes(data)
    shutil.copy(FILES / "locked.pdf", folder)
    os.mkfifo(folder / "pipe.pdf")
    (folder / "loop").symlink_to(folder)
    inputs = [str(folder / name) for name in (*files, "locked.pdf")]
    options = options_of(folder, inputs=(*inputs, str(folder)), timeout_s=TIMEOUT_S)
    entries = check(options, deadline_s=120)
    statuses = {Path(entry["input"]).name: entry for entry in entries.values()}
    whole = ["whole.pdf", "photo.jpg", "nameless", "n\u00e4me \u6587\u66f8\n.pdf", "no font.pdf"]
    for name in [*whole, "x" * 240 + ".pdf"]:
        assert statuses[name]["status"] == "ok", name
    codes = {
        name: statuses[name]["error"]["code"]
        for name in ("empty.pdf", "text.pdf", "office.docx", "cut.pdf", "locked.pdf")
    }
    assert codes.pop("locked.pdf") == "password"
    assert set(codes.values()) == {"input"}


@pytest.mark.slow
@pytest.mark.skipif(not REAL.exists(), reason=f"no documents at {REAL}")
def test_real_documents_are_survived(tmp_path: Path, record_property: Record) -> None:
    with tarfile.open(REAL) as archive:
        archive.extractall(tmp_path / "in", filter="data")
    entries = check(options_of(tmp_path / "in", timeout_s=60.0), deadline_s=1800)
    statuses = Counter(entry["status"] for entry in entries.values())
    record_property("documents", dict(statuses))
    record_property("pages", dict(sum((Counter(e["pages"]) for e in entries.values()), Counter())))
    for entry in entries.values():
        if entry["status"] != "ok":
            record_property(entry["output"], entry["error"] or entry["pages"])
    assert statuses["ok"] >= 150


@pytest.mark.slow
def test_memory_and_time_do_not_grow_with_documents(
    tmp_path: Path, record_property: Record
) -> None:
    """Peak memory after 2,000 documents is within 5 % of that after 50; so is a page's time."""
    folder = tmp_path / "in"
    folder.mkdir()
    for seed in range(2000):
        (folder / f"{seed:05}.pdf").write_bytes(pdf(1 + seed % 3, seed % 40))
    program = """
import os, resource, sys
sys.path.insert(0, sys.argv[3])
from runs import Witness, single_lane
from ocria.batch import BatchOptions
from ocria.batch.session import run_batch
from ocria.options import ParseOptions
from pathlib import Path
class Meter(Witness):
    num_done = num_pages = 0
    def page_read(self, name, page):
        self.num_pages += 1
    def document_done(self, entry):
        self.num_done += 1
        if self.num_done in (50, 1000, 2000):
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
            # Of this process and of those that rasterised and have ended.
            cpu_s = sum(os.times()[:4])
            print(peak, cpu_s, self.num_pages, flush=True)
    def document_begun(self, *_): pass
options = BatchOptions(inputs=(sys.argv[1],), out_dir=Path(sys.argv[2]), jobs=2,
    parse=ParseOptions(model="stand-in"))
run_batch(options, Meter(), open_lanes=single_lane)
"""
    here = str(Path(__file__).parent)
    done = subprocess.run(
        [sys.executable, "-c", program, str(folder), str(tmp_path / "out"), here],
        capture_output=True,
        text=True,
        check=True,
        timeout=3000,
    )
    early, middle, late = (list(map(float, line.split())) for line in done.stdout.splitlines())
    first_s = (middle[1] - early[1]) / (middle[2] - early[2])
    second_s = (late[1] - middle[1]) / (late[2] - middle[2])
    record_property("peak in KiB after 50, 1,000 and 2,000", (early[0], middle[0], late[0]))
    record_property("CPU seconds a page, 51 to 1,000 and 1,001 to 2,000", (first_s, second_s))
    assert late[0] <= 1.05 * early[0]
    assert second_s <= 1.5 * first_s
