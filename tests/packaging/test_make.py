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


def test_bench_sets_up_and_takes_the_short_form() -> None:
    done = make("--dry-run", "bench")
    assert done.returncode == 0
    assert done.stdout.splitlines()[-1] == ".venv/bin/ocria bench --quick"
