"""`manifest.jsonl`: one line a document, and which documents are finished."""

import json
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal, NamedTuple

from ocria.batch.identity import Identity

DocumentStatus = Literal["ok", "partial", "failed"]
Troubled = Mapping[str, Sequence[int]]
"""Numbers of pages that are not whole, ascending: of those that are `failed` and `truncated`."""
OUTPUT_EXISTS = "output_exists"
"""Error of a document whose files would replace those of others."""
NAME = "manifest.jsonl"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    """What became of a document.

    Attributes:
        input: its path as it was given.
        output: its result below the output folder, without the format's suffix.
        sha256: of its content; None if it could not be read.
        settings: digest of the settings; `model` of the model.
        status: `ok`; `partial`, some pages failed or were truncated; `failed`, no page is left, or
            there is no result at all.
        num_pages: pages of the result.
        pages: how many of them have each status.
        troubled: numbers of those that are not whole, by their status.
        num_tokens: written by the model.
        seconds: from its opening to its files, resumed pages not counted.
        error: code and message of a document that failed.
    """

    input: str
    output: str
    sha256: str | None
    settings: str
    model: str
    status: DocumentStatus
    num_pages: int = 0
    pages: Mapping[str, int] = field(default_factory=dict)
    troubled: Troubled = field(default_factory=dict)
    num_tokens: int = 0
    seconds: float = 0.0
    error: Mapping[str, str] | None = None


class _Known(NamedTuple):
    """What decides whether a document is done: short, since there may be many."""

    input: str
    sha256: str | None
    identity: Identity
    status: DocumentStatus
    has_result: bool
    troubled: Troubled


class Manifest:
    """The manifest of an output folder, open for more lines.

    A line that a crash has cut is dropped. Of several lines for one result the last one counts;
    `close` leaves that one alone.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / NAME
        self._known: dict[str, _Known] = {}
        self._num_lines = 0
        self._repair()
        for entry in self._lines():
            self._remember(entry)
        self._file = self._path.open("a", encoding="utf-8", newline="\n")

    def is_settled(self, output: str, sha256: str | None, identity: Identity) -> bool:
        """Whether the result is there, of this content, with these settings and this model."""
        known = self.known(output)
        if known is None or not known.has_result or sha256 is None:
            return False
        return (known.sha256, known.identity) == (sha256, identity)

    def known(self, output: str) -> _Known | None:
        """What is known of the document that owns an output."""
        return self._known.get(output)

    def add(self, entry: Entry) -> None:
        """Appends a line and hands it to the system."""
        line = asdict(entry)
        self._file.write(json.dumps(line) + "\n")
        self._file.flush()
        self._remember(line)

    def entries(self) -> Iterator[dict[str, Any]]:
        """The last line of every document, in their order in the file."""
        newest: dict[str, int] = {}
        for number, line in enumerate(self._lines()):
            _put(newest, line, number)
        numbers = set(newest.values())
        for number, line in enumerate(self._lines()):
            if number in numbers:
                yield line

    def sync(self) -> None:
        """Brings everything to the disk."""
        os.fsync(self._file.fileno())

    def close(self) -> None:
        """Leaves one line a document; may be called again."""
        if self._file.closed:
            return
        self.sync()
        self._file.close()
        if self._num_lines > len(self._known):
            self._compact()

    def _remember(self, line: Mapping[str, Any]) -> None:
        identity = Identity(line["settings"], line["model"])
        has_result = line["status"] != "failed" or line["num_pages"] > 0
        # Manifests of old have no such field.
        troubled = line.get("troubled", {})
        known = _Known(
            line["input"], line["sha256"], identity, line["status"], has_result, troubled
        )
        _put(self._known, line, known)
        self._num_lines += 1

    def _lines(self) -> Iterator[dict[str, Any]]:
        if self._path.exists():
            with self._path.open(encoding="utf-8") as lines:
                for line in lines:
                    yield json.loads(line)

    def _compact(self) -> None:
        part = self._path.with_name(f".{NAME}.part")
        with part.open("w", encoding="utf-8", newline="\n") as file:
            for line in self.entries():
                file.write(json.dumps(line) + "\n")
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._path)

    def _repair(self) -> None:
        """Cuts off what a crash has left of a last line."""
        if not self._path.exists():
            return
        with self._path.open("r+b") as file:
            sound = 0
            for line in file:
                if not _is_line(line):
                    break
                sound += len(line)
            file.truncate(sound)


def _put(table: dict[str, Any], line: Mapping[str, Any], value: Any) -> None:
    """Enters a value; a document that was not read does not own its output."""
    output, unread = line["output"], f"{line['output']}\0{line['input']}"
    if line["error"] and line["error"]["code"] == OUTPUT_EXISTS:
        table[unread] = value
    else:
        table.pop(unread, None)
        table[output] = value


def _is_line(line: bytes) -> bool:
    try:
        return line.endswith(b"\n") and {"output", "sha256", "settings"} <= json.loads(line).keys()
    except (ValueError, AttributeError):
        return False
