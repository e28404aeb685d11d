"""Which files a command line means, and where each of their results goes.

Folders are searched for documents by content; a file that was named itself, directly, by a glob or
in a list, is taken as it is, so that one which is no document is reported rather than passed over.
"""

import os
import sys
from collections.abc import Iterator, Sequence
from glob import glob, has_magic
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple, TextIO

from ocria.errors import InputError
from ocria.rasterize import is_document

_MOST_NAME_BYTES = 255 - len(".jsonl")
_ROOT = Path("/")


class Found(NamedTuple):
    """A file to read.

    Attributes:
        path: where it is.
        output: where its result goes, relative to the output folder, without the format's suffix.
    """

    path: Path
    output: str


def discover(
    inputs: Sequence[str], out_dir: Path, *, recursive: bool = True, listing: TextIO | None = None
) -> Iterator[Found]:
    """The files of `inputs`, in the order of these and sorted within a folder, each file once.

    Results keep the path below the folder that was named: `IN/a/b.pdf` goes to `a/b.pdf`. Where
    two inputs have the same such path, the later one's goes below its folder's name.

    Raises:
        InputError: an input that does not exist, or a glob that matches nothing.
    """
    seen: set[Path] = set()
    taken: set[str] = set()
    for text in inputs:
        for root, path in _files(text, out_dir, recursive, listing):
            real = Path(os.path.realpath(path))
            if real not in seen:
                seen.add(real)
                yield Found(path, _name(path, root, taken))


def _files(
    text: str, out_dir: Path, recursive: bool, listing: TextIO | None
) -> Iterator[tuple[Path, Path]]:
    """(folder below which the path is kept, file) of one input."""
    if text == "-":
        for line in listing or sys.stdin:
            if name := line.rstrip("\r\n"):
                yield from _listed(Path(name), out_dir, recursive)
        return
    path = Path(text)
    if path.is_dir():
        yield from ((path, file) for file in _walk(path, out_dir, recursive))
    elif path.exists() or not has_magic(text):
        if not path.exists():
            raise InputError(f"{text} does not exist", hint="check the path")
        yield path.parent, path
    else:
        matches = sorted(glob(text, recursive=recursive))  # noqa: PTH207
        if not matches:
            raise InputError(f"nothing matches {text}", hint="check the pattern")
        root = _fixed_part(path)
        for match in matches:
            if Path(match).is_file():
                yield root, Path(match)


def _listed(path: Path, out_dir: Path, recursive: bool) -> Iterator[tuple[Path, Path]]:
    """A line of a list. One that is missing is reported when it is read, not now."""
    if path.is_dir():
        yield from ((path, file) for file in _walk(path, out_dir, recursive))
    else:
        yield (_ROOT if path.is_absolute() else Path()), path


def _walk(folder: Path, out_dir: Path, recursive: bool) -> Iterator[Path]:
    """Documents below a folder; hidden files and the output folder are left out."""
    output = os.path.realpath(out_dir)
    for parent, folders, files in os.walk(folder):
        folders[:] = sorted(
            name
            for name in folders
            if recursive
            and not name.startswith(".")
            and os.path.realpath(os.path.join(parent, name)) != output  # noqa: PTH118
        )
        for name in sorted(files):
            path = Path(parent, name)
            if not name.startswith(".") and path.is_file() and is_document(path):
                yield path


def _fixed_part(pattern: Path) -> Path:
    """The folders of a pattern before its first wildcard."""
    fixed = Path()
    for part in pattern.parent.parts:
        if has_magic(part):
            break
        fixed /= part
    return fixed


def _name(path: Path, root: Path, taken: set[str]) -> str:
    relative = Path(os.path.relpath(path, root))
    if ".." in relative.parts:
        relative = path.absolute().relative_to(_ROOT)
    absolute = path.absolute().relative_to(_ROOT)
    ways = chain(
        (relative, Path(root.absolute().name) / relative, absolute),
        (absolute.with_name(f"{path.stem}~{number}{path.suffix}") for number in count(2)),
    )
    name = next(name for name in map(_fitting, ways) if name not in taken)
    taken.add(name)
    return name


def _fitting(path: Path) -> str:
    """The path with a last part that leaves room for a suffix."""
    encoded = os.fsencode(path.name)
    if len(encoded) <= _MOST_NAME_BYTES:
        return str(path)
    mark = "~" + sha256(encoded).hexdigest()[:12]
    stem = encoded[: _MOST_NAME_BYTES - len(mark)].decode("utf-8", "ignore")
    return str(path.with_name(stem + mark))
