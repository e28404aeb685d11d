"""Runs the program in a process of its own, with the scripted page source of fake_program.py."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
PROGRAM = Path(__file__).with_name("fake_program.py")

Run = Callable[..., subprocess.CompletedProcess[str]]
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
    kept = {k: v for k, v in os.environ.items() if not k.startswith("OCRIA_") and k != "NO_COLOR"}
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
def run(tmp_path: Path) -> Run:
    """`run(*arguments, stdin=…, env=…, stdout=…)` gives code, stdout and stderr."""

    def start(
        *arguments: object,
        stdin: bytes = b"",
        env: dict[str, str] | None = None,
        stdout: Any = subprocess.PIPE,
    ) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, str(PROGRAM), *map(str, arguments)],
            input=stdin,
            stdout=stdout,
            stderr=subprocess.PIPE,
            env=clean_environment() | (env or {}),
            cwd=tmp_path,
            timeout=60,
            check=False,
        )
        return subprocess.CompletedProcess(
            done.args, done.returncode, (done.stdout or b"").decode(), done.stderr.decode()
        )

    return start


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
