"""What a person sees: tables, picture, and the rows that are kept."""

import csv
import importlib.util
import io
import json
from dataclasses import replace
from pathlib import Path
from types import ModuleType
from typing import Any
from xml.etree import ElementTree

import pytest

from ocria.bench import BenchReport
from ocria.bench.figures import (
    Ceilings,
    LaunchCounts,
    Machine,
    Quantiles,
    RungFigures,
    StageFigures,
    StepBytes,
)
from ocria.bench.plot import draw
from ocria.bench.terminal import print_report

ROOT = Path(__file__).resolve().parents[2]


def quantiles(middle: float) -> Quantiles:
    return Quantiles(p20=0.9 * middle, p50=middle, p80=1.2 * middle, n=5)


GOOD = RungFigures(
    name="plain",
    status="ok",
    tokens_per_s=quantiles(70.0),
    step_ms=quantiles(14.2),
    tokens_per_step=1.0,
    rows_per_step=1.0,
    step_bytes=StepBytes(weights=60_000_000, state=5_000_000),
    step_flops=7e7,
    copy_share=0.31,
    speedup=1.0,
    launches=LaunchCounts(launches=1074.0, synchronisations=1.0),
)
DIFFERS = RungFigures(name="auto", status="differs", note="differs at a<b>.pdf page 1 token 17")
MISSING = RungFigures(name="graph", status="unavailable", note="no graph runner")
REPORT = BenchReport(
    model="tiny",
    digest="ab" * 32,
    accepted=None,
    machine=Machine(
        device="GPU <1> & co",
        dtype="bfloat16",
        num_threads=2,
        versions={"ocria": "0", "torch": "2.13.0"},
        commit="0123456789ab",
        load=0.1,
    ),
    ceilings=Ceilings(
        copy_bytes_per_s=quantiles(2e10), product_flops_per_s=quantiles(2e11), cache_bytes=1 << 27
    ),
    pages=("a<b>.pdf page 1",),
    skipped=(("a<b>.pdf page 2", "blank"),),
    max_tokens=64,
    num_rounds=5,
    mean_length=1200.0,
    stages=(StageFigures(name="vision", seconds=quantiles(2.0), flops=4e11, peak_share=0.5),),
    rungs=(GOOD, MISSING, DIFFERS),
)


def printed(report: BenchReport) -> str:
    stream = io.StringIO()
    print_report(report, stream)
    return stream.getvalue()


def test_the_table_says_what_differs_and_what_is_missing() -> None:
    text = printed(REPORT)
    assert "differs at a<b>.pdf page 1 token 17" in text
    assert "no graph runner" in text and "1074" in text and "31.0%" in text
    assert "blank" in text and "fit in the last-level cache" in text
    row = next(line for line in text.splitlines() if line.startswith("│ auto"))
    assert "/s" not in row and "x " not in row


def test_the_exit_code_tells_of_a_difference() -> None:
    assert REPORT.exit_code == 7
    assert replace(REPORT, rungs=(GOOD, MISSING)).exit_code == 0


def test_the_picture_stands_alone() -> None:
    text = draw(REPORT)
    root = ElementTree.fromstring(text)
    assert root.tag == "{http://www.w3.org/2000/svg}svg"
    words = " ".join(node.text or "" for node in root.iter() if node.tag.endswith("text"))
    assert "GPU <1> & co" in words and "differs at a<b>.pdf page 1 token 17" in words
    assert "70.0 (1.00x, 1.00 a step)" in words and "copy 20.0 GB/s" in words
    assert text.count("http") == 1 and "<script" not in text and "<image" not in text
    # One bar, beside the paper: what differs has none.
    assert len([node for node in root.iter() if node.tag.endswith("rect")]) == 2


@pytest.mark.parametrize("rungs", [(MISSING,), (DIFFERS, MISSING)], ids=["missing", "differs"])
def test_a_picture_without_any_speed(rungs: tuple[RungFigures, ...]) -> None:
    ElementTree.fromstring(draw(replace(REPORT, rungs=rungs)))


@pytest.fixture
def record() -> ModuleType:
    path = ROOT / "benchmarks" / "speed" / "record.py"
    if not path.is_file():
        pytest.skip("needs the checkout's benchmarks")
    spec = importlib.util.spec_from_file_location("record_speed", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def as_json(report: BenchReport) -> dict[str, Any]:
    return dict(json.loads(report.as_json_line()))


def test_a_good_run_becomes_rows(record: ModuleType, tmp_path: Path) -> None:
    run = tmp_path / "run.json"
    run.write_text(replace(REPORT, rungs=(GOOD, MISSING)).as_json_line() + "\n")
    for _ in range(2):
        record.main(run, tmp_path)
    with (tmp_path / "decoding.csv").open() as stream:
        rows = list(csv.DictReader(stream))
    assert [row["rung"] for row in rows] == ["plain", "plain"]
    assert rows[0]["step_ms_p50"] == "14.2" and rows[0]["commit"] == "0123456789ab"
    assert (tmp_path / "stages.csv").read_text().count("vision") == 2


@pytest.mark.parametrize(
    ("machine", "rungs", "why"),
    [
        ({"commit": "0123456789ab-dirty"}, (GOOD,), "not made from a commit"),
        ({"commit": None}, (GOOD,), "not made from a commit"),
        ({"load": 3.0}, (GOOD,), "the machine was busy"),
        ({}, (GOOD, DIFFERS), "wrote something else: auto"),
    ],
)
def test_a_run_that_cannot_be_trusted_is_refused(
    record: ModuleType, machine: dict[str, Any], rungs: tuple[RungFigures, ...], why: str
) -> None:
    report = replace(REPORT, machine=replace(REPORT.machine, **machine), rungs=rungs)
    assert why in record.refusal(as_json(report), 2)
