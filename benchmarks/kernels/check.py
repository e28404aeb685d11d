"""Checks the kernels, the graph runner and the drafters on a CUDA machine: equality, then speed.

    PYTHONPATH=. python3 benchmarks/kernels/check.py --out DIR

Prints a line a figure and keeps them in DIR/check.json. Sections are independent: an exception in
one is printed and the next one runs, in a new process if the device is out of order. Kernels are
compiled first, by several processes. `--device cpu` runs a little of everything by references, to
find mistakes of these scripts.
"""

import argparse
import importlib
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path

import torch
from page_files import CHECKPOINT, draw
from subject import DRY, Figures, Size, Subject

SECTIONS = (
    "tables",
    "rows",
    "references",
    "real",
    "stream",
    "published",
    "wide",
    "tilings",
    "dflash",
    "speed",
    "documents",
)
_OUT_OF_ORDER = 3
_COMPILERS = 8
_COMPILING_S = 100
_DRAWERS = 6


def main() -> int:
    """The exit status counts sections that failed."""
    arguments = _parse()
    until_s = arguments.until or time.time() + arguments.seconds
    if arguments.checkpoint:
        # Children take it from here.
        os.environ[CHECKPOINT] = str(arguments.checkpoint)
    arguments.out.mkdir(parents=True, exist_ok=True)
    if arguments.warm is not None:
        from launches import warm

        warm(Subject(torch.device(arguments.device), until_s), arguments.warm, _COMPILERS)
        return 0
    if arguments.draw is not None:
        draw(arguments.pages, arguments.draw, _DRAWERS, _most_pages(arguments))
        return 0
    if arguments.until:
        return _run(arguments, until_s)
    return _supervise(arguments, until_s)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--sections", nargs="+", choices=SECTIONS, default=SECTIONS)
    parser.add_argument("--seconds", type=float, default=160.0, help="for everything")
    parser.add_argument("--until", type=float, default=0.0, help=argparse.SUPPRESS)
    parser.add_argument("--checkpoint", type=Path, help="instead of the shipped one")
    parser.add_argument("--pages", type=Path, help="a folder of documents with an index.jsonl")
    parser.add_argument("--warm", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--draw", type=int, help=argparse.SUPPRESS)
    return parser.parse_args()


def _supervise(arguments: argparse.Namespace, until_s: float) -> int:
    """Compiles in parallel, then runs sections, going on behind one that broke the device."""
    started = time.time()
    shared = ["--out", str(arguments.out), "--device", arguments.device]
    drawing = _draw(arguments, shared) if arguments.pages else []
    if arguments.device.startswith("cuda"):
        _compile(shared, until_s)
    for process in drawing:
        _wait(process, until_s - 50)
    print(f"compiled   {time.time() - started:.1f} s", flush=True)
    sections, failed = list(arguments.sections), 0
    while sections:
        done = arguments.out / "done.txt"
        done.write_text("")
        command = [sys.executable, __file__, *shared, "--until", str(until_s)]
        status = _wait(subprocess.Popen([*command, "--sections", *sections]), until_s + 15)
        begun = done.read_text().split()
        sections = sections[max(1, len(begun)) :]
        if status == 0:
            break
        failed += 1
        if time.time() > until_s:
            print(f"not run    {' '.join(sections) or 'nothing'}: time is up", flush=True)
            break
    print(f"took       {time.time() - started:.1f} s", flush=True)
    return failed


def _draw(arguments: argparse.Namespace, shared: list[str]) -> list["subprocess.Popen[bytes]"]:
    command = [sys.executable, __file__, *shared, "--pages", str(arguments.pages), "--draw"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "CUDA_VISIBLE_DEVICES": ""}
    return [subprocess.Popen([*command, str(part)], env=environment) for part in range(_DRAWERS)]


def _most_pages(arguments: argparse.Namespace) -> int:
    return (Size() if arguments.device.startswith("cuda") else DRY).num_real


def _compile(shared: list[str], until_s: float) -> None:
    command = [sys.executable, __file__, *shared, "--until", str(until_s), "--warm"]
    # Each compiles for itself: more threads would stand in each other's way.
    environment = {**os.environ, "OMP_NUM_THREADS": "2"}
    parts = [subprocess.Popen([*command, str(part)], env=environment) for part in range(_COMPILERS)]
    last_s = min(until_s - 50, time.time() + _COMPILING_S)
    for part in parts:
        _wait(part, last_s)


def _wait(process: "subprocess.Popen[bytes]", until_s: float) -> int:
    """Its exit status; it is ended when its time is over."""
    try:
        return process.wait(timeout=max(1.0, until_s - time.time()))
    except subprocess.TimeoutExpired:
        process.kill()
        print("a process was ended: time is up", flush=True)
        return process.wait()


def _run(arguments: argparse.Namespace, until_s: float) -> int:
    """Runs sections in this process."""
    subject, failed = Subject(torch.device(arguments.device), until_s), 0
    print(f"loaded     with {subject.left_s:.0f} s left", flush=True)
    for section in arguments.sections:
        with (arguments.out / "done.txt").open("a") as done:
            done.write(f"{section}\n")
        figures = Figures(file=arguments.out / "check.json", section=section)
        started = time.perf_counter()
        try:
            importlib.import_module(section).check(subject, figures)
        except Exception as error:
            traceback.print_exc()
            figures.say("failed", f"{type(error).__name__}: {error}"[:500])
            failed += 1
            if not _is_in_order(subject):
                return _OUT_OF_ORDER
        figures.say("seconds", round(time.perf_counter() - started, 1))
    return 0 if not failed else 1


def _is_in_order(subject: Subject) -> bool:
    """An illegal access leaves a process without its device."""
    if subject.device.type != "cuda":
        return True
    try:
        torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


if __name__ == "__main__":
    sys.exit(main())
