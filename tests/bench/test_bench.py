"""Whole runs on a tiny random checkpoint."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from ocria.bench import BenchOptions, BenchReport, bench
from ocria.bench.figures import RungFigures
from ocria.errors import InputError, UsageError

from .conftest import MAX_TOKENS

CPU_RUNGS = ["plain", "ngram", "text-layer", "auto", "dflash", "batch-2"]


def figures(rungs: tuple[RungFigures, ...], name: str) -> RungFigures:
    return next(rung for rung in rungs if rung.name == name)


def test_every_rung_is_equal_and_has_a_speed(report: BenchReport) -> None:
    assert [rung.name for rung in report.rungs] == CPU_RUNGS
    assert figures(report.rungs, "dflash").status == "unavailable"
    for rung in report.rungs:
        if rung.name == "dflash":
            continue
        assert rung.status == "ok", rung.note
        assert rung.tokens_per_s is not None and rung.tokens_per_s.n == 2
        assert rung.step_ms is not None and rung.step_ms.p20 <= rung.step_ms.p50 <= rung.step_ms.p80
        assert rung.speedup is not None and rung.speedup > 0
    assert report.exit_code == 0
    assert report.rungs[0].speedup == 1.0
    plain = figures(report.rungs, "plain")
    assert plain.rows_per_step == 1.0
    # The prefill's token is no step's, and one pass finds that the limit is reached.
    assert plain.tokens_per_step == pytest.approx((MAX_TOKENS - 1) / MAX_TOKENS)
    # Two rounds of three pages; a page's first pass runs beside its prefill and is no sample.
    assert plain.step_ms is not None and plain.step_ms.n == 2 * 3 * (MAX_TOKENS - 1)


def test_pages_stages_and_what_is_left_out(report: BenchReport) -> None:
    assert report.pages == ("a.tif page 1", "a.tif page 3", "b.png page 1")
    assert report.skipped == (("a.tif page 2", "blank"),)
    names = [stage.name for stage in report.stages]
    assert names == ["rasterize", "patches", "vision", "prefill", "decode (auto)"]
    assert all(stage.seconds.p50 > 0 for stage in report.stages)


def test_quick_takes_the_first_pages(options: BenchOptions) -> None:
    report = bench(replace(options, quick=True, rungs=("auto",), rounds=1))
    assert report.pages == ("a.tif page 1", "b.png page 1")
    assert [rung.name for rung in report.rungs] == ["plain", "auto"]


def test_batching_computes_several_sequences_in_a_pass(report: BenchReport) -> None:
    plain, batched = report.rungs[0], figures(report.rungs, "batch-2")
    assert plain.rows_per_step == 1.0
    assert batched.rows_per_step is not None and batched.rows_per_step > 1.2
    assert plain.step_bytes is not None and batched.step_bytes is not None
    assert batched.step_bytes.weights == plain.step_bytes.weights
    assert batched.step_bytes.state > 1.2 * plain.step_bytes.state


def test_the_json_line(report: BenchReport) -> None:
    line = report.as_json_line()
    assert "\n" not in line
    content = json.loads(line)
    assert content["schema"] == "ocria.bench/1"
    assert content["machine"]["versions"].keys() >= {"ocria", "python", "torch"}
    assert content["rungs"][0]["tokens_per_s"].keys() == {"p20", "p50", "p80", "n"}


def test_an_unknown_rung_is_refused_with_the_names(options: BenchOptions) -> None:
    with pytest.raises(UsageError, match="no rung is called turbo") as error:
        bench(replace(options, rungs=("turbo",)))
    assert "text-layer" in str(error.value.hint)


def test_only_blank_pages(options: BenchOptions, tmp_path: Path) -> None:
    from PIL import Image

    Image.new("L", (192, 128), 255).save(tmp_path / "blank.png")
    with pytest.raises(InputError, match="no page has anything to read"):
        bench(replace(options, inputs=(tmp_path / "blank.png",)))


def test_an_installation_without_examples(
    options: BenchOptions, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("ocria.bench.page_set.EXAMPLES", tmp_path / "examples")
    with pytest.raises(InputError, match="no example documents") as error:
        bench(replace(options, inputs=()))
    assert "name the documents" in str(error.value.hint)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"rounds": 0}, "--rounds must be 1 to"),
        ({"batch": 0}, "--batch must be 1 to"),
        ({"accepted": 4}, "--accepted is for random weights"),
        ({"shape": "0.8b"}, "random weights read no documents"),
        ({"shape": "0.8b", "inputs": (), "max_tokens": 65}, "--max-tokens must be 1 to 64"),
        ({"shape": "0.8b", "inputs": (), "accepted": 17}, "--accepted must be 1 to 16"),
        ({"shape": "70b", "inputs": ()}, "unknown shape"),
    ],
)
def test_impossible_options(
    options: BenchOptions, changes: dict[str, object], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        replace(options, **changes)  # type: ignore[arg-type]
