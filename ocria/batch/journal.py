"""What is known of one unfinished document: its pages, as they came, one a line.

Each line ends with a checksum. A line that a crash has cut, or that a disk has lost, ends the
journal there: what stands before it is kept, what comes behind it is read again. Lines are handed
to the system at once, which is all that a killed process needs; `sync` brings them to the disk, for
a machine that loses power.
"""

import json
import os
import shutil
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from ocria.batch.page_record import from_record, to_record
from ocria.document import Page

_CHECKSUM_CHARS = 8


@dataclass(slots=True)
class Contents:
    """What a journal file holds.

    Attributes:
        header: what the pages belong to; None if there is no journal.
        offsets: where the newest line of each page begins, in bytes.
        failed: numbers of the pages that have no result.
        length: bytes that are sound.
    """

    header: Mapping[str, Any] | None = None
    offsets: dict[int, int] = field(default_factory=dict)
    failed: set[int] = field(default_factory=set)
    length: int = 0


def read_contents(path: Path) -> Contents:
    """Reads a journal up to its first unsound line; an absent one is empty."""
    contents = Contents()
    try:
        file = path.open("rb")
    except FileNotFoundError:
        return contents
    with file:
        for line in file:
            value = _decoded(line)
            if value is None:
                break
            if contents.header is None:
                contents.header = value
            else:
                _note(contents, value)
            contents.length += len(line)
    return contents


def pages_left(
    path: Path, header: Mapping[str, Any], numbers: Sequence[int], *, retry_failed: bool
) -> tuple[int, ...]:
    """Those of `numbers` that a journal does not hold for this header."""
    contents = read_contents(path)
    if contents.header != header:
        return tuple(numbers)
    known = contents.offsets.keys() - (contents.failed if retry_failed else set())
    return tuple(number for number in numbers if number not in known)


class Journal:
    """An open journal; it goes on behind the sound pages of one with the same header.

    Raises:
        OSError: it cannot be written.
    """

    def __init__(self, path: Path, header: Mapping[str, Any]) -> None:
        self._path = path
        self._images = path.with_suffix(".images")
        path.parent.mkdir(parents=True, exist_ok=True)
        contents = read_contents(path)
        self._file: BinaryIO = path.open("r+b" if path.exists() else "w+b")
        if contents.header != header:
            contents = Contents()
        self._contents = contents
        # What a crash has cut must not be joined by what comes now.
        self._file.truncate(contents.length)
        self._file.seek(contents.length)
        self.is_synced = True
        if contents.header is None:
            self._append(header)
            contents.header = header

    @property
    def numbers(self) -> set[int]:
        """Pages that it holds."""
        return set(self._contents.offsets)

    @property
    def failed(self) -> set[int]:
        """Pages that it holds as failed."""
        return set(self._contents.failed)

    def add(self, page: Page, image: bytes | None = None) -> None:
        """Appends a page; it replaces an earlier reading of the same page.

        Args:
            page: as it was read.
            image: its picture, kept beside the journal for `image`.
        """
        if image is not None:
            # Before the page itself: a page that is known has its picture.
            self._images.mkdir(exist_ok=True)
            (self._images / f"{page.number}.png").write_bytes(image)
        record = to_record(page)
        offset = self._contents.length
        self._append(record)
        self._contents.offsets[page.number] = offset
        _mark_failed(self._contents, record)

    def pages(self, numbers: Sequence[int]) -> Iterator[Page]:
        """Reads pages back, one at a time."""
        for number in numbers:
            self._file.seek(self._contents.offsets[number])
            record = _decoded(self._file.readline())
            if record is None:
                raise OSError(f"the journal has changed on disk: {self._path}")
            yield from_record(record)

    def image(self, number: int) -> bytes | None:
        """The picture of a page, if there is one."""
        try:
            return (self._images / f"{number}.png").read_bytes()
        except FileNotFoundError:
            return None

    def sync(self) -> None:
        """Brings everything to the disk."""
        os.fsync(self._file.fileno())
        self.is_synced = True

    def close(self) -> None:
        """Closes the file; may be called again."""
        self._file.close()

    def delete(self) -> None:
        """Removes the file and the pictures: the document is finished."""
        self.close()
        shutil.rmtree(self._images, ignore_errors=True)
        self._path.unlink(missing_ok=True)

    def _append(self, value: Mapping[str, Any]) -> None:
        line = _encoded(value)
        self._file.seek(self._contents.length)
        self._file.write(line)
        self._file.flush()
        self._contents.length += len(line)
        self.is_synced = False


def _encoded(value: Mapping[str, Any]) -> bytes:
    text = json.dumps(value, separators=(",", ":")).encode()
    return b"%s %08x\n" % (text, zlib.crc32(text))


def _decoded(line: bytes) -> dict[str, Any] | None:
    """The line's value, or None for a line that is not sound."""
    text, _, checksum = line.rpartition(b" ")
    if len(checksum) != _CHECKSUM_CHARS + 1 or checksum != b"%08x\n" % zlib.crc32(text):
        return None
    value = json.loads(text)
    return value if isinstance(value, dict) else None


def _note(contents: Contents, record: Mapping[str, Any]) -> None:
    contents.offsets[record["number"]] = contents.length
    _mark_failed(contents, record)


def _mark_failed(contents: Contents, record: Mapping[str, Any]) -> None:
    if record["status"] == "failed":
        contents.failed.add(record["number"])
    else:
        contents.failed.discard(record["number"])
