"""Standard error closed, full or gone costs no document, and lets nothing into the result."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from .conftest import PROGRAM, Script, clean_environment


def shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    """Runs `command` with `$ocria` as the program on scripted documents."""
    variables = clean_environment() | {"ocria": f"{sys.executable} {PROGRAM}"}
    return subprocess.run(
        ["bash", "-c", command],
        capture_output=True,
        text=True,
        env=variables,
        cwd=folder,
        check=False,
    )


@pytest.mark.parametrize("options", ["", "-v --stats", "--progress json --stats"])
@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full", "0<&- 2>&-"])
def test_the_result_alone_is_in_the_result(
    script: Script, tmp_path: Path, redirection: str, options: str
) -> None:
    script({"text": "one"}, {"text": "two", "status": "truncated"})
    done = shell(f"$ocria parse doc.pdf -f json {options} {redirection}", tmp_path)
    assert done.returncode == 7
    assert [page["number"] for page in json.loads(done.stdout)["pages"]] == [1, 2]
    assert done.stderr == ""


def test_native_noise_has_nowhere_to_go_when_standard_error_is_closed(
    script: Script, tmp_path: Path
) -> None:
    script({"text": "one", "native": "POLLUTION\n"})
    done = shell("$ocria parse doc.pdf 2>&-", tmp_path)
    assert (done.returncode, done.stdout) == (0, "one\n")


@pytest.mark.parametrize("redirection", ["2>&-", "2>/dev/full"])
def test_an_error_keeps_its_code_when_it_cannot_be_said(tmp_path: Path, redirection: str) -> None:
    done = shell(f"$ocria parse missing.pdf {redirection}", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    done = shell(f"$ocria {redirection}", tmp_path)
    assert (done.returncode, done.stdout) == (2, "")


def test_a_reader_of_standard_error_that_goes_away(script: Script, tmp_path: Path) -> None:
    script({"text": "one", "sleep": 0.3}, {"text": "two"})
    done = shell("set -o pipefail; { $ocria parse doc.pdf -o o.md; } 2>&1 | true", tmp_path)
    assert done.returncode == 0
    assert (tmp_path / "o.md").read_text() == "one\n\ntwo\n"


@pytest.mark.parametrize("arguments", ["--help", "parse --help", "--version", "models"])
def test_standard_output_that_is_full(tmp_path: Path, arguments: str) -> None:
    done = shell(f"$ocria {arguments} >/dev/full", tmp_path)
    assert done.returncode == 4
    assert done.stderr.startswith("error: cannot write standard output\n")
    assert "internal" not in done.stderr and "ignored" not in done.stderr


@pytest.mark.parametrize("term", ["dumb", "unknown"])
def test_a_terminal_that_cannot_redraw_gets_plain_lines(script: Script, term: str) -> None:
    document = script({"text": "one"}, {"text": "x"})
    master, terminal = pty.openpty()
    subprocess.run(
        [sys.executable, str(PROGRAM), "parse", str(document)],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=clean_environment() | {"TERM": term, "NO_COLOR": "1"},
        check=True,
    )
    os.close(terminal)
    lines = os.read(master, 1 << 16).decode().splitlines()
    os.close(master)
    assert [line.split(",")[0] for line in lines] == [
        "reading doc.pdf: 2 pages",
        "page 1 (1/2): ok",
        "page 2 (2/2): ok",
        "doc.pdf: 2 pages",
    ]
    assert "1 token," in lines[2] and "4 tokens" in lines[3]


def test_an_interrupt_while_the_program_loads(tmp_path: Path) -> None:
    # The typer that loads here takes its time, and is interrupted within it.
    slow = "import pathlib, time\npathlib.Path('loading').touch()\ntime.sleep(30)\n"
    (tmp_path / "typer.py").write_text(slow)
    environment = clean_environment()
    environment["PYTHONPATH"] = f"{tmp_path}{os.pathsep}{environment['PYTHONPATH']}"
    process = subprocess.Popen(
        [sys.executable, "-m", "ocria", "parse", "doc.pdf"],
        stderr=subprocess.PIPE,
        env=environment,
        cwd=tmp_path,
    )
    deadline = time.monotonic() + 60
    while not (tmp_path / "loading").exists() and time.monotonic() < deadline:
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=30)
    assert (process.returncode, said) == (130, b"")
