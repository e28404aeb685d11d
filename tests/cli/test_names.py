"""File names: hostile, long, or for the standard streams."""

import json
import os
from pathlib import Path

import pytest

from .conftest import Run, Script

HOSTILE = "e\x1b[31m\nerror: forged\u202e\x9b.pdf"
SHOWN = "e\\x1b[31m\\nerror: forged\\u202e\\x9b.pdf"


@pytest.mark.parametrize("output", [[], ["-o", "o\x1b\nwarning: x.md"]])
def test_a_name_neither_steers_the_terminal_nor_forges_a_line(
    run: Run, script: Script, output: list[str]
) -> None:
    script({"text": "x", "status": "truncated"}, name=HOSTILE)
    done = run("parse", HOSTILE, *output)
    lines = done.stderr.splitlines()
    assert [line.split(SHOWN)[0] for line in lines if SHOWN in line] == ["reading ", ""]
    assert len(lines) == 4 and all(line.isprintable() for line in lines)


def test_neither_tracebacks_nor_tables_steer_the_terminal(run_real: Run) -> None:
    done = run_real("parse", "a\x1b[31m.pdf", "-v")
    assert "Traceback" in done.stderr and done.stderr.replace("\n", "").isprintable()
    done = run_real("doctor", "--model", "a\x1b[31m", "-v")
    assert "a\\x1b[31m" in done.stdout
    assert (done.stdout + done.stderr).replace("\n", "").isprintable()


def test_an_error_shows_the_name_on_one_line(run_real: Run) -> None:
    done = run_real("parse", "a\nerror: b.pdf")
    assert done.returncode == 3
    assert done.stderr.startswith("error: a\\nerror: b.pdf does not exist\n\nhint: ")


@pytest.mark.parametrize("format_", ["json", "jsonl"])
def test_json_has_the_name_as_it_is_and_escapes_it(run: Run, script: Script, format_: str) -> None:
    name = HOSTILE.replace("\x9b", "\x9b\x7f  b ")
    script({"text": "x"}, name=name)
    done = run("parse", name, "-f", format_, "--progress", "json")
    head = done.stdout if format_ == "json" else done.stdout.splitlines()[0]
    assert json.loads(head)["source"]["name"] == name
    assert done.stdout.replace("\n", "").isprintable()
    assert json.loads(done.stderr.splitlines()[0])["name"] == name
    assert done.stderr.replace("\n", "").isprintable()


@pytest.mark.parametrize(
    "name", ["n" * 252 + ".md", "é" * 126 + ".md", "n." + "m" * 253], ids=["ascii", "é", "suffix"]
)
def test_pages_of_a_file_with_the_longest_name_are_kept(
    run: Run, script: Script, tmp_path: Path, name: str
) -> None:
    assert len(os.fsencode(name)) == 255
    document = script({"text": "one"}, {"interrupt": True})
    done = run("parse", document, "-f", "md", "-o", name)
    assert done.returncode == 130
    (kept,) = [path for path in tmp_path.iterdir() if path != document]
    assert ".partial" in kept.name and kept.read_text() == "one\n"


@pytest.mark.parametrize("name", ["/dev/fd/1", "/proc/self/fd/1"])
def test_standard_output_by_its_descriptor(run: Run, script: Script, name: str) -> None:
    assert run("parse", script({"text": "x"}), "-o", name).stdout == "x\n"


def test_a_device_that_is_full(run: Run, script: Script) -> None:
    done = run("parse", script({"text": "x"}), "-f", "md", "-o", "/dev/full")
    assert done.returncode == 4 and "error: cannot write /dev/full" in done.stderr


@pytest.mark.parametrize(
    ("output", "code", "words"),
    [
        ("/", 4, "the output is a folder: /"),
        (".", 4, "the output is a folder: ."),
        ("new/", 4, "the output is a folder: new/"),
        ("", 2, "-o is empty"),
        ("out", 2, "the output out has no suffix to tell the format"),
    ],
)
def test_an_output_that_is_no_file_name(
    run: Run, script: Script, output: str, code: int, words: str
) -> None:
    done = run("parse", script({"text": "x"}), "-o", output)
    assert done.returncode == code and done.stderr.startswith(f"error: {words}\n")


@pytest.mark.parametrize(
    ("document", "code", "words"),
    [
        (".", 3, ". is a folder"),
        ("/", 3, "/ is a folder"),
        ("", 2, "INPUT is empty"),
        ("n" * 300, 3, f"{'n' * 300} cannot be read: File name too long"),
    ],
    ids=["here", "root", "empty", "long"],
)
def test_an_input_that_is_no_file_name(run_real: Run, document: str, code: int, words: str) -> None:
    done = run_real("parse", document)
    assert done.returncode == code and done.stderr.startswith(f"error: {words}\n")
    assert "ocria batch" not in done.stderr
