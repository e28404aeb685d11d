"""Flags before variables, and where a password comes from."""

import os
from pathlib import Path

import pytest

from ocria.cli.arguments import find_password
from ocria.errors import InputError

from .conftest import Run, Script


@pytest.mark.parametrize(
    ("flag", "variable", "is_quiet"),
    [("-v", "OCRIA_QUIET", False), ("-q", "OCRIA_VERBOSE", True)],
)
def test_a_flag_outranks_the_variable_of_its_opposite(
    run: Run, script: Script, flag: str, variable: str, is_quiet: bool
) -> None:
    done = run("parse", script({"text": "x"}), flag, env={variable: "1"})
    assert (done.returncode, done.stdout) == (0, "x\n")
    assert (done.stderr == "") is is_quiet


def test_two_variables_that_exclude_each_other(run: Run, script: Script) -> None:
    variables = {"OCRIA_QUIET": "1", "OCRIA_VERBOSE": "1"}
    done = run("parse", script({"text": "x"}), env=variables)
    assert done.returncode == 2
    assert "OCRIA_VERBOSE and OCRIA_QUIET exclude each other" in done.stderr


@pytest.mark.parametrize("content", [b"\xef\xbb\xbfsesame", b"sesame\r\nmore", b"sesame\n"])
def test_a_password_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes) -> None:
    monkeypatch.setenv("OCRIA_PASSWORD", "another")
    (tmp_path / "word").write_bytes(content)
    assert find_password(tmp_path / "word") == "sesame"


@pytest.mark.parametrize("content", [b"", b"\nsesame\n", b"\xef\xbb\xbf"])
def test_a_password_file_without_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, content: bytes
) -> None:
    monkeypatch.setenv("OCRIA_PASSWORD", "another")
    (tmp_path / "word").write_bytes(content)
    with pytest.raises(InputError, match="no password on its first line"):
        find_password(tmp_path / "word")


def test_a_password_variable_that_is_not_utf8(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OCRIA_PASSWORD", os.fsdecode(b"\xe9"))
    with pytest.raises(InputError, match="OCRIA_PASSWORD is not UTF-8"):
        find_password(None)
