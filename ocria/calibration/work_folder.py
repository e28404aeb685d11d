"""The folder in which a long quantisation grows: what is finished survives a kill.

It lies beside the target under a name of its own. Each part is one safetensors file that is renamed
when it is whole. A later run with the same source and options goes on behind the last one.
"""

import fcntl
import hashlib
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from safetensors import safe_open
from safetensors.torch import save_file
from torch import Tensor

from ocria.errors import OutputError
from ocria.weights import CheckpointReader

NOTES = ".notes"
_SETTINGS = f"{NOTES}/settings.json"


class WorkFolder:
    """Finished parts and notes of a quantisation, by name."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def has(self, part: str) -> bool:
        """Whether a part is finished."""
        return self.file(part).is_file()

    def file(self, part: str) -> Path:
        """Where a part is."""
        return self.path / f"{part}.safetensors"

    def save(self, part: str, tensors: Mapping[str, Tensor]) -> None:
        """Writes a part.

        Raises:
            OutputError: the disk is full, or the folder is gone.
        """
        whole = self.file(part)
        unfinished = whole.with_suffix(".unfinished")
        try:
            save_file(dict(tensors), unfinished, metadata={"format": "pt"})
            # safetensors writes files that only their owner can read.
            unfinished.chmod(0o644)
            unfinished.rename(whole)
        except OSError as error:
            raise OutputError(f"cannot write {whole}", hint="is the disk full?") from error

    def placed(self) -> dict[str, str]:
        """Tensor name to file name, of all finished parts."""
        found: dict[str, str] = {}
        for path in sorted(self.path.glob("*.safetensors")):
            with safe_open(path, framework="pt", device="cpu") as file:
                found |= dict.fromkeys(file.keys(), path.name)
        return found

    def load(self, part: str) -> dict[str, Tensor]:
        """The tensors of a finished part."""
        with safe_open(self.file(part), framework="pt", device="cpu") as file:
            return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118

    def note(self, name: str, content: Any) -> None:
        """Keeps a JSON value."""
        unfinished = self.path / NOTES / f"{name}.unfinished"
        unfinished.write_text(json.dumps(content), encoding="utf-8")
        unfinished.rename(self.path / NOTES / f"{name}.json")

    def noted(self, name: str) -> Any:
        """A value kept earlier, or None."""
        path = self.path / NOTES / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


@contextmanager
def work_folder(target: Path, settings: Mapping[str, Any], *, overwrite: bool) -> Iterator[Path]:
    """The folder for `target` and `settings`; it stays if the block fails.

    Raises:
        OutputError: `target` exists and may not be replaced, another run works at it, or nothing
            can be written there.
    """
    if target.exists() and not overwrite:
        raise OutputError(
            f"the output exists already: {target}",
            hint="replace it with `--overwrite`, or name another",
        )
    path = target.parent / f".{target.name}.unfinished"
    try:
        path.mkdir(parents=True, exist_ok=True)
        lock = (target.parent / f".{target.name}.lock").open("w")
    except OSError as error:
        raise OutputError(
            f"cannot write into the folder: {target.parent}",
            hint="choose a folder that you may write to",
        ) from error
    with lock:
        try:
            # The system drops the lock with the process, however that ends.
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise OutputError(f"another process is making {target}") from error
        _start_afresh_if_other(path, json.dumps(settings, sort_keys=True, default=str))
        yield path
        Path(lock.name).unlink(missing_ok=True)


def _start_afresh_if_other(path: Path, settings: str) -> None:
    kept = path / _SETTINGS
    if not kept.is_file() or kept.read_text(encoding="utf-8") != settings:
        shutil.rmtree(path)
        kept.parent.mkdir(parents=True)
        kept.write_text(settings, encoding="utf-8")


def fingerprint(reader: CheckpointReader) -> str:
    """Tells one source from another without reading its weights: names, shapes, sizes, times."""
    digest = hashlib.sha256()
    for info in sorted(reader):
        digest.update(f"{info.name} {info.dtype} {info.shape} {info.shard}\n".encode())
    for shard in reader.shards:
        status = (reader.folder / shard).stat()
        digest.update(f"{shard} {status.st_size} {status.st_mtime_ns}\n".encode())
    return digest.hexdigest()
