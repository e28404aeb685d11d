"""A batch with a stand-in model: what is read, written, kept, skipped and read again."""

import errno
import json
import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from documents import image_file, mixed_folder, pdf
from runs import Witness, go, journals, manifest, options_of, results, single_lane

from ocria.batch import BatchOptions, Figures
from ocria.batch import lane as lane_module
from ocria.batch import outputs as outputs_module
from ocria.batch.messages import Refused
from ocria.batch.session import run_batch
from ocria.document import Page
from ocria.errors import ExitCode, InputError, OutputError
from ocria.options import ParseOptions


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    (folder / "deep").mkdir(parents=True)
    (folder / "book.pdf").write_bytes(pdf(9, 1))
    (folder / "deep" / "brief.pdf").write_bytes(pdf(3, 2))
    (folder / "deep" / "scan").write_bytes(image_file(3, ".tiff", 2))
    (folder / "photo.png").write_bytes(image_file(4, ".png"))
    (folder / "notes.txt").write_text("not a document at all")
    return folder


@pytest.fixture(autouse=True)
def quiet_variables(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [n for n in os.environ if n.startswith("STAND_IN")]:
        monkeypatch.delenv(name)


def test_everything_is_read_and_named_by_its_path(source: Path) -> None:
    options = options_of(source)
    code, witness = go(options)
    names = ["book.pdf", "deep/brief.pdf", "deep/scan", "photo.png"]
    assert code == ExitCode.OK
    assert sorted(results(options)) == sorted(f"{n}.{s}" for n in names for s in ("json", "md"))
    assert sorted(manifest(options)) == sorted(names)
    assert manifest(options)["book.pdf"]["pages"] == {"ok": 9}
    assert witness.figures.pages == {"ok": 15} and journals(options) == []
    shown = json.loads(results(options)["book.pdf.json"])
    assert [page["number"] for page in shown["pages"]] == list(range(1, 10))
    assert shown["source"]["name"] == "book.pdf"
    # A batch and a single document are written alike.
    assert results(options)["book.pdf.md"].startswith(b"page 1 shows ")


def test_results_do_not_depend_on_jobs_order_or_slots(tmp_path: Path) -> None:
    folder = tmp_path / "in"
    mixed_folder(folder, 60)
    found = []
    for number, (jobs, slots) in enumerate([(1, 1), (2, 4), (4, 9)]):
        files = sorted(str(path) for path in folder.rglob("*.*"))
        inputs = (str(folder),) if number else tuple(reversed(files))
        options = options_of(folder, inputs=inputs, out_dir=tmp_path / f"out{number}", jobs=jobs)
        assert go(options, slots=slots)[0] == ExitCode.OK
        found.append({Path(name).name: data for name, data in results(options).items()})
    assert found[0] == found[1] == found[2]


def test_a_second_run_skips_what_is_finished_by_content(source: Path) -> None:
    options = options_of(source)
    go(options)
    code, witness = go(options)
    assert code == ExitCode.OK and witness.pages == [] and len(witness.skipped) == 4
    (options.out_dir / "book.pdf.md").write_text("corrected by hand")
    assert len(go(options)[1].skipped) == 4
    assert (options.out_dir / "book.pdf.md").read_text() == "corrected by hand"
    (source / "photo.png").write_bytes(image_file(5, ".png"))
    os.utime(source / "photo.png", (0, 0))
    _, witness = go(options)
    assert witness.pages == [("photo.png", 1)]
    assert (witness.num_ahead, witness.figures.num_ahead, witness.figures.num_opened) == (0, 0, 1)
    (options.out_dir / "deep" / "scan.md").unlink()
    _, witness = go(options)
    assert {name for name, _ in witness.pages} == {"scan"}
    assert len(manifest(options)) == 4


@pytest.mark.parametrize(
    "change",
    [
        {"formats": ("md",)},
        {"furniture": "keep"},
        {"parse": ParseOptions(model="another")},
        {"parse": ParseOptions(model="stand-in", pages="1")},
    ],
)
def test_other_settings_or_another_model_read_again(source: Path, change: dict[str, Any]) -> None:
    options = options_of(source)
    go(options)
    _, witness = go(replace(options, **change))
    assert witness.skipped == [] and len(witness.entries) == 4


class Stop(Exception):
    """The run is stopped."""


class Stopper(Witness):
    """Stops the run after some pages."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self._after = after

    def page_read(self, name: str, page: Page) -> None:
        super().page_read(name, page)
        if len(self.pages) == self._after:
            raise Stop


@pytest.mark.parametrize("after", [1, 6, 14])
def test_a_stopped_run_goes_on(source: Path, after: int) -> None:
    clean = options_of(source, out_dir=source.parent / "clean")
    go(clean)
    options = options_of(source)
    stopper = Stopper(after)
    with pytest.raises(Stop):
        run_batch(options, stopper, open_lanes=single_lane)
    _, witness = go(options)
    assert not set(stopper.pages) & set(witness.pages)
    assert len(stopper.pages) + len(witness.pages) == 15
    assert results(options) == results(clean)
    # What the time left is made of: at first finished documents are no work, at last nothing is.
    figures = witness.figures
    assert witness.num_ahead == 4 - stopper.figures.documents["ok"]
    assert (figures.num_ahead, figures.num_opened) == (0, witness.num_ahead)
    assert figures.num_wanted_pages == figures.num_resumed_pages + figures.num_pages


def test_a_page_that_fails_is_kept_and_can_be_retried(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(source)
    go(options_of(source, out_dir=source.parent / "clean"))
    clean = results(options_of(source, out_dir=source.parent / "clean"))
    text = clean["book.pdf.md"].decode()
    monkeypatch.setenv("STAND_IN_FAIL", text.split("page 4 shows ")[1][:16])
    code, _ = go(options)
    assert code == ExitCode.PARTIAL
    entry = manifest(options)["book.pdf"]
    assert (entry["status"], entry["pages"]) == ("partial", {"ok": 8, "failed": 1})
    assert (
        b"<!-- page 4: failed: the stand-in was told to fail -->" in results(options)["book.pdf.md"]
    )
    # Without being asked to, a finished document is left alone, and the run still says so.
    code, witness = go(options)
    assert (code, witness.pages) == (ExitCode.PARTIAL, [])
    assert witness.known_trouble == {"book.pdf": {"failed": [4]}}
    monkeypatch.delenv("STAND_IN_FAIL")
    code, witness = go(replace(options, retry_failed=True))
    assert (code, witness.pages) == (ExitCode.OK, [("book.pdf", 4)])
    assert witness.known_trouble == {}
    assert results(options) == clean and journals(options) == []


def test_a_page_that_failed_before_the_stop_is_named_by_the_run_that_goes_on(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    book = options_of(source, inputs=(str(source / "book.pdf"),), jobs=1)
    go(replace(book, out_dir=source.parent / "clean"))
    text = (source.parent / "clean" / "book.pdf.md").read_text()
    monkeypatch.setenv("STAND_IN_FAIL", text.split("page 2 shows ")[1][:16])
    with pytest.raises(Stop):
        run_batch(book, Stopper(6), open_lanes=single_lane)
    code, witness = go(book)
    assert code == ExitCode.PARTIAL and len(witness.pages) == 3
    assert witness.known_trouble == {"book.pdf": {"failed": [2]}}
    assert witness.figures.num_known_failed == 1


def test_a_page_that_is_never_done_meets_its_deadline(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(source)
    go(options)
    text = results(options)["deep/brief.pdf.md"].decode()
    monkeypatch.setenv("STAND_IN_HANG", text.split("page 2 shows ")[1][:16])
    again = options_of(source, out_dir=source.parent / "again", timeout_s=1.0)
    code, _ = go(again)
    assert code == ExitCode.PARTIAL
    pages = json.loads(results(again)["deep/brief.pdf.json"])["pages"]
    assert [page["status"] for page in pages] == ["ok", "failed", "ok"]
    assert pages[1]["error"]["code"] == "timeout"


def test_what_is_no_document_is_reported_if_it_was_named(source: Path) -> None:
    named = [source / "notes.txt", source / "photo.png"]
    options = options_of(source, inputs=tuple(map(str, named)))
    code, witness = go(options)
    assert code == ExitCode.PARTIAL
    entry = witness.entries["notes.txt"]
    assert entry.status == "failed" and entry.error is not None
    assert entry.error["code"] == "input" and "plain text" in entry.error["message"]
    assert witness.entries["photo.png"].status == "ok"
    # It is tried again: it may have been repaired.
    named[0].write_bytes(pdf(1, 8))
    code, witness = go(options)
    assert code == ExitCode.OK and list(witness.entries) == ["notes.txt"]


@pytest.mark.parametrize(("times", "status"), [(1, "ok"), (2, "failed")])
def test_a_document_that_opens_too_slowly_is_tried_once_more(
    source: Path, monkeypatch: pytest.MonkeyPatch, times: int, status: str
) -> None:
    opened, left = lane_module.open_document, iter(range(times))

    def slow(path: Path, **options: Any) -> Any:
        if path.name == "book.pdf" and next(left, None) is not None:
            raise InputError("book.pdf: it could not be opened within 120 s") from TimeoutError()
        return opened(path, **options)

    monkeypatch.setattr(lane_module, "open_document", slow)
    _, witness = go(options_of(source))
    assert witness.entries["book.pdf"].status == status
    assert witness.figures.documents.total() == 4


@pytest.mark.parametrize("end", ["\n", "\r\n", "\0"])
def test_a_list_on_standard_input(source: Path, end: str) -> None:
    listing = end.join([str(source / "photo.png"), "", str(source / "gone.pdf"), ""])
    code, witness = go(options_of(source, inputs=("-",)), listing=listing)
    assert code == ExitCode.PARTIAL
    assert witness.entries["photo.png"].status == "ok"
    assert witness.entries["gone.pdf"].error is not None
    assert "does not exist" in witness.entries["gone.pdf"].error["message"]


def test_nothing_vanishes(source: Path) -> None:
    (source / "empty.pdf").write_bytes(b"")
    (source / "text.JPG").write_text("no picture")
    (source / "gone.pdf").symlink_to("nowhere.pdf")
    (source / ".hidden.pdf").write_bytes(pdf(1, 6))
    os.mkfifo(source / "pipe.pdf")
    # A file is taken rather than a link to it.
    (source / "a link.pdf").symlink_to("deep/brief.pdf")
    options = options_of(source)
    for _ in range(2):
        code, witness = go(options)
        assert code == ExitCode.PARTIAL and witness.figures.num_passed_over == 3
        errors = {name: e["error"] for name, e in manifest(options).items() if e["error"]}
        assert sorted(errors) == ["empty.pdf", "gone.pdf", "text.JPG"]
        assert "link to a file that does not exist" in errors["gone.pdf"]["message"]
    assert sorted(witness.skipped) == ["book.pdf", "brief.pdf", "photo.png", "scan"]


def test_a_result_of_another_document_is_kept(source: Path) -> None:
    options, other = options_of(source), source.parent / "other"
    other.mkdir()
    (other / "book.pdf").write_bytes(pdf(2, 8))
    (other / "photo.png").write_bytes((source / "photo.png").read_bytes())
    go(options)
    before = results(options)
    for _ in range(2):
        code, witness = go(replace(options, inputs=(str(other),)))
        error = witness.entries["book.pdf"].error
        assert code == ExitCode.PARTIAL and error is not None
        assert f"that of {source / 'book.pdf'}; name another" in error["message"]
        assert results(options) == before and witness.skipped == ["photo.png"]
    assert len(go(options)[1].skipped) == 4
    assert go(replace(options, inputs=(str(other),), overwrite=True))[0] == ExitCode.OK
    assert manifest(options)["book.pdf"]["num_pages"] == 2


def test_fail_fast_stops(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for prefix in "0123456789abcdef":
        monkeypatch.setenv("STAND_IN_FAIL", prefix)
        options = options_of(source, out_dir=source.parent / prefix, fail_fast=True)
        code, witness = go(options, slots=1)
        if code == ExitCode.PARTIAL:
            assert witness.figures.pages["failed"] == 1
            return
    raise AssertionError("no page failed at all")


def test_files_of_others_are_not_touched(source: Path) -> None:
    options = options_of(source)
    options.out_dir.mkdir()
    precious = options.out_dir / "photo.png.md"
    precious.write_text("mine")
    code, witness = go(options)
    assert code == ExitCode.PARTIAL and precious.read_text() == "mine"
    error = witness.entries["photo.png"].error
    assert error is not None and error["code"] == "output_exists"
    assert go(options)[0] == ExitCode.PARTIAL and precious.read_text() == "mine"
    code, witness = go(replace(options, overwrite=True))
    assert code == ExitCode.OK and precious.read_text() != "mine"


def test_a_full_disk_ends_the_run_and_loses_nothing(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options, sync, calls = options_of(source), os.fsync, iter(range(1000))

    def full(descriptor: int) -> None:
        if next(calls) == 3:
            raise OSError(errno.ENOSPC, "No space left on device")
        sync(descriptor)

    with monkeypatch.context() as patch:
        patch.setattr(outputs_module.os, "fsync", full)
        with pytest.raises(OutputError, match="cannot write into") as caught:
            go(options)
    assert "goes on" in (caught.value.hint or "")
    clean = options_of(source, out_dir=source.parent / "clean")
    go(clean)
    assert go(options)[0] == ExitCode.OK
    assert results(options) == results(clean)


def test_two_runs_in_one_folder_do_not_mix(source: Path) -> None:
    class Second(Witness):
        def begin(self, figures: Figures) -> None:
            with pytest.raises(OutputError, match="another run"):
                go(options_of(source))
            raise Stop

    with pytest.raises(Stop):
        run_batch(options_of(source), Second(), open_lanes=single_lane)
    assert go(options_of(source))[0] == ExitCode.OK


def test_html_shows_the_pages_also_of_a_stopped_run(source: Path) -> None:
    clean = options_of(source, formats=("html",), out_dir=source.parent / "clean")
    go(clean)
    options = options_of(source, formats=("html",))
    with pytest.raises(Stop):
        run_batch(options, Stopper(6), open_lanes=single_lane)
    assert journals(options)
    go(options)
    for path in sorted(clean.out_dir.rglob("*.html")):
        if path.name == "report.html":
            continue
        again = options.out_dir / path.relative_to(clean.out_dir)
        assert path.read_text().count("data:image/jpeg") == path.read_text().count("<section")
        assert again.read_bytes() == path.read_bytes()
    assert journals(options) == []


def test_the_report_shows_what_failed_and_what_was_slow(
    source: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (source / "<b>wrong.pdf").write_bytes(b"%PDF-1.7 <script>")
    clean = options_of(source, out_dir=source.parent / "clean")
    go(clean)
    digest = results(clean)["photo.png.md"].split()[-1].decode()
    monkeypatch.setenv("STAND_IN_FAIL", digest)
    options = options_of(source)
    _, witness = go(options)
    page = (options.out_dir / "report.html").read_text()
    assert "&lt;b&gt;wrong.pdf" in page and "<script" not in page and "<b>" not in page
    assert page.count('src="data:image/jpeg') >= 15
    assert witness.figures.pages["failed"] == 1
    assert witness.entries["photo.png"].status == "failed"
    assert "the stand-in was told to fail" in page
    assert "http" not in page.replace("http-equiv", "")
    # A run that only skips says what an earlier one has found.
    assert "photo.png" in go(options)[1].skipped
    assert "&lt;b&gt;wrong.pdf" in (options.out_dir / "report.html").read_text()


def test_nothing_to_do_is_an_error(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    with pytest.raises(InputError, match="no document"):
        go(options_of(empty))
    with pytest.raises(InputError, match="does not exist"):
        go(options_of(tmp_path / "absent"))
    with pytest.raises(InputError, match="nothing matches"):
        go(options_of(tmp_path / "*.pdf", out_dir=tmp_path / "new" / "out"))
    # What was made for nothing is gone; what was there stays.
    assert sorted(tmp_path.iterdir()) == [empty]
    (tmp_path / "out").mkdir()
    with pytest.raises(InputError, match="no document"):
        go(options_of(empty))
    assert (tmp_path / "out").exists()


@pytest.fixture
def read_only(source: Path) -> Iterator[Path]:
    folder = source.parent / "locked"
    folder.mkdir(mode=0o500)
    yield folder
    folder.chmod(0o700)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_cannot_be_written(source: Path, read_only: Path) -> None:
    with pytest.raises(OutputError):
        go(options_of(source, out_dir=read_only / "out"))


def test_long_documents_are_shared_out_between_lanes(source: Path) -> None:
    (source / "long.pdf").write_bytes(pdf(100, 77))
    clean = options_of(source, out_dir=source.parent / "clean")
    go(clean)

    class Pair:
        """Two lanes as one."""

        def __init__(self, options: BatchOptions) -> None:
            self._lanes = [single_lane(options), single_lane(options)]
            self.generator, self.num_lanes = self._lanes[0].generator, 2
            self.shares: list[int] = []

        @property
        def num_assigned(self) -> int:
            return sum(lane.num_assigned for lane in self._lanes)

        @property
        def wants_more(self) -> bool:
            return any(lane.wants_more for lane in self._lanes)

        def submit(self, assignment: Any) -> None:
            min(self._lanes, key=lambda lane: lane.num_assigned).submit(assignment)
            self.shares.append(len(assignment.numbers or ()))

        def poll(self, wait_s: float) -> list[Any]:
            return [message for lane in self._lanes for message in lane.poll(0.01)]

        def close(self) -> None:
            for lane in self._lanes:
                lane.close()

    options, pairs = options_of(source), []

    def open_pair(options: BatchOptions) -> Any:
        pairs.append(Pair(options))
        return pairs[0]

    witness = Witness()
    run_batch(options, witness, open_lanes=open_pair)
    assert sorted(pairs[0].shares)[-7:] == [4, *[16] * 6]
    assert results(options) == results(clean)
    assert len(witness.pages) == len(set(witness.pages)) == 115


def test_a_piece_that_no_lane_can_open_fails_alone(source: Path) -> None:
    (source / "long.pdf").write_bytes(pdf(40, 77))

    class Refusing:
        """A lane of two that gives one piece up."""

        def __init__(self, options: BatchOptions) -> None:
            self._lane, self._refused = single_lane(options), list[Refused]()
            self.generator, self.num_lanes = self._lane.generator, 2

        @property
        def num_assigned(self) -> int:
            return self._lane.num_assigned + len(self._refused)

        @property
        def wants_more(self) -> bool:
            return self._lane.wants_more

        def submit(self, assignment: Any) -> None:
            if assignment.numbers and assignment.numbers[0] == 17:
                self._refused.append(Refused(assignment.key, "crash", "it ended 3 processes"))
            else:
                self._lane.submit(assignment)

        def poll(self, wait_s: float) -> list[Any]:
            refused, self._refused = self._refused, []
            return [*refused, *self._lane.poll(0.01)]

        def close(self) -> None:
            self._lane.close()

    options, witness = options_of(source), Witness()
    assert run_batch(options, witness, open_lanes=Refusing)[0] == ExitCode.PARTIAL
    assert witness.entries["long.pdf"].status == "partial"
    text = results(options)["long.pdf.md"].decode()
    for number in range(1, 41):
        failed = f"page {number}: failed: it ended 3 processes" in text
        assert failed == (17 <= number <= 32)
