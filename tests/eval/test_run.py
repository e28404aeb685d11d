"""The runner with a stand-in engine: resuming, failures, shards, reports."""

import errno
import json
import os
import re
from collections.abc import Container, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from ocria.errors import ExitCode, InputError, OutputError, UsageError
from ocria.eval import EvalOptions, evaluate, parse_shard, run
from ocria.eval.engines import PageImage, make_engine, register_engine
from ocria.eval.html_report import write_html
from ocria.eval.page_images import page_images
from ocria.eval.predictions import PagePrediction, ReadBlock


class Echo:
    """Reads what it was told for each shade of grey, and counts pages."""

    name = "echo"

    def __init__(self, version: str = "1", fails_on: int | None = None) -> None:
        self.version = version
        self.fails_on = fails_on
        self.seen: list[int] = []

    def read(self, pages: Sequence[PageImage], *, lang: str) -> Iterator[PagePrediction]:
        for page in pages:
            shade = page.image.getpixel((0, 0))[0]
            self.seen.append(shade)
            if shade == self.fails_on:
                raise RuntimeError("no such shade")
            text = f"page of shade {shade}"
            block = ReadBlock(text=text, confidence=0.9)
            yield PagePrediction(
                number=page.number, markdown=text, seconds=0.5, tokens=7, blocks=(block,)
            )


@pytest.fixture(autouse=True)
def quick_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    """Decodes in this process: a worker process a document would be most of the time here."""

    def decode(path: Path, pages: object, *, dpi: int, done: Container[int]) -> Iterator[PageImage]:
        if 1 not in done:
            yield PageImage(number=1, image=Image.open(path).convert("RGB"), dpi=200.0)

    monkeypatch.setattr(run, "page_images", decode)


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    rows = []
    for shade in (10, 20, 30):
        (root / "greys").mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (60, 40), (shade, shade, shade)).save(root / f"greys/{shade}.png")
        (root / f"greys/{shade}.txt").write_text(f"page of shade {shade}")
        rows.append({"file": f"greys/{shade}.png", "truth": f"greys/{shade}.txt",
                     "metric": "text", "kind": "grey", "lang": "en"})  # fmt: skip
    Image.new("RGB", (60, 40), (40, 40, 40)).save(root / "blank.png")
    rows.append({"file": "blank.png", "metric": "blank", "set": "blank", "truth_origin": "exact"})
    (root / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return root


def options(dataset: Path, **fields: Any) -> EvalOptions:
    return EvalOptions(dataset=dataset, engines=("echo",), work=dataset.parent / "work", **fields)


def use(engine: Echo) -> Echo:
    register_engine("echo", lambda options: engine)
    return engine


def test_figures_by_name_overall_and_per_set(dataset: Path) -> None:
    use(Echo())
    report = evaluate(options(dataset))
    row = json.loads(report.as_json_line())
    assert (row["cer"], row["word_f1"], row["cer_n"], row["cer_median"]) == (0.0, 1.0, 3, 0.0)
    assert row["sets"]["greys"]["items"] == 3
    assert row["invented_chars"] == len("pageofshade40")
    assert row["seconds_per_page"] == 0.5
    assert row["tokens_per_page"] == 7.0
    assert report.exit_code is ExitCode.OK


def test_a_second_run_reads_what_was_kept(dataset: Path) -> None:
    use(Echo())
    first = evaluate(options(dataset)).as_json_line()
    again = use(Echo())
    assert evaluate(options(dataset)).as_json_line() == first
    assert again.seen == []
    evaluate(options(dataset, rerun=True))
    assert len(again.seen) == 4


def test_what_was_kept_is_told_from_what_is_read(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset, only="grey", limit=1))
    lines: list[str] = []
    evaluate(options(dataset, only="grey"), notify=lines.append)
    assert lines == [
        "echo 1/3 greys/10.png (kept)",
        "echo 2/3 greys/20.png",
        "echo 3/3 greys/30.png",
    ]


def test_another_version_or_resolution_reads_anew(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    newer = use(Echo(version="2"))
    evaluate(options(dataset))
    evaluate(options(dataset, dpi=100))
    assert len(newer.seen) == 8


def test_a_cut_off_journal_line_is_read_again(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    journal = dataset.parent / "work/echo/greys/20.png.pages.jsonl"
    journal.write_text(journal.read_text()[:-9])
    again = use(Echo())
    evaluate(options(dataset))
    assert again.seen == [20]


@pytest.mark.parametrize("damage", ["{broken\n{}\n", "[]\n[]\n", '{}\n{"blocks": []}\n', "3\n"])
def test_a_damaged_journal_is_read_again_with_a_warning(
    dataset: Path, damage: str, caplog: pytest.LogCaptureFixture
) -> None:
    use(Echo())
    evaluate(options(dataset))
    (dataset.parent / "work/echo/greys/20.png.pages.jsonl").write_text(damage)
    again = use(Echo())
    report = evaluate(options(dataset))
    assert report.exit_code is ExitCode.OK
    assert again.seen == [20]
    assert "greys/20.png" in caplog.text and "read again" in caplog.text


def test_a_reading_of_another_file_of_that_name_is_not_used(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    Image.new("RGB", (60, 40), (25, 25, 25)).save(dataset / "greys/20.png")
    report = evaluate(options(dataset, pred=dataset.parent / "work/echo"))
    assert [p.where for p in report.problems] == ["greys/20.png"]
    assert "another file" in report.problems[0].what
    again = use(Echo())
    evaluate(options(dataset))
    assert again.seen == [25]


def test_kept_pages_that_an_item_does_not_ask_for_do_not_count(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    index = dataset / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    rows[0]["pages"] = "2"
    index.write_text("\n".join(map(json.dumps, rows)))
    report = evaluate(options(dataset, pred=dataset.parent / "work/echo"))
    assert "no page that is asked for" in report.problems[0].what


@pytest.mark.parametrize("pages", ["2", "2-9,7"])
def test_pages_outside_the_file_are_named(
    dataset: Path, pages: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "page_images", page_images)
    index = dataset / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    rows[0]["pages"] = pages
    index.write_text("\n".join(map(json.dumps, rows)))
    use(Echo())
    report = evaluate(options(dataset, limit=1))
    assert [p.where for p in report.problems] == ["greys/10.png"]
    assert "the file has 1 page" in report.problems[0].what
    assert report.exit_code is ExitCode.PARTIAL


def test_a_document_that_was_read_in_whole_is_not_opened_again(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    use(Echo())
    first = evaluate(options(dataset)).as_json_line()

    def refuse(path: Path, pages: object, **_: object) -> Iterator[PageImage]:
        raise AssertionError(f"{path.name} was opened")

    monkeypatch.setattr(run, "page_images", refuse)
    assert evaluate(options(dataset)).as_json_line() == first


def test_more_pages_of_a_file_are_looked_for(dataset: Path) -> None:
    index = dataset / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    index.write_text("\n".join(json.dumps({**row, "pages": "1"}) for row in rows))
    use(Echo())
    evaluate(options(dataset))
    for journal in (dataset.parent / "work/echo").rglob("*.pages.jsonl"):
        assert json.loads(journal.read_text().partition("\n")[0])["asked"] == [1]
    opened: list[str] = []
    index.write_text("\n".join(map(json.dumps, rows)))

    def watch(path: Path, pages: object, **_: object) -> Iterator[PageImage]:
        opened.append(path.name)
        return iter(())

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(run, "page_images", watch)
        evaluate(options(dataset))
    assert len(opened) == 4


def test_a_page_that_failed_is_tried_again(dataset: Path) -> None:
    use(Echo(fails_on=20))
    evaluate(options(dataset))
    again = use(Echo())
    report = evaluate(options(dataset))
    assert again.seen == [20]
    assert report.exit_code is ExitCode.OK


def test_a_failing_page_is_named_and_counts_as_wrong(dataset: Path) -> None:
    use(Echo(fails_on=20))
    report = evaluate(options(dataset))
    assert report.exit_code is ExitCode.PARTIAL
    assert "no such shade" in report.problems[0].what
    row = json.loads(report.as_json_line())
    assert row["pages_failed"] == 1
    assert row["cer"] == pytest.approx(1 / 3, abs=1e-3)


def test_shards_share_one_folder(dataset: Path) -> None:
    parts = [use(Echo()) for _ in range(2)]
    for index, part in enumerate(parts):
        use(part)
        evaluate(options(dataset, shard=(index, 2)))
    assert sorted(shade for part in parts for shade in part.seen) == [10, 20, 30, 40]
    whole = use(Echo())
    assert evaluate(options(dataset)).runs[0].overall.num_items == 4
    assert whole.seen == []


def test_only_and_limit(dataset: Path) -> None:
    use(Echo())
    assert evaluate(options(dataset, only="grey", limit=2)).runs[0].overall.num_items == 2
    spread = evaluate(options(dataset, limit=2)).runs[0]
    assert {group.name for group in spread.groups} == {"greys", "blank"}


def test_existing_markdown_is_scored(dataset: Path, tmp_path: Path) -> None:
    pred = tmp_path / "pred"
    (pred / "greys").mkdir(parents=True)
    (pred / "greys/10.png.md").write_text("page of shade 10\n")
    (pred / "greys/20.png.md").write_bytes(b"\xff\xfe")
    (pred / "blank.png.md").write_text("")
    report = evaluate(EvalOptions(dataset=dataset, pred=pred))
    row = json.loads(report.as_json_line())
    assert report.exit_code is ExitCode.PARTIAL
    assert (row["cer"], row["cer_n"], row["invented_chars"]) == (0.0, 1, 0.0)
    named = {p.where: p.what for p in report.problems}
    assert "cannot be read" in named["greys/20.png"]
    assert "no prediction" in named["greys/30.png"]


def test_a_folder_of_kept_predictions_brings_its_times(dataset: Path) -> None:
    use(Echo())
    whole = json.loads(evaluate(options(dataset)).as_json_line())
    kept = EvalOptions(dataset=dataset, pred=dataset.parent / "work/echo")
    again = json.loads(evaluate(kept).as_json_line())
    assert again == whole
    assert (again["engine"], again["version"], again["seconds_per_page"]) == ("echo", "1", 0.5)


def test_markdown_that_was_changed_is_what_counts(
    dataset: Path, caplog: pytest.LogCaptureFixture
) -> None:
    use(Echo())
    evaluate(options(dataset))
    work = dataset.parent / "work/echo"
    (work / "greys/10.png.md").write_text("")
    (work / "greys/20.png.md").write_bytes(b"page of shade 20\xff\n")
    (work / "greys/30.png.pages.jsonl").write_text("{broken\n")
    report = evaluate(EvalOptions(dataset=dataset, pred=work))
    scored = {row.score.item.name: row for row in report.runs[0].items}
    assert [(p.where, "cannot be read" in p.what) for p in report.problems] == [
        ("greys/20.png", True)
    ]
    assert scored["greys/10.png"].prediction.markdown == ""
    assert scored["greys/10.png"].prediction.pages[0].seconds is None
    assert scored["greys/30.png"].prediction.markdown == "page of shade 30\n"
    assert "30.png.pages.jsonl" in caplog.text
    # What was left alone still says who read it and how long that took.
    assert scored["blank.png"].prediction.pages[0].seconds == 0.5
    assert report.runs[0].engine == "echo"


def test_an_unfinished_reading_is_not_scored(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    work = dataset.parent / "work/echo"
    (work / "greys/20.png.md").unlink()
    report = evaluate(EvalOptions(dataset=dataset, pred=work))
    assert [p.where for p in report.problems] == ["greys/20.png"]
    assert "20.png.pages.jsonl is of a run that was stopped: let it" in report.problems[0].what


def test_a_journal_with_all_pages_asked_for_needs_no_markdown(dataset: Path) -> None:
    use(Echo())
    evaluate(options(dataset))
    index = dataset / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    index.write_text("\n".join(json.dumps({**row, "pages": "1"}) for row in rows))
    work = dataset.parent / "work/echo"
    for path in work.rglob("*.md"):
        path.unlink()
    report = evaluate(EvalOptions(dataset=dataset, pred=work))
    assert not report.problems
    assert json.loads(report.as_json_line())["seconds_per_page"] == 0.5


def test_the_bench_score_means_rule_files(tmp_path: Path) -> None:
    root = tmp_path / "bench"
    (root / "pdfs").mkdir(parents=True)
    Image.new("RGB", (30, 20), "white").save(root / "pdfs/a.pdf", "PDF")
    rule = {"pdf": "a.pdf", "page": 1, "type": "present"}
    found, missed = {**rule, "id": "1", "text": "alpha"}, {**rule, "id": "2", "text": "omega"}
    (root / "one.jsonl").write_text("\n".join(map(json.dumps, [found, missed, missed])))
    (root / "two.jsonl").write_text(json.dumps(found))
    pred = tmp_path / "pred"
    pred.mkdir()
    (pred / "a.pdf#p1.md").write_text("alpha")
    row = json.loads(evaluate(EvalOptions(dataset=root, pred=pred)).as_json_line())
    assert row["olmocr_bench_score"] == pytest.approx((1 / 3 + 1 + 1) / 3, abs=1e-4)
    assert row["rules"] == {"baseline": [2, 2], "present": [2, 4]}


def test_machine_made_truth_is_left_out_of_the_overall(dataset: Path) -> None:
    index = dataset / "index.jsonl"
    rows = [json.loads(line) for line in index.read_text().splitlines()]
    rows[0]["truth_origin"] = "machine"
    index.write_text("\n".join(map(json.dumps, rows)))
    use(Echo())
    row = json.loads(evaluate(options(dataset)).as_json_line())
    assert row["items"] == 3
    assert row["truth_origins"]["machine"]["items"] == 1


def test_an_unreadable_document_is_named(dataset: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "page_images", page_images)
    (dataset / "greys/10.png").write_bytes(b"no picture")
    use(Echo())
    report = evaluate(options(dataset))
    assert [p.where for p in report.problems] == ["greys/10.png"]
    assert report.runs[0].overall.num_items == 3


def test_the_page_is_self_contained_and_escapes_text(dataset: Path, tmp_path: Path) -> None:
    pred = tmp_path / "pred"
    (pred / "greys").mkdir(parents=True)
    for shade in (10, 20, 30):
        (pred / f"greys/{shade}.png.md").write_text("page of &lt;script&gt;x()&lt;/script&gt;")
    (pred / "blank.png.md").write_text("")
    path = tmp_path / "report.html"
    write_html(evaluate(EvalOptions(dataset=dataset, pred=pred)), path)
    page = path.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;" in page
    assert "<del>" in page and "<ins>" in page
    assert page.count("data:image/webp;base64,") == 4
    assert not re.search(r'(?:src|href)="(?!data:)', page)


def test_worst_comes_first(dataset: Path, tmp_path: Path) -> None:
    pred = tmp_path / "pred"
    (pred / "greys").mkdir(parents=True)
    for shade, text in ((10, "page of shade 10"), (20, "junk"), (30, "page of shade 3")):
        (pred / f"greys/{shade}.png.md").write_text(text)
    (pred / "blank.png.md").write_text("")
    path = tmp_path / "report.html"
    write_html(evaluate(EvalOptions(dataset=dataset, pred=pred)), path)
    order = re.findall(r"<summary>greys/(\d+)", path.read_text())
    assert order == ["20", "30", "10"]


def test_unknown_engines_and_impossible_options() -> None:
    here = Path()
    with pytest.raises(UsageError, match="nobody"):
        make_engine("nobody", EvalOptions(dataset=here))
    for fields in (
        {"limit": 0},
        {"dpi": 5},
        {"shard": (2, 2)},
        {"engines": ()},
        {"engines": ("a", "a")},
        {"engines": ("tesseract",), "with_text_layer": True},
    ):
        with pytest.raises(UsageError):
            EvalOptions(dataset=here, **fields)
    assert parse_shard("1/4") == (1, 4)
    for text in ("1", "a/2", "1/0"):
        with pytest.raises(UsageError):
            parse_shard(text)


def test_what_cannot_work_is_said_before_anything_is_read(dataset: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="nothing to score"):
        evaluate(options(dataset, only="no such kind"))
    with (dataset / "index.jsonl").open("a") as index:
        index.write("\n{}\n")
    with pytest.raises(UsageError, match="nothing to score") as caught:
        evaluate(options(dataset, only="no such kind"))
    assert "not all of it can be used: index.jsonl line 5" in (caught.value.hint or "")
    with pytest.raises(InputError, match="no such folder"):
        evaluate(options(dataset, pred=tmp_path / "gone"))
    (tmp_path / "file").write_text("")
    with pytest.raises(OutputError, match="cannot make the folder"):
        evaluate(EvalOptions(dataset=dataset, engines=("echo",), work=tmp_path / "file"))


def test_a_journal_without_pages_is_no_empty_reading(dataset: Path, tmp_path: Path) -> None:
    use(Echo())
    opts = options(dataset)
    evaluate(opts)
    folder = next(path for path in opts.work.iterdir() if path.is_dir())
    journal = next(folder.rglob("*.pages.jsonl"))
    journal.write_text(journal.read_text(encoding="utf-8").partition("\n")[0] + "\n")
    journal.with_name(journal.name.removesuffix(".pages.jsonl") + ".md").unlink()
    report = evaluate(options(dataset, pred=folder))
    assert [journal.name in problem.what for problem in report.problems] == [True]
    assert report.exit_code == ExitCode.PARTIAL


def test_readings_stay_in_their_folder(tmp_path: Path) -> None:
    Image.new("RGB", (60, 40), (9, 9, 9)).save(tmp_path / "up.png")
    root = tmp_path / "omni"
    root.mkdir()
    pages = [{"page_info": {"image_path": "../up.png"}, "layout_dets": []}]
    (root / "a.json").write_text(json.dumps(pages))
    use(Echo())
    report = evaluate(options(root))
    assert "leads out" in report.problems[0].what
    assert not list(tmp_path.rglob("*.pages.jsonl"))


def test_a_name_that_no_file_can_have_is_that_items_trouble(dataset: Path) -> None:
    name = f"greys/{'n' * 240}.png"
    (dataset / "greys/10.png").rename(dataset / name)
    index = dataset / "index.jsonl"
    index.write_text(index.read_text().replace("greys/10.png", name))
    use(Echo())
    for pred in (None, None, dataset.parent / "work/echo"):
        report = evaluate(options(dataset, pred=pred))
        assert [problem.where for problem in report.problems] == [name]
        assert "too long" in report.problems[0].what
        assert report.runs[0].overall.num_items == 3


def test_a_work_folder_that_is_full_ends_the_run(
    dataset: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*arguments: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("ocria.eval.prediction_store._write_line", full)
    use(Echo())
    with pytest.raises(OutputError, match="No space left"):
        evaluate(options(dataset))


def test_file_names_that_are_no_unicode_can_be_reported(tmp_path: Path) -> None:
    name = os.fsdecode(b"caf\xe9")
    Image.new("RGB", (60, 40), (9, 9, 9)).save(tmp_path / f"{name}.png")
    (tmp_path / "b.txt").write_text("x")
    (tmp_path / "b.png").write_bytes((tmp_path / f"{name}.png").read_bytes())
    use(Echo())
    report = evaluate(options(tmp_path))
    line = report.as_json_line()
    assert json.loads(line)["problems"][0]["where"] == f"{name}.png"
    assert line.encode("utf-8")
    write_html(report, tmp_path / "page.html")
    assert "caf\ufffd.png" in (tmp_path / "page.html").read_text(encoding="utf-8")
