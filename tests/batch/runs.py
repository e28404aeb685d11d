"""What tests of batches share: a run with the stand-in model, who hears of it, what it left."""

import io
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

from stand_in import StandInReader, make_lane

from ocria.batch import BatchOptions, Entry, Figures, Troubled
from ocria.batch.lane import Lane
from ocria.batch.session import run_batch
from ocria.document import Page
from ocria.errors import ExitCode
from ocria.options import ParseOptions


class Witness:
    """Remembers what it hears."""

    def __init__(self) -> None:
        self.figures = Figures()
        self.num_ahead = 0
        self.begun: dict[str, tuple[int, int]] = {}
        self.pages: list[tuple[str, int]] = []
        self.entries: dict[str, Entry] = {}
        self.skipped: list[str] = []
        self.known_trouble: dict[str, Troubled] = {}

    def begin(self, figures: Figures) -> None:
        self.figures = figures
        self.num_ahead = figures.num_ahead

    def document_begun(self, name: str, num_pages: int, num_known: int) -> None:
        self.begun[Path(name).name] = (num_pages, num_known)

    def page_read(self, name: str, page: Page) -> None:
        self.pages.append((Path(name).name, page.number))

    def document_done(self, entry: Entry) -> None:
        self.entries[Path(entry.input).name] = entry

    def document_skipped(self, name: str) -> None:
        self.skipped.append(Path(name).name)

    def trouble_known(self, name: str, troubled: Troubled) -> None:
        self.known_trouble[Path(name).name] = troubled


def options_of(source: Path, **changes: Any) -> BatchOptions:
    options = BatchOptions(
        inputs=(str(source),),
        out_dir=source.parent / "out",
        formats=("md", "json"),
        parse=ParseOptions(model="stand-in"),
        jobs=2,
    )
    return replace(options, **changes)


def go(options: BatchOptions, *, slots: int = 4, listing: str = "") -> tuple[ExitCode, Witness]:
    def open_lane(options: BatchOptions) -> Lane:
        return make_lane(StandInReader(options.parse.model, slots), options)

    witness = Witness()
    code, _ = run_batch(options, witness, listing=io.StringIO(listing), open_lanes=open_lane)
    return code, witness


def results(options: BatchOptions) -> dict[str, bytes]:
    return {
        str(path.relative_to(options.out_dir)): path.read_bytes()
        for path in sorted(options.out_dir.rglob("*"))
        if path.suffix in (".md", ".json")
    }


def manifest(options: BatchOptions) -> dict[str, dict[str, Any]]:
    lines = (options.out_dir / "manifest.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert len({entry["output"] for entry in entries}) == len(entries), "one line a document"
    return {entry["output"]: entry for entry in entries}


def journals(options: BatchOptions) -> list[Path]:
    return list((options.out_dir / ".ocria" / "journal").glob("*"))


def single_lane(options: BatchOptions) -> Lane:
    return make_lane(StandInReader(options.parse.model), options)
