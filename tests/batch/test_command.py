"""`ocria batch` as a program, with a stand-in model."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from documents import pdf

from ocria.cli.batch_progress import Quiet

STAND_IN = [sys.executable, str(Path(__file__).parent / "stand_in.py")]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf(12, 1))
    (folder / "b.pdf").write_bytes(pdf(2, 2))
    return folder


def run(*arguments: object, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*STAND_IN, "batch", *map(str, arguments)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | variables,
    )


def test_standard_output_stays_empty_and_the_summary_is_said(source: Path) -> None:
    done = run(source, source.parent / "out", "--jobs", 1)
    assert (done.returncode, done.stdout) == (0, "")
    assert "documents   2: 2 ok" in done.stderr and "14: 14 ok" in done.stderr
    again = run(source, source.parent / "out", "--jobs", 1, "-q")
    assert (again.returncode, again.stdout, again.stderr) == (0, "", "")


def test_progress_for_programs(source: Path) -> None:
    (source / "c.pdf").write_bytes(b"%PDF-1.7 nothing")
    done = run(source, source.parent / "out", "--progress", "json", "--jobs", 1)
    assert done.returncode == 7
    events = [json.loads(line) for line in done.stderr.splitlines()]
    kinds = [event["event"] for event in events]
    assert kinds[0] == "begin" and kinds[-1] == "summary"
    assert (kinds.count("page"), kinds.count("document")) == (14, 3)
    pages = [event for event in events if event["event"] == "page"]
    assert pages[-1]["num_pages"] == 14 and pages[-1]["pages_per_second"] > 0
    assert events[-1]["documents"] == {"ok": 2, "failed": 1}


def test_what_is_passed_over_and_what_is_wrong_is_said(source: Path) -> None:
    (source / "notes.txt").write_text("mine")
    (source / "b.pdf").write_bytes(b"%PDF-1.7 nothing")
    (source / "empty.pdf").write_bytes(b"")
    said = run(source, source.parent / "out", "-v").stderr
    assert f"{source}/notes.txt is passed over" in said and "passing over 1 other file;" in said
    assert f"warning: {source}/b.pdf: the PDF cannot" in said
    assert f"warning: {source}/empty.pdf is empty" in said


def test_fail_fast_says_that_it_stopped_and_what_was_not_read(source: Path) -> None:
    (source / "0.pdf").write_bytes(b"%PDF-1.7 nothing")
    for number in range(9):
        (source / f"c{number}.pdf").write_bytes(pdf(1, 10 + number))
    out = source.parent / "out"
    done = run(source, out, "--fail-fast", "--jobs", 1, STAND_IN_DELAY="0.2")
    assert done.returncode == 7
    said = done.stderr.split("stopped     at the first failure: ")[1]
    num_unread = int(said.split(" not read")[0])
    assert num_unread >= 8 and f"{source}/0.pdf: the PDF cannot" in done.stderr
    lines = run(source, out, "--fail-fast", "--progress", "json", "--jobs", 1).stderr.splitlines()
    summary = json.loads(lines[-1])
    assert summary["event"] == "summary" and summary["stopped_at_failure"] is True
    num_done = sum(summary["documents"].values()) + summary["num_skipped"]
    assert summary["num_unread"] + num_done == summary["num_documents"] == 12
    (source / "0.pdf").unlink()
    done = run(source, out, "--fail-fast", "--progress", "json", "--jobs", 1)
    summary = json.loads(done.stderr.splitlines()[-1])
    assert (summary["stopped_at_failure"], summary["num_unread"]) == (False, 0)


def test_a_list_with_nuls(source: Path) -> None:
    command = [*STAND_IN, "batch", "-", str(source.parent / "out")]
    subprocess.run(command, input=bytes(source / "a.pdf") + b"\0", check=True, timeout=60)


def test_a_failed_page_is_named_even_when_quiet(source: Path) -> None:
    run(source, source.parent / "clean", "--jobs", 1)
    text = (source.parent / "clean" / "b.pdf.md").read_text()
    digest = text.split("page 2 shows ")[1].strip()
    done = run(source, source.parent / "out", "-q", STAND_IN_FAIL=digest)
    assert done.returncode == 7
    assert "b.pdf: page 2 failed: the stand-in was told to fail" in done.stderr


def test_what_an_earlier_run_has_left_is_named(source: Path) -> None:
    run(source, source.parent / "clean", "--jobs", 1)
    text = (source.parent / "clean" / "b.pdf.md").read_text()
    digest = text.split("page 2 shows ")[1].strip()
    out = source.parent / "out"
    run(source, out, STAND_IN_FAIL=digest)
    done = run(source, out)
    assert done.returncode == 7
    known = f"warning: {source}/b.pdf: not whole since an earlier run: page 2 failed\n"
    assert known in done.stderr and "2 done before, 1 of these not whole" in done.stderr
    assert done.stderr.count("hint: --retry-failed") == 1
    assert run(source, out, "-q").stderr == known
    done = run(source, out, "--progress", "json")
    events = [json.loads(line) for line in done.stderr.splitlines()]
    (trouble,) = [event for event in events if event["event"] == "known_trouble"]
    assert (trouble["name"], trouble["pages"]) == (f"{source}/b.pdf", {"failed": [2]})
    assert events[-1]["num_skipped_troubled"] == 1
    done = run(source, out, "--retry-failed")
    assert done.returncode == 0 and "whole" not in done.stderr and "hint" not in done.stderr


def test_many_pages_of_an_earlier_run_are_counted(capfd: pytest.CaptureFixture[str]) -> None:
    troubled = {"failed": list(range(1, 1013)), "truncated": [1013]}
    Quiet().trouble_known("a.pdf", troubled)
    Quiet().trouble_known("old.pdf", {})
    many, old = capfd.readouterr().err.splitlines()
    assert "pages 1, 2, 3, 4, 5, 6, 7, 8, 9, 10 and 1,002 more failed, page 1013 trunc" in many
    assert old.endswith("earlier run: some pages failed or truncated")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_stopped_run_says_so_and_goes_on(source: Path, number: signal.Signals) -> None:
    out, log = source.parent / "out", source.parent / "log"
    process = subprocess.Popen(
        [*STAND_IN, "batch", str(source), str(out), "--jobs", "1"],
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"STAND_IN_DELAY": "0.2", "STAND_IN_LOG": str(log)},
    )
    deadline = time.monotonic() + 60
    while not log.exists() or len(log.read_text().splitlines()) < 4:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.02)
    process.send_signal(number)
    _, said = process.communicate(timeout=30)
    assert process.returncode == (130 if number == signal.SIGINT else 128 + number)
    assert "Traceback" not in said
    assert "stopped after 0/2 documents, " in said and "the same command goes on" in said
    assert (out / "report.html").exists()
    done = run(source, out, "--progress", "json", STAND_IN_LOG=str(log))
    assert done.returncode == 0
    lines = [line.split(" ", 1)[1] for line in log.read_text().splitlines()]
    # At most the page that was being read is read twice.
    assert len(lines) - len(set(lines)) <= 1
    summary = json.loads(done.stderr.splitlines()[-1])
    assert summary["num_resumed_pages"] >= 3


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (["in", "out", "-f", "docx"], 2, "unknown format: `docx`"),
        (["in", "out", "--jobs", "0"], 2, "--jobs must be at least 1"),
        (["in", "out", "--timeout", "0"], 2, "--timeout must be above 0"),
        (["in", "out", "--gpus", "some"], 2, "--gpus must be `all`"),
        (["absent", "out"], 3, "absent does not exist"),
        (["in/*.tiff", "out"], 3, "nothing matches"),
        (["in", "in/a.pdf"], 4, "in/a.pdf is a file"),
        (["", "out"], 2, "INPUT is empty"),
        (["in", ""], 2, "OUT_DIR is empty"),
        (["in", "out", "--pages", "5-2"], 2, "`5-2` runs backwards"),
        (["in"], 2, "Missing argument"),
    ],
)
def test_what_cannot_be_meant(
    source: Path, monkeypatch: pytest.MonkeyPatch, arguments: list[str], code: int, words: str
) -> None:
    monkeypatch.chdir(source.parent)
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (code, "")
    assert words in done.stderr and "Traceback" not in done.stderr
    assert code != 2 or not (source.parent / "out").exists()


def test_every_option_of_the_contract_is_in_the_help() -> None:
    shown = run("--help").stdout
    options = (
        "-f --recursive --no-recursive --jobs --gpus --ray --retry-failed --fail-fast --timeout "
        "--model --device --drafter --max-tokens --dpi --password-file --page-markers --furniture "
        "--stats --progress --overwrite -v -q"
    )
    assert [option for option in options.split() if option not in shown] == []


def test_the_help_loads_nothing_heavy() -> None:
    probe = (
        "from ocria.cli import main; main(['batch', '--help'])\n"
        "import sys; sys.stderr.write(' '.join(sys.modules))"
    )
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60
    )
    assert not {"torch", "numpy", "PIL", "ray", "rich"} & set(done.stderr.split())
