"""Where a result goes: standard output, or a file that appears whole or not at all."""

import os
import secrets
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Protocol, TextIO

from ocria.console import reporting_write_errors
from ocria.errors import OutputError

USUAL_MAX_NAME_BYTES = 255


class Destination(Protocol):
    """An open sink and what to do with it at the end."""

    @property
    def sink(self) -> TextIO:
        """Takes text; UTF-8 leaves."""
        ...

    def publish(self) -> None:
        """The result is complete."""

    def keep_partial(self) -> str | None:
        """The result ends early; returns where a reader finds it, None if it is there already."""


class StreamDestination:
    """Standard output, a pipe or a device: what was written has left."""

    def __init__(self, sink: TextIO) -> None:
        self.sink = sink

    def publish(self) -> None:
        self.sink.flush()

    def keep_partial(self) -> str | None:
        self.sink.flush()
        return None


class FileDestination:
    """A file written under a temporary name in the same folder, then renamed.

    Raises:
        OutputError: on creation, when the folder is missing or cannot be written, or when the
            file exists and may not be replaced; so that nothing is computed in vain.
    """

    def __init__(self, path: Path, *, overwrite: bool) -> None:
        # Through a link, as a shell redirection would.
        self._path = Path(os.path.realpath(path))
        self._overwrite = overwrite
        refuse_bad_target(self._path, overwrite=overwrite)
        # Independent of the target's name, which may already be as long as names can be.
        self._temporary = self._path.with_name(f".ocria-{secrets.token_hex(6)}.part")
        try:
            self.sink = self._temporary.open(
                "x", encoding="utf-8", errors="backslashreplace", newline="\n"
            )
        except OSError as error:
            raise OutputError(
                f"cannot write into the folder: {self._path.parent}",
                hint="choose a folder that you may write to",
            ) from error

    def publish(self) -> None:
        """Gives the file its name.

        Raises:
            OutputError: somebody else made a file of that name meanwhile, or the disk is full.
        """
        self._finish()
        if self._overwrite:
            self._temporary.replace(self._path)
            return
        try:
            _rename_without_replacing(self._temporary, self._path)
        except FileExistsError as error:
            raise _exists(self._path) from error

    def keep_partial(self) -> str | None:
        """Keeps what is finished as `name.partial.suffix`, since `name.suffix` means complete."""
        self._finish()
        for attempt in range(1, 1000):
            number = "" if attempt == 1 else f"-{attempt}"
            path = _partial_name(self._path, f".partial{number}")
            with suppress(FileExistsError):
                _rename_without_replacing(self._temporary, path)
                return str(path)
        return None

    def discard(self) -> None:
        """Removes the temporary file, if it still has that name."""
        with suppress(OSError):
            self.sink.close()
        self._temporary.unlink(missing_ok=True)

    def _finish(self) -> None:
        self.sink.flush()
        os.fsync(self.sink.fileno())
        self.sink.close()


@contextmanager
def open_file(path: Path, *, overwrite: bool) -> Iterator[Destination]:
    """Opens `path` for a result; a device or named pipe is written directly.

    Raises:
        OutputError: see `FileDestination`.
    """
    if _is_special(path):
        with reporting_write_errors(str(path)):
            sink = path.open("w", encoding="utf-8", errors="backslashreplace", newline="\n")
        try:
            yield StreamDestination(sink)
        finally:
            # What could not be written has been reported already by the flush that failed.
            with suppress(OSError):
                sink.close()
        return
    destination = FileDestination(path, overwrite=overwrite)
    try:
        yield destination
    finally:
        destination.discard()


def _partial_name(path: Path, mark: str) -> Path:
    """`path` with `mark` before its suffix, the stem cut where the name would become too long."""
    stem, ending = path.stem, mark + path.suffix
    max_bytes = _max_name_bytes(path.parent)
    if len(os.fsencode(ending)) >= max_bytes:
        stem, ending = path.name, mark
    while len(os.fsencode(stem + ending)) > max_bytes:
        stem = stem[:-1]
    return path.with_name(stem + ending)


def _max_name_bytes(folder: Path) -> int:
    try:
        return os.pathconf(folder, "PC_NAME_MAX")
    except (OSError, ValueError):  # a file system that does not say
        return USUAL_MAX_NAME_BYTES


def _is_special(path: Path) -> bool:
    try:
        mode = path.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def refuse_bad_target(path: Path, *, overwrite: bool, example: str = "result.md") -> None:
    """Raises OutputError where no file can be made at `path`; `example` is a name for a hint."""
    try:
        exists, is_folder, has_folder = path.exists(), path.is_dir(), path.parent.is_dir()
    except OSError as error:
        raise OutputError(
            f"no file can have this name: {path.name}", hint="choose a shorter one"
        ) from error
    if not has_folder:
        raise OutputError(
            f"the output folder does not exist: {path.parent}",
            hint=f"make it first: mkdir -p '{path.parent}'",
        )
    if is_folder:
        raise OutputError(
            f"the output is a folder: {path}", hint=f"name a file in it: {path / example}"
        )
    if exists and not overwrite:
        raise _exists(path)


def _exists(path: Path) -> OutputError:
    return OutputError(
        f"the output exists already: {path}", hint="replace it with `--overwrite`, or name another"
    )


def _rename_without_replacing(source: Path, target: Path) -> None:
    """Renames unless `target` exists, without a moment in which it could be overwritten.

    Raises:
        FileExistsError: `target` exists.
    """
    try:
        os.link(source, target)
    except FileExistsError:
        raise
    except OSError:
        # No hard links here (FAT, some network file systems): take the name first.
        os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
        source.replace(target)
        return
    source.unlink()
