"""Runs the program, with the scripted page source of fake_program.py or as it is.

`run` stays in this process, which is quick and enough for codes and words; `spawn` and `start`
make a process of its own, for what concerns descriptors and signals.
"""

import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from ocria.cli import main

from . import fake_program

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("fake_program.py")


@dataclass(frozen=True)
class Done:
    """How a run ended."""

    returncode: int
    stdout: str
    stderr: str


Run = Callable[..., Done]
Script = Callable[..., Path]
Start = Callable[..., subprocess.Popen[bytes]]


@pytest.fixture
def script(tmp_path: Path) -> Script:
    """Writes a scripted document; each page is a dict of fake_program.py."""

    def write(*pages: dict[str, Any], name: str = "doc.pdf", **more: Any) -> Path:
        path = tmp_path / name
        path.write_text(json.dumps({"pages": pages, **more}))
        return path

    return write


def clean_environment() -> dict[str, str]:
    # Unbuffered streams would hide what a buffer leaks later.
    unwanted = {"NO_COLOR", "PYTHONUNBUFFERED"}
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("OCRIA_") and name not in unwanted
    }
    # The tests also run from a checkout that is not installed.
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    return kept | {"OMP_NUM_THREADS": "1", "PYTHONPATH": path}


def wait_for(path: Path) -> None:
    """Returns once the program has made `path`."""
    deadline = time.monotonic() + 60
    while not path.exists():
        assert time.monotonic() < deadline, f"nobody made {path}"
        time.sleep(0.01)


@pytest.fixture
def run_real(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Run:
    """`run_real(*arguments, stdin=…, env=…)`: the program as it is, here and in tmp_path."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("OCRIA_")]:
        monkeypatch.delenv(name)

    def go(*arguments: object, stdin: bytes = b"", env: dict[str, str] | None = None) -> Done:
        capfd.readouterr()
        with monkeypatch.context() as patch:
            for name, value in (env or {}).items():
                patch.setenv(name, value)
            patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
            code = main([str(argument) for argument in arguments])
        return Done(code, *capfd.readouterr())

    return go


@pytest.fixture
def run(run_real: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `run_real`, on scripted documents."""
    monkeypatch.setitem(sys.modules, "ocria.pipeline", fake_program.pipeline())
    return run_real


@pytest.fixture
def spawn(tmp_path: Path) -> Run:
    """`spawn(*arguments, stdin=…, env=…, stdout=…)`: scripted documents, a process of its own."""

    def go(
        *arguments: object,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        stdout: Any = subprocess.PIPE,
    ) -> Done:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *map(str, arguments)],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=clean_environment() | (env or {}),
            cwd=tmp_path,
            timeout=120,
            check=False,
        )
        return Done(done.returncode, (done.stdout or b"").decode(), done.stderr.decode())

    return go


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts the program and returns the process, its three streams as pipes."""
    started: list[subprocess.Popen[bytes]] = []

    def launch(*arguments: object) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            [sys.executable, str(PROGRAM), *map(str, arguments)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=clean_environment(),
            cwd=tmp_path,
        )
        started.append(process)
        return process

    yield launch
    for process in started:
        process.kill()
        process.wait()
        for pipe in (process.stdin, process.stdout, process.stderr):
            assert pipe is not None
            pipe.close()
