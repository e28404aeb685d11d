"""A machine on which no process can be started: no document's fault."""

import sys
from pathlib import Path

import pytest
from documents import pdf
from runs import go, manifest, options_of

from ocria.batch.process_crew import ProcessCrew
from ocria.errors import ExitCode, WorkerError


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    for number in range(3):
        (folder / f"{number}.pdf").write_bytes(pdf(1, number))
    return folder


@pytest.fixture
def interpreter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Python that may not be run."""
    path = tmp_path / "python"
    path.write_text("")
    monkeypatch.setattr(sys, "executable", str(path))
    return path


def test_it_is_one_error_and_blames_no_document(
    source: Path, interpreter: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = options_of(source)
    with pytest.raises(WorkerError) as caught:
        go(options)
    reason = f"the rasterising process cannot be started: {interpreter}: Permission denied"
    assert str(caught.value) == reason and caught.value.exit_code == ExitCode.PARTIAL
    assert manifest(options) == {}
    monkeypatch.undo()
    assert go(options)[0] == ExitCode.OK


def test_a_process_that_reads_cannot_be_started_either(source: Path, interpreter: Path) -> None:
    with pytest.raises(WorkerError, match="the reading process cannot be started"):
        ProcessCrew(options_of(source), ["cpu"], "stand_in:open_lane")
