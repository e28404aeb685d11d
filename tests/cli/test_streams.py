"""Standard output carries the result and nothing else; pages leave as they are done."""

import json
import os
import pty
import signal
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from .conftest import PROGRAM, Run, Script, Start, clean_environment, wait_for


def test_markdown_is_all_that_reaches_standard_output(spawn: Run, script: Script) -> None:
    done = spawn("parse", script({"text": "one"}, {"text": "two"}))
    assert (done.returncode, done.stdout) == (0, "one\n\ntwo\n")
    assert "doc.pdf: 2 pages, 6 tokens" in done.stderr


@pytest.mark.parametrize("to_file", [False, True])
def test_native_prints_go_to_standard_error(spawn: Run, script: Script, to_file: bool) -> None:
    where = ["-o", "out.md"] if to_file else []
    done = spawn("parse", script({"text": "one", "native": "POLLUTION\n"}), *where)
    assert done.returncode == 0
    assert done.stdout == ("" if to_file else "one\n")
    assert "POLLUTION" in done.stderr and "a Python library too" in done.stderr


def test_a_child_process_inherits_the_guard() -> None:
    code = (
        "import subprocess, sys\n"
        "from ocria.console import claim_stdout\n"
        "with claim_stdout() as sink:\n"
        "    subprocess.run([sys.executable, '-c', 'print(\"child\")'], check=True)\n"
        "    sink.write('result')\n"
        "print('after')\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "resultafter\n"
    assert done.stderr == "child\n"


@pytest.mark.parametrize(("format_", "lines"), [("md", 1), ("jsonl", 2)])
def test_a_page_leaves_before_the_next_is_read(
    start: Start, script: Script, tmp_path: Path, format_: str, lines: int
) -> None:
    go = tmp_path / "go"
    document = script({"text": "one"}, {"text": "two", "wait": str(go)})
    process = start("parse", document, "-f", format_)
    assert process.stdout is not None
    first = [process.stdout.readline() for _ in range(lines)]
    assert b"one" in first[-1]
    assert process.poll() is None
    go.touch()
    rest, _ = process.communicate(timeout=30)
    assert b"two" in rest and process.returncode == 0


def test_standard_input_and_name_of_source(spawn: Run) -> None:
    document = json.dumps({"pages": [{"text": "x"}]}).encode()
    done = spawn("parse", "-", "-f", "json", stdin=document)
    assert json.loads(done.stdout)["source"]["name"] == "-"
    lines = done.stderr.splitlines()
    assert lines[0] == "reading standard input: 1 page"
    assert lines[-1].startswith("standard input: 1 page, 1 token, ")


def test_output_is_utf8_in_any_locale(spawn: Run, script: Script) -> None:
    document = script({"text": "Thuế giá trị — 日本語"})
    done = spawn("parse", document, env={"LC_ALL": "C", "PYTHONIOENCODING": "ascii"})
    assert done.stdout == "Thuế giá trị — 日本語\n"


def test_a_file_name_that_is_not_utf8(tmp_path: Path, spawn: Run, script: Script) -> None:
    name = os.fsdecode(b"caf\xe9.pdf")
    script({"text": "x"}, name=name)
    done = spawn("parse", name, "-f", "json")
    assert done.returncode == 0
    assert json.loads(done.stdout)["source"]["name"] == "caf\N{REPLACEMENT CHARACTER}.pdf"


@pytest.mark.parametrize("num_pages", [1, 3])
def test_a_closed_pipe_ends_quietly(
    start: Start, script: Script, tmp_path: Path, num_pages: int
) -> None:
    go = tmp_path / "go"
    pages = [{"text": "x" * 9} for _ in range(num_pages)]
    process = start(
        "parse", script({"text": "first", "wait": str(go)}, *pages), "--progress", "none"
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    go.touch()
    assert process.wait(timeout=30) == 141
    assert process.stderr.read() == b""


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_into_a_closed_pipe(start: Start, option: str) -> None:
    process = start(option)
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.wait(timeout=30) in (0, 141)
    assert process.stderr.read() == b""


def test_a_full_disk_behind_standard_output(spawn: Run, script: Script) -> None:
    with Path("/dev/full").open("wb") as full:
        done = spawn("parse", script({"text": "x"}), stdout=full)
    assert done.returncode == 4
    assert "error: cannot write standard output" in done.stderr
    assert "caused by: OSError: [Errno 28]" in done.stderr


def test_standard_output_closed_from_the_start(tmp_path: Path, script: Script) -> None:
    command = f"{sys.executable} {PROGRAM} parse {script({'text': 'x'})} >&-"
    shell = partial(subprocess.run, capture_output=True, text=True, env=clean_environment())
    done = shell(["bash", "-c", command])
    assert done.returncode == 4
    assert "standard output is closed" in done.stderr
    to_file = command.replace(" >&-", f" -o {tmp_path / 'o.md'} >&-")
    done = shell(["bash", "-c", to_file])
    assert done.returncode == 0 and (tmp_path / "o.md").read_text() == "x\n"


def test_ctrl_c_keeps_the_pages_that_left(start: Start, script: Script, tmp_path: Path) -> None:
    mark = tmp_path / "second"
    document = script({"text": "one"}, {"text": "two", "mark": str(mark), "sleep": 30})
    process = start("parse", document)
    wait_for(mark)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=30)
    assert process.returncode == 130
    assert out == b"one\n"
    assert b"note: kept 1 finished page\n" in err and b"Traceback" not in err


def test_ctrl_c_leaves_valid_json(spawn: Run, script: Script) -> None:
    done = spawn("parse", script({"text": "one"}, {"interrupt": True}), "-f", "json")
    assert done.returncode == 130
    assert [page["number"] for page in json.loads(done.stdout)["pages"]] == [1]


@pytest.mark.parametrize("no_colour", [False, True])
def test_a_terminal_shows_live_progress_and_the_pipe_stays_clean(
    script: Script, no_colour: bool
) -> None:
    document = script({"text": "one"}, {"status": "failed"})
    master, terminal = pty.openpty()
    variables = {"TERM": "xterm"} | ({"NO_COLOR": "1"} if no_colour else {})
    done = subprocess.run(
        [sys.executable, str(PROGRAM), "parse", str(document)],
        stdout=subprocess.PIPE,
        stderr=terminal,
        env=clean_environment() | variables,
        check=False,
    )
    os.close(terminal)
    shown = os.read(master, 1 << 16).decode()
    os.close(master)
    assert done.returncode == 7
    assert done.stdout == b"one\n\n<!-- page 2: failed: no page tree -->\n"
    assert "2/2 pages, 3 tokens" in shown and "page 2: failed" in shown
    assert ("\x1b[1;36mwarning:" in shown) is not no_colour
    assert ("\x1b[32m" in shown) is not no_colour
