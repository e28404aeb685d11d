"""The program with a scripted page source in place of the model: run as `python fake_program.py`.

The document is a JSON file (or standard input) such as
`{"pages": [{"text": "one"}, {"text": "two", "status": "truncated", "sleep": 0.5}]}`; what happens
before a page is chosen by its keys:

    sleep     seconds of work
    mark      a file that is created when work on the page begins
    wait      a file that must exist before the page is done
    native    text that a C library prints on descriptor 1
    interrupt true sends SIGINT to the process
    error     name of an `ocria.errors` class to raise, or "bug"
"""

import json
import os
import signal
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np

from ocria import errors
from ocria.document import Block, Generator, ModelInfo, Page, PageFailure, Source
from ocria.options import ParseOptions


@dataclass
class ParsedPage:
    page: Page
    image: np.ndarray | None


class FakeStream:
    def __init__(self, script: dict[str, Any], name: str, options: ParseOptions) -> None:
        self._script = script
        self.page_numbers = tuple(range(1, len(script["pages"]) + 1))
        self.source = Source(
            name=name, sha256="0" * 64, media_type="application/pdf", num_pages=len(script["pages"])
        )
        self.generator = Generator(
            ocria="0", model=ModelInfo(name=options.model, digest="d", precision="float32")
        )

    def __enter__(self) -> "FakeStream":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def __iter__(self) -> Iterator[ParsedPage]:
        for number, entry in enumerate(self._script["pages"], start=1):
            happen(entry)
            yield ParsedPage(page_of(number, entry), np.zeros((4, 4, 3), np.uint8))


def happen(entry: dict[str, Any]) -> None:
    if "mark" in entry:
        Path(entry["mark"]).touch()
    time.sleep(entry.get("sleep", 0))
    deadline = time.monotonic() + 60
    while "wait" in entry and not Path(entry["wait"]).exists():
        assert time.monotonic() < deadline, f"nobody made {entry['wait']}"
        time.sleep(0.01)
    if "native" in entry:
        os.write(1, entry["native"].encode())
        print("and a Python library too")
    if entry.get("interrupt"):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0.1)
    if "error" in entry:
        raise KeyError("x") if entry["error"] == "bug" else getattr(errors, entry["error"])("boom")


def page_of(number: int, entry: dict[str, Any]) -> Page:
    text, status = entry.get("text", ""), entry.get("status", "ok")
    block = Block(id=f"p{number}-b1", type="paragraph", text=text, markdown=text)
    failure = (
        PageFailure(code="page_broken", message="no page tree") if status == "failed" else None
    )
    return Page(
        number=number,
        width_pt=595.0,
        height_pt=842.0,
        status=status,
        error=failure,
        blocks=(block,) if text else (),
        num_tokens=len(text),
    )


def open_stream(source: Path | bytes, *, name: str, options: ParseOptions) -> FakeStream:
    if isinstance(source, Path) and not source.exists():
        raise errors.InputError(f"no such file: {source}", hint="check the path")
    try:
        script = json.loads(source if isinstance(source, bytes) else source.read_bytes())
    except ValueError as error:
        raise errors.InputError(f"not a document: {name}") from error
    if "fatal" in script:
        raise getattr(errors, script["fatal"])("boom", hint="do something")
    return FakeStream(script, name, options)


def pipeline() -> ModuleType:
    """What stands in for `ocria.pipeline`."""
    module = ModuleType("ocria.pipeline")
    module.open_stream = open_stream  # type: ignore[attr-defined]
    return module


if __name__ == "__main__":
    sys.modules["ocria.pipeline"] = pipeline()
    from ocria.cli import main

    sys.exit(main())
