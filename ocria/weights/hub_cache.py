"""The local cache of the Hugging Face hub: ids, places, and which checkpoints are whole in it.

Neither the network nor the hub's library is needed for any of this.
"""

import hashlib
import os
import re
from dataclasses import dataclass
from pathlib import Path

from ocria.errors import WeightsError
from ocria.weights.manifest import Problem
from ocria.weights.shards import SINGLE_FILE, shard_names

Needed = tuple[tuple[str, ...], ...]
NEEDED: Needed = (
    ("config.json",),
    ("tokenizer.json",),
    ("preprocessor_config.json", "processor_config.json"),
)
"""Files beside the weights; one name of each line must be there."""
DRAFTER_FILES: Needed = (("config.json",),)
"""The same of a drafter, which has no tokenizer of its own."""


_HUB_ID = re.compile(r"(?P<repo>[\w.-]+/[\w.-]+?)(?:@(?P<revision>[\w./-]+))?")
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True, slots=True)
class HubId:
    """`owner/name`, perhaps with `@revision`."""

    repo: str
    revision: str = "main"


def parse_hub_id(name: str) -> HubId | None:
    """`name` as an id of the hub, or None if it cannot be one."""
    match = _HUB_ID.fullmatch(name)
    if match is None or match["repo"].startswith((".", "-")) or ".." in name:
        return None
    return HubId(repo=match["repo"], revision=match["revision"] or "main")


def cache_folder() -> Path:
    """Where the hub's library keeps what it fetched, by the variables that it reads."""
    for variable in ("HF_HUB_CACHE", "HUGGINGFACE_HUB_CACHE"):
        if os.environ.get(variable):
            return Path(os.environ[variable]).expanduser()
    base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    home = os.environ.get("HF_HOME") or f"{base}/huggingface"
    return Path(home).expanduser() / "hub"


def repo_folder(hub_id: HubId) -> Path:
    """Where the cache keeps a repository."""
    return cache_folder() / ("models--" + hub_id.repo.replace("/", "--"))


def cached_snapshot(hub_id: HubId, needed: Needed = NEEDED) -> Path | None:
    """The folder of a checkpoint that lies in the cache whole, or None."""
    folder = repo_folder(hub_id)
    reference = folder / "refs" / hub_id.revision
    commit = reference.read_text().strip() if reference.is_file() else hub_id.revision
    snapshot = folder / "snapshots" / commit
    return snapshot if snapshot.is_dir() and not missing_files(snapshot, needed) else None


def name_of(folder: Path) -> str:
    """What to call a checkpoint folder: its own name, or its id in the hub's cache."""
    repo = folder.absolute().parent.parent
    if folder.absolute().parent.name == "snapshots" and repo.name.startswith("models--"):
        return repo.name.removeprefix("models--").replace("--", "/")
    return folder.resolve().name


def missing_files(folder: Path, needed: Needed = NEEDED) -> tuple[str, ...]:
    """What a checkpoint folder lacks, as names; empty for a whole one."""
    lacking = [
        " or ".join(names)
        for names in needed
        if not any((folder / name).is_file() for name in names)
    ]
    try:
        shard_names(folder)
    except WeightsError as error:
        named = str(error).partition(": ")[2]
        lacking.append(named or SINGLE_FILE)
    return tuple(lacking)


def verify_snapshot(folder: Path) -> tuple[Problem, ...]:
    """Every weights file of a cached checkpoint that is not what the hub's digest says; reads all.

    The cache names large files by their SHA-256. Small ones it names by another digest: they are
    not checked.
    """
    problems = []
    for path in sorted(folder.iterdir()):
        expected = path.resolve().name
        if not path.is_file():
            problems.append(Problem(file=path.name, message="missing"))
        elif _SHA256.fullmatch(expected) and (found := _sha256(path)) != expected:
            problems.append(Problem(file=path.name, message=f"sha256 {found}, not {expected}"))
    return tuple(problems)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
