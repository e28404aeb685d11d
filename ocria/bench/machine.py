"""What a row must say of where it was measured: device, versions, commit, load."""

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

from ocria.bench.figures import Machine
from ocria.version import __version__

ROOT = Path(__file__).resolve().parents[2]
_PACKAGES = ("torch", "triton", "transformers")


def describe(device: torch.device, dtype: torch.dtype) -> Machine:
    """The machine as it is now."""
    return Machine(
        device=device_name(device),
        dtype=str(dtype).removeprefix("torch."),
        num_threads=torch.get_num_threads(),
        versions={"ocria": __version__, "python": platform.python_version()} | _versions(),
        commit=commit(ROOT),
        load=round(os.getloadavg()[0], 2),
    )


def device_name(device: torch.device) -> str:
    """Name of the GPU, or of the CPU with the number of usable cores."""
    if device.type == "cuda":
        return str(torch.cuda.get_device_properties(device).name)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return f"{_cpu_model()}, {usable} cores, {torch.backends.cpu.get_cpu_capability()}"


def commit(root: Path) -> str | None:
    """Commit of a checkout, `-dirty` behind it when tracked files differ; None outside one."""
    if not (root / ".git").exists():
        return None
    head = _git(root, "rev-parse", "--short=12", "HEAD")
    changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    return None if head is None else head + ("-dirty" if changed else "")


def _git(root: Path, *arguments: str) -> str | None:
    command = ["git", "-C", str(root), *arguments]
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=20)
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout.strip()


def _cpu_model() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            continue
    return found
