"""Lanes in other processes: the same results, whatever happens to the processes."""

import os
import signal
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from documents import mixed_folder, pdf
from runs import Witness, go, journals, options_of, results

from ocria.batch import BatchOptions, ray_crew
from ocria.batch.process_crew import ProcessCrew
from ocria.batch.session import choose_lanes, run_batch
from ocria.document import Page
from ocria.errors import DeviceError, ExitCode, UsageError
from ocria.options import ParseOptions


@pytest.fixture
def source(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    mixed_folder(folder, 40)
    (folder / "long.pdf").write_bytes(pdf(75, 99))
    (folder / "notes.txt").write_text("no document")
    return folder


@pytest.fixture
def clean(source: Path) -> dict[str, bytes]:
    options = options_of(source, out_dir=source.parent / "clean")
    assert go(options)[0] == ExitCode.OK
    return results(options)


class Killer(Witness):
    """Ends one lane's process now and then, as the system might."""

    def __init__(self, every: int, most: int) -> None:
        super().__init__()
        self.crew: ProcessCrew | None = None
        self.num_killed = 0
        self._every, self._most = every, most

    def page_read(self, name: str, page: Page) -> None:
        super().page_read(name, page)
        if len(self.pages) % self._every == 0 and self.num_killed < self._most:
            assert self.crew is not None
            members = self.crew._members
            worker = members[self.num_killed % len(members)].handle
            os.kill(worker.process.pid, signal.SIGKILL)
            self.num_killed += 1


def run(options: BatchOptions, witness: Witness, num_lanes: int = 2) -> ExitCode:
    def open_crew(options: BatchOptions) -> Any:
        crew = ProcessCrew(options, ["cpu"] * num_lanes, "stand_in:open_lane")
        if isinstance(witness, Killer):
            witness.crew = crew
        return crew

    return run_batch(options, witness, open_lanes=open_crew)[0]


def test_two_processes_write_what_one_writes(source: Path, clean: dict[str, bytes]) -> None:
    options, witness = options_of(source), Witness()
    assert run(options, witness) == ExitCode.OK
    assert results(options) == clean and journals(options) == []
    assert len(witness.pages) == len(set(witness.pages))
    again = Witness()
    assert run(options, again) == ExitCode.OK
    assert again.pages == [] and len(again.skipped) == len(clean) // 2


def test_a_killed_lane_costs_what_it_had_in_hand(source: Path, clean: dict[str, bytes]) -> None:
    options, killer = options_of(source), Killer(every=20, most=3)
    assert run(options, killer) == ExitCode.OK
    assert killer.num_killed == 3
    assert results(options) == clean
    # Pages that had come back are not read again.
    assert len(killer.pages) == len(set(killer.pages))


def test_a_page_that_kills_every_lane_fails_alone(
    source: Path, clean: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = clean["long.pdf.md"].decode()
    monkeypatch.setenv("STAND_IN_CRASH", text.split("page 40 shows ")[1][:16])
    options, witness = options_of(source), Witness()
    assert run(options, witness) == ExitCode.PARTIAL
    found = results(options)
    assert b"page 40: failed: reading it ended 3 processes" in found["long.pdf.md"]
    assert found["long.pdf.md"].count(b"page ") == clean["long.pdf.md"].count(b"page ")
    same = {name for name in clean if found[name] == clean[name]}
    assert set(clean) - same == {"long.pdf.md", "long.pdf.json"}


def test_what_cannot_be_had_is_said(source: Path) -> None:
    with pytest.raises(UsageError, match="exclude each other"):
        choose_lanes(options_of(source, gpus=2, parse=ParseOptions(device="cpu")))
    with pytest.raises(DeviceError, match="64 GPUs were asked for"):
        choose_lanes(options_of(source, gpus=64))


def test_a_local_cluster_that_does_not_start(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def init(**_: Any) -> None:
        raise Exception("The current node timed out during startup")

    ray = SimpleNamespace(is_initialized=lambda: False, init=init)
    monkeypatch.setattr(ray_crew, "_ray", lambda: ray)
    with pytest.raises(DeviceError, match="no Ray cluster can be started here") as caught:
        choose_lanes(options_of(source, ray="local"))
    assert "less busy" in (caught.value.hint or "")
