"""Which files a command line means, and where each of their results goes.

Folders are searched for documents by content; a file that was named itself, directly, by a glob or
in a list, is taken as it is, so that one which is no document is reported rather than passed over.
So is one in a folder whose suffix says that it is one.
"""

import logging
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from glob import has_magic
from hashlib import sha256
from itertools import chain, count
from pathlib import Path
from typing import NamedTuple, TextIO

from ocria.batch.pattern import matching
from ocria.errors import InputError
from ocria.rasterize import is_document

_MOST_NAME_BYTES = 255 - len(".jsonl")
_ROOT = Path("/")
_SUFFIXES = {".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp"}
_log = logging.getLogger(__name__)
_Search = Callable[[Path], Iterator[Path]]


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
) -> tuple[list[Found], int]:
    """The files of `inputs`, in the order of these and sorted within a folder, each file once.

    Results keep the path below the folder that was named: `IN/a/b.pdf` goes to `a/b.pdf`. Where
    two inputs have the same such path, the later one's goes below its folder's name. A file goes
    before links to it. Also returns the number of other files in folders.

    Raises:
        InputError: an input that does not exist, or a glob that matches nothing.
    """
    passed_over: set[str] = set()
    output = os.path.realpath(out_dir)
    walk = partial(_walk, output=output, recursive=recursive, passed_over=passed_over)
    expand = partial(
        matching, recursive=recursive, is_entered=lambda path: os.path.realpath(path) != output
    )
    chosen: dict[str, tuple[Path, Path]] = {}
    for text in inputs:
        for root, path in _files(text, walk, expand, listing):
            real = os.path.realpath(path)
            if real not in chosen or (chosen[real][1].is_symlink() and not path.is_symlink()):
                chosen[real] = (root, path)
    taken: set[str] = set()
    found = [Found(path, _name(path, root, taken)) for root, path in chosen.values()]
    return found, len(passed_over - chosen.keys())


def _files(
    text: str, walk: _Search, expand: _Search, listing: TextIO | None
) -> Iterator[tuple[Path, Path]]:
    """(folder below which the path is kept, file) of one input."""
    if text == "-":
        for name in _list(listing):
            yield from _listed(Path(name), walk)
        return
    path = Path(text)
    if path.is_dir():
        yield from ((path, file) for file in walk(path))
    elif path.exists() or not has_magic(text):
        if not path.exists():
            raise InputError(f"{text} does not exist", hint="check the path")
        yield path.parent, path
    else:
        matches = sorted(expand(path), key=str)
        if not matches:
            raise InputError(f"nothing matches {text}", hint="check the pattern")
        root = _fixed_part(path)
        for match in matches:
            if match.is_file() or _is_dangling(match):
                yield root, match


def _list(listing: TextIO | None) -> Iterator[str]:
    """Lines of a list, or what stands between its NULs."""
    text = listing.read() if listing else os.fsdecode(sys.stdin.buffer.read())
    names = text.split("\0") if "\0" in text else text.replace("\r\n", "\n").split("\n")
    return filter(None, names)


def _listed(path: Path, walk: _Search) -> Iterator[tuple[Path, Path]]:
    """A line of a list. One that is missing is reported when it is read, not now."""
    if path.is_dir():
        yield from ((path, file) for file in walk(path))
    else:
        yield (_ROOT if path.is_absolute() else Path()), path


def _walk(folder: Path, *, output: str, recursive: bool, passed_over: set[str]) -> Iterator[Path]:
    """Documents below a folder; hidden files and the output folder are left out."""
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
            if _is_meant(path):
                yield path
            else:
                _log.info("%s is passed over", path)
                passed_over.add(os.path.realpath(path))


def _is_meant(path: Path) -> bool:
    """Whether a file of a folder is a document by its content or suffix."""
    if path.name.startswith("."):
        return False
    if path.suffix.lower() in _SUFFIXES:
        return path.is_file() or _is_dangling(path)
    return path.is_file() and is_document(path)


def _is_dangling(path: Path) -> bool:
    return path.is_symlink() and not path.exists()


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
