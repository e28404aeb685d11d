"""Names that match a pattern, as a shell would find them, but never through a link to a folder.

The standard library's `glob` follows such links, round a loop until names are too long, and out of
the folder that was meant.
"""

import os
from collections.abc import Callable, Iterator, Sequence
from fnmatch import fnmatchcase
from glob import has_magic
from pathlib import Path


def matching(
    pattern: Path, *, recursive: bool, is_entered: Callable[[Path], bool]
) -> Iterator[Path]:
    """Paths that match, files and folders, those that cannot be listed left out; some come twice.

    Args:
        pattern: `*`, `?`, `[…]` and `**`; what begins with a dot must be named with it.
        recursive: `**` stands for any number of folders; otherwise it is a `*`.
        is_entered: whether a folder that a wildcard stands for is looked into. Links to folders
            are not; what the pattern names outright is, link or not.
    """
    root = Path(pattern.anchor)
    parts = pattern.parts[1:] if pattern.anchor else pattern.parts
    return _below(root, parts, recursive, is_entered)


def _below(
    folder: Path, parts: Sequence[str], recursive: bool, is_entered: Callable[[Path], bool]
) -> Iterator[Path]:
    part, rest = parts[0], parts[1:]
    if not has_magic(part):
        path = folder / part
        if rest:
            yield from _below(path, rest, recursive, is_entered)
        elif os.path.lexists(path):
            yield path
        return
    is_deep = recursive and part == "**"
    if is_deep and rest:
        yield from _below(folder, rest, recursive, is_entered)
    for name, is_folder in _listed(folder):
        path = folder / name
        if name.startswith(".") and not part.startswith("."):
            continue
        if not is_deep and not fnmatchcase(name, part):
            continue
        if not rest:
            yield path
        if (rest or is_deep) and is_folder and is_entered(path):
            yield from _below(path, parts if is_deep else rest, recursive, is_entered)


def _listed(folder: Path) -> list[tuple[str, bool]]:
    """Names in a folder, sorted, and whether each is a folder itself rather than a link to one."""
    try:
        with os.scandir(folder) as entries:
            return sorted((entry.name, entry.is_dir(follow_symlinks=False)) for entry in entries)
    except OSError:
        return []
