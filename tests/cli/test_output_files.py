"""A file appears whole, under its name, and never in place of another unless asked."""

import json
import os
from pathlib import Path

import pytest

from ocria.cli.destination import FileDestination, open_file
from ocria.errors import OutputError

from .conftest import Run, Script


@pytest.mark.parametrize("suffix", ["md", "json", "jsonl", "html"])
def test_the_suffix_sets_the_format(run: Run, script: Script, tmp_path: Path, suffix: str) -> None:
    document = script({"text": "hello"})
    assert run("parse", document, "-o", f"out.{suffix}").returncode == 0
    assert run("parse", document, "-f", suffix).stdout == (tmp_path / f"out.{suffix}").read_text()


def test_format_flag_beats_suffix_beats_variable(run: Run, script: Script, tmp_path: Path) -> None:
    document = script({"text": "hello"})
    run("parse", document, "-f", "json", "-o", "a.md")
    assert json.loads((tmp_path / "a.md").read_text())["pages"]
    run("parse", document, "-o", "b.md", env={"OCRIA_FORMAT": "json"})
    assert (tmp_path / "b.md").read_text() == "hello\n"
    done = run("parse", document, env={"OCRIA_FORMAT": "json"})
    assert json.loads(done.stdout)["pages"]


def test_a_suffix_without_a_format_is_a_usage_error(run: Run, script: Script) -> None:
    done = run("parse", script({}), "-o", "out.docx")
    assert done.returncode == 2 and "hint: say it with `-f`" in done.stderr


def test_an_existing_file_stays_without_overwrite(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "out.md").write_text("mine")
    mark = tmp_path / "worked"
    document = script({"text": "new", "mark": str(mark)})
    done = run("parse", document, "-o", "out.md")
    assert done.returncode == 4 and "--overwrite" in done.stderr
    assert (tmp_path / "out.md").read_text() == "mine"
    assert not mark.exists(), "pages were read although the result had nowhere to go"
    assert run("parse", document, "-o", "out.md", "--overwrite").returncode == 0
    assert (tmp_path / "out.md").read_text() == "new\n"


def test_a_missing_folder_is_refused_before_work(run: Run, script: Script, tmp_path: Path) -> None:
    mark = tmp_path / "worked"
    done = run("parse", script({"mark": str(mark)}), "-o", "no/such/out.md")
    assert done.returncode == 4 and "mkdir -p" in done.stderr
    assert not mark.exists()


def test_a_folder_that_cannot_be_written(run: Run, script: Script) -> None:
    # Nobody can make a file there, root included.
    done = run("parse", script({"text": "x"}), "-o", "/proc/out.md")
    assert done.returncode == 4 and "cannot write into the folder: /proc" in done.stderr


def test_a_folder_as_output(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "out.md").mkdir()
    done = run("parse", script({"text": "x"}), "-o", "out.md", "--overwrite")
    assert done.returncode == 4 and "is a folder" in done.stderr


@pytest.mark.parametrize("length", [252, 300])
def test_a_very_long_name(run: Run, script: Script, tmp_path: Path, length: int) -> None:
    mark = tmp_path / "worked"
    name = "n" * length + ".md"
    done = run("parse", script({"text": "x", "mark": str(mark)}), "-o", name)
    if length == 252:
        assert (tmp_path / name).read_text() == "x\n"
    else:
        assert done.returncode == 4 and "no file can have this name" in done.stderr
        assert not mark.exists()


def test_the_input_is_never_overwritten(run: Run, script: Script) -> None:
    document = script({"text": "x"})
    before = document.read_text()
    done = run("parse", document, "-f", "md", "-o", document, "--overwrite")
    assert done.returncode == 4 and "the output is the input" in done.stderr
    assert document.read_text() == before


def test_nothing_is_left_behind_when_the_input_is_bad(run: Run, tmp_path: Path) -> None:
    assert run("parse", "missing.pdf", "-o", "out.md").returncode == 3
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("last", [{"interrupt": True}, {"error": "DeviceError"}, {"error": "bug"}])
def test_an_early_end_keeps_finished_pages_under_another_name(
    run: Run, script: Script, tmp_path: Path, last: dict[str, object]
) -> None:
    document = script({"text": "one"}, {"text": "two"}, last)
    (tmp_path / "out.json").write_text("complete, from before")
    done = run("parse", document, "-o", "out.json", "--overwrite")
    assert done.returncode == {"DeviceError": 5, "bug": 1}.get(str(last.get("error")), 130)
    assert (tmp_path / "out.json").read_text() == "complete, from before"
    kept = json.loads((tmp_path / "out.partial.json").read_text())
    assert [page["number"] for page in kept["pages"]] == [1, 2]
    assert "kept 2 finished pages in" in done.stderr
    assert {path.name for path in tmp_path.iterdir()} == {
        "doc.pdf",
        "out.json",
        "out.partial.json",
    }


def test_a_rival_that_comes_first_is_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "out.md"
    with (
        pytest.raises(OutputError, match="exists already"),
        open_file(path, overwrite=False) as destination,
    ):
        destination.sink.write("ours")
        path.write_text("the rival's")
        destination.publish()
    assert path.read_text() == "the rival's"
    assert [entry.name for entry in tmp_path.iterdir()] == ["out.md"]


def test_no_rival_is_replaced_where_hard_links_are_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError("no hard links")

    monkeypatch.setattr(os, "link", refuse)
    path = tmp_path / "out.md"
    for expected in ("first", "first"):
        destination = FileDestination(tmp_path / f"{expected}.md", overwrite=True)
        destination.sink.write(expected)
        destination.publish()
    with open_file(path, overwrite=False) as opened:
        opened.sink.write("ours")
        opened.publish()
    assert path.read_text() == "ours"
    with pytest.raises(OutputError), open_file(tmp_path / "b.md", overwrite=False) as opened:
        (tmp_path / "b.md").write_text("the rival's")
        opened.publish()
    assert (tmp_path / "b.md").read_text() == "the rival's"


def test_the_file_has_ordinary_permissions(run: Run, script: Script, tmp_path: Path) -> None:
    run("parse", script({"text": "x"}), "-o", "out.md")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "out.md").stat().st_mode & 0o777 == 0o666 & ~mask


def test_a_link_is_written_through(run: Run, script: Script, tmp_path: Path) -> None:
    (tmp_path / "real.md").write_text("old")
    (tmp_path / "out.md").symlink_to("real.md")
    assert run("parse", script({"text": "new"}), "-o", "out.md", "--overwrite").returncode == 0
    assert (tmp_path / "out.md").is_symlink()
    assert (tmp_path / "real.md").read_text() == "new\n"


@pytest.mark.parametrize("name", ["-", "/dev/stdout"])
def test_standard_output_by_name(run: Run, script: Script, name: str) -> None:
    assert run("parse", script({"text": "x"}), "-o", name).stdout == "x\n"


def test_a_device_needs_no_overwrite(run: Run, script: Script) -> None:
    assert run("parse", script({"text": "x"}), "-f", "md", "-o", "/dev/null").returncode == 0
