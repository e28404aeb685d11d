"""The folder where readings are kept between runs.

`DIR/<file>.md` is what people read and what `--pred` takes. Beside it `DIR/<file>.pages.jsonl`
holds a line on the engine and one line a page with its seconds, tokens and status: a run that was
stopped goes on after the last whole line.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TextIO

from ocria.errors import OutputError
from ocria.eval.predictions import FAILED, PagePrediction, Prediction, ReadBlock

MAX_NAME_BYTES = 255
"""What file systems of Linux, macOS and Windows allow."""


class PredictionError(ValueError):
    """A kept prediction that is missing or cannot be read."""


@dataclass(frozen=True, kw_only=True)
class EngineMark:
    """Who made a prediction and how; a kept one is used again only by its equal.

    `source_sha256` is of the file that was read ("" where it is not known): two data sets may
    have files of one name. `asked` are the pages that were to be read, "all" or a list; "" where
    that was not written down.
    """

    engine: str
    version: str
    dpi: int
    text_layer: bool = False
    source_sha256: str = ""
    asked: str | list[int] = field(default="", compare=False)


def asked_pages(pages: tuple[int, ...] | None) -> str | list[int]:
    """Pages of an item as a mark has them."""
    return "all" if pages is None else list(pages)


def file_sha256(path: Path) -> str:
    """Hexadecimal digest of a file; "" where it cannot be read."""
    try:
        with path.open("rb") as stream:
            return hashlib.file_digest(stream, "sha256").hexdigest()
    except OSError:
        return ""


class Journal(NamedTuple):
    """Fields of the mark as they were written, and the pages."""

    mark: dict[str, Any]
    pages: tuple[PagePrediction, ...]


def read_journal(path: Path) -> Journal:
    """What a journal holds; a last line that was cut off is left out.

    Raises PredictionError where it cannot be read or is damaged.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionError(f"{path.name} cannot be read: {error}") from error
    try:
        rows = [json.loads(line) for line in text[: text.rfind("\n") + 1].split("\n") if line]
        return Journal(dict(rows[0] if rows else {}), tuple(_page(row) for row in rows[1:]))
    except (ValueError, KeyError, TypeError) as error:
        raise PredictionError(f"{path.name} is damaged: {error!r}") from error


def written_markdown(pages: Sequence[PagePrediction]) -> bytes:
    """What the Markdown file of a whole reading holds."""
    markdown = Prediction(pages=tuple(pages)).markdown
    return f"{markdown}\n".encode(errors="replace")


class PredictionStore:
    """One engine's predictions in a folder, of one file as `mark` says."""

    def __init__(self, folder: Path, mark: EngineMark) -> None:
        self.folder = folder
        self.mark = mark

    def kept_pages(self, name: str) -> tuple[PagePrediction, ...]:
        """Pages that an equal engine has read before, but those that failed; none of another's.

        Raises PredictionError for a damaged file.
        """
        _, pages = self._kept(name)
        return tuple(page for page in pages if page.status != FAILED)

    def finished(self, name: str) -> Prediction | None:
        """The whole reading of what the mark asks for; None where any of it is still to read.

        Raises PredictionError for a damaged file.
        """
        asked, pages = self._kept(name)
        whole = pages and all(page.status != FAILED for page in pages)
        if whole and asked == self.mark.asked and (self.folder / f"{name}.md").is_file():
            return Prediction(pages=pages)
        return None

    def _kept(self, name: str) -> tuple[str | list[int], tuple[PagePrediction, ...]]:
        """What an equal engine was asked for, and the pages that it read."""
        path = self.journal(name)
        if not path.is_file():
            return "", ()
        row, pages = read_journal(path)
        try:
            mark = EngineMark(**row)
        except TypeError:
            return "", ()
        return (mark.asked, pages) if mark == self.mark else ("", ())

    def keep(
        self, name: str, kept: Sequence[PagePrediction], more: Iterator[PagePrediction]
    ) -> Prediction:
        """Write pages as they come, then the Markdown; returns all of them.

        Raises PredictionError for a name that no file can have, OutputError where none can be
        written.
        """
        reading = self.begin(name, kept)
        reading.open()
        for page in more:
            reading.add(page)
        return reading.finish()

    def begin(self, name: str, kept: Sequence[PagePrediction]) -> OpenReading:
        """A reading that will follow the pages kept before; writes nothing yet."""
        return OpenReading(self, name, kept)

    def journal(self, name: str) -> Path:
        """Raises PredictionError for a name that leads out of the folder or is too long."""
        path = self.folder / f"{name}.pages.jsonl"
        if len(os.fsencode(path.name)) > MAX_NAME_BYTES:
            raise PredictionError("the reading cannot be kept: the name is too long")
        if not path.resolve().is_relative_to(self.folder.resolve()):
            raise PredictionError("the reading cannot be kept: the name leads out of the folder")
        return path


class OpenReading:
    """A reading on its way into the store: `open`, `add` each page, `finish`.

    All raise OutputError where nothing can be written, `open` PredictionError for a name that no
    file can have. No file is held open between calls, so that many can be on their way.

    Attributes:
        pages: the pages so far, those kept before included.
    """

    def __init__(self, store: PredictionStore, name: str, kept: Sequence[PagePrediction]) -> None:
        self.pages = list(kept)
        self._store = store
        self._name = name
        self._path: Path | None = None

    def open(self) -> None:
        """Start the journal anew with the pages kept before; later calls do nothing."""
        if self._path is not None:
            return
        path = self._store.journal(self._name)
        with self._writing():
            path.parent.mkdir(parents=True, exist_ok=True)
            # It says that a reading is finished: one of an earlier reading must not stand here.
            self._markdown.unlink(missing_ok=True)
            with path.open("w", encoding="utf-8", newline="\n") as journal:
                _write_line(journal, asdict(self._store.mark))
                for page in self.pages:
                    _write_line(journal, asdict(page))
        self._path = path

    @property
    def is_open(self) -> bool:
        """Whether the journal was started."""
        return self._path is not None

    def add(self, page: PagePrediction) -> None:
        """Write a page behind those that are there."""
        assert self._path is not None, "`open` comes first"
        with self._writing(), self._path.open("a", encoding="utf-8", newline="\n") as journal:
            _write_line(journal, asdict(page))
        self.pages.append(page)

    def finish(self) -> Prediction:
        """Put the pages in order and write their Markdown, which makes the reading whole."""
        assert self._path is not None, "`open` comes first"
        prediction = Prediction(pages=tuple(sorted(self.pages, key=self._place)))
        with self._writing():
            if list(prediction.pages) != self.pages:
                rows = (asdict(self._store.mark), *map(asdict, prediction.pages))
                _write_whole(self._path, "".join(map(_line, rows)).encode(errors="replace"))
            _write_whole(self._markdown, written_markdown(prediction.pages))
        return prediction

    def _place(self, page: PagePrediction) -> int:
        """Pages read side by side end in any order; they belong in that of the asking."""
        asked = self._store.mark.asked
        return page.number if isinstance(asked, str) else asked.index(page.number)

    @property
    def _markdown(self) -> Path:
        return self._store.folder / f"{self._name}.md"

    @contextmanager
    def _writing(self) -> Iterator[None]:
        try:
            yield
        except OSError as error:
            folder = self._store.folder
            raise OutputError(
                f"the reading of {self._name} cannot be kept in {folder}: {error.strerror}",
                hint="name another folder with --work; what was read stays",
            ) from error


def _write_line(stream: TextIO, row: dict[str, Any]) -> None:
    stream.write(_line(row))
    stream.flush()


def _line(row: dict[str, Any]) -> str:
    return json.dumps(row, ensure_ascii=False) + "\n"


def _write_whole(path: Path, content: bytes) -> None:
    """Write under another name and rename: a reader never sees half a file."""
    partial = path.with_name(f"{path.name}.{os.getpid()}.partial")
    partial.write_bytes(content)
    partial.replace(path)


def _page(row: dict[str, Any]) -> PagePrediction:
    blocks = tuple(ReadBlock(**block) for block in row["blocks"])
    page = PagePrediction(**{**row, "blocks": blocks})
    counts = (page.number, page.tokens or 0, page.threads or 0, page.side_by_side)
    numbers = (*counts, page.seconds or 0, page.cpu_seconds or 0, *(b.confidence for b in blocks))
    texts = (page.markdown, page.status, *(block.text for block in blocks))
    if not all(isinstance(text, str) for text in texts) or not math.isfinite(sum(numbers)):
        raise ValueError("a value of another kind than it should be")
    return page
