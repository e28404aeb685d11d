"""`checkpoint.json`: name, licence, origin and digests of a checkpoint folder, and their check.

The digest of a checkpoint is the SHA-256 over one line `sha256  file name` for each file that can
change a result (weights, index, configs, tokenizer), sorted by name. A drafter changes none, so its
files are listed apart.
"""

import hashlib
import json
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from ocria.errors import WeightsError
from ocria.weights.digest_cache import sha256_of
from ocria.weights.shards import INDEX_FILE, shard_names

MANIFEST_FILE = "checkpoint.json"
DRAFTER_FOLDER = "drafter"
SCHEMA = "ocria.checkpoint/1"
SETTING_FILES = (
    "config.json",
    "generation_config.json",
    "preprocessor_config.json",
    "processor_config.json",
    "tokenizer.json",
    "chat_template.jinja",
    "chat_template.json",
    "instruction.txt",
    "hf_quant_config.json",
    INDEX_FILE,
)


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDigest:
    """Name, size and SHA-256 of one file."""

    name: str
    num_bytes: int
    sha256: str


@dataclass(frozen=True, kw_only=True, slots=True)
class Manifest:
    """What a checkpoint says of itself.

    Attributes:
        name: name for `--model`.
        licence: SPDX name of the licence of the weights.
        training: what the weights were trained on and under which licences, in plain words.
        precision: storage formats of the decoder, such as `nvfp4+fp8`.
        files: every file that can change a result.
        drafter: files of the drafter that lies in the folder, none without one.
        digest: SHA-256 over `files`, see the module's docstring.
    """

    name: str
    licence: str
    training: str
    precision: str
    files: tuple[FileDigest, ...]
    drafter: tuple[FileDigest, ...] = ()

    @property
    def digest(self) -> str:
        """Digest of the whole checkpoint."""
        return _joint_digest(self.files)

    @property
    def num_bytes(self) -> int:
        """Bytes of `files`."""
        return sum(file.num_bytes for file in self.files)

    @property
    def drafter_bytes(self) -> int:
        """Bytes of `drafter`."""
        return sum(file.num_bytes for file in self.drafter)


@dataclass(frozen=True, kw_only=True, slots=True)
class Problem:
    """One file that is not what the manifest says."""

    file: str
    message: str


def digest_files(folder: Path) -> tuple[FileDigest, ...]:
    """Digests of the files of `folder` that can change a result, sorted by name; reads them all.

    Raises:
        WeightsError: no weights, or a shard is missing.
    """
    return _digests(folder, _sha256)


def digest_drafter(folder: Path) -> tuple[FileDigest, ...]:
    """The same of the drafter in a checkpoint's folder, names with that folder's.

    Raises:
        WeightsError: there is none, or a shard is missing.
    """
    inside = digest_files(folder / DRAFTER_FOLDER)
    return tuple(replace(file, name=f"{DRAFTER_FOLDER}/{file.name}") for file in inside)


def digest_of_files(folder: Path) -> str:
    """Digest of a checkpoint that has no manifest.

    Reads it all, at about 0.4 GB/s, but for large files that are known: see `digest_cache`.
    """
    return _joint_digest(_digests(folder, sha256_of))


def read_manifest(folder: Path) -> Manifest | None:
    """The folder's manifest, or None if it has none.

    Raises:
        WeightsError: a manifest is there but cannot be understood.
    """
    path = folder / MANIFEST_FILE
    if not path.is_file():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if content["schema"] != SCHEMA:
            raise ValueError(f"schema is {content['schema']!r}, not {SCHEMA!r}")
        return Manifest(
            name=content["name"],
            licence=content["licence"],
            training=content["training"],
            precision=content["precision"],
            files=tuple(FileDigest(**file) for file in content["files"]),
            drafter=tuple(FileDigest(**file) for file in content.get("drafter", ())),
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise WeightsError(f"cannot understand the manifest: {path} ({error})") from error


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """Writes `manifest` as `folder/checkpoint.json`."""
    content = {"schema": SCHEMA, "digest": manifest.digest, **asdict(manifest)}
    text = json.dumps(content, indent=2, ensure_ascii=False) + "\n"
    (folder / MANIFEST_FILE).write_text(text, encoding="utf-8")


def verify(folder: Path) -> tuple[Problem, ...]:
    """Every listed file that is missing or changed, the drafter's too; hashes them all.

    Raises:
        WeightsError: the folder has no manifest to hold it against.
    """
    manifest = read_manifest(folder)
    if manifest is None:
        raise WeightsError(
            f"no {MANIFEST_FILE} in {folder}", hint="a folder without one cannot be verified"
        )
    checked = (_problem(folder, file) for file in manifest.files + manifest.drafter)
    return tuple(problem for problem in checked if problem is not None)


def check_sizes(folder: Path, manifest: Manifest) -> None:
    """The cheap part of `verify`, for every load: files are there and as long as they were.

    A checkpoint without its drafter reads the same, so that is not missed here.

    Raises:
        WeightsError: the first file that is not.
    """
    for file in manifest.files:
        path = folder / file.name
        size = path.stat().st_size if path.is_file() else None
        if size != file.num_bytes:
            state = "is missing" if size is None else f"has {size} bytes, not {file.num_bytes}"
            raise WeightsError(
                f"damaged checkpoint: {path} {state}",
                hint="copy the file again from where the checkpoint came from, or reinstall",
            )


def _joint_digest(files: tuple[FileDigest, ...]) -> str:
    lines = "".join(f"{file.sha256}  {file.name}\n" for file in files)
    return hashlib.sha256(lines.encode()).hexdigest()


def _problem(folder: Path, expected: FileDigest) -> Problem | None:
    path = folder / expected.name
    if not path.is_file():
        return Problem(file=expected.name, message="missing")
    found = _digest(path)
    if found.num_bytes != expected.num_bytes:
        message = f"{found.num_bytes} bytes, not {expected.num_bytes}"
        return Problem(file=expected.name, message=message)
    if found.sha256 != expected.sha256:
        return Problem(file=expected.name, message=f"sha256 {found.sha256}, not {expected.sha256}")
    return None


def _digests(folder: Path, digest: Callable[[Path], str]) -> tuple[FileDigest, ...]:
    settings = [name for name in SETTING_FILES if (folder / name).is_file()]
    names = sorted({*settings, *shard_names(folder)})
    return tuple(_digest(folder / name, digest) for name in names)


def _digest(path: Path, digest: Callable[[Path], str] | None = None) -> FileDigest:
    try:
        sha256 = (digest or _sha256)(path)
        return FileDigest(name=path.name, num_bytes=path.stat().st_size, sha256=sha256)
    except OSError as error:
        raise WeightsError(f"cannot read {path}") from error


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
