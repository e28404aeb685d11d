"""Targets of the Makefile that need no installation."""

import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def make(*targets: str) -> subprocess.CompletedProcess[str]:
    if shutil.which("make") is None or not (ROOT / "Makefile").is_file():
        pytest.skip("needs make and the checkout's Makefile")
    command = ["make", "--no-print-directory", *targets]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def test_a_bench_that_is_not_there_is_said() -> None:
    if (ROOT / "ocria" / "bench").is_dir():
        pytest.skip("the bench command is there")
    done = make("bench")
    assert done.returncode == 2
    assert done.stderr.startswith("error: this version of ocria has no bench command yet\n")
