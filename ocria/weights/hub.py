"""Fetches checkpoints from the Hugging Face hub into its local cache (`hub_cache`).

The hub's library (extra `hub`) is imported only for that. A large file goes on where an interrupted
fetch left it.
"""

import logging
import os
import re
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ocria.errors import WeightsError
from ocria.weights.hub_cache import (
    NEEDED,
    HubId,
    Needed,
    cache_folder,
    cached_snapshot,
    missing_files,
    repo_folder,
)
from ocria.weights.transfer import transfer

NOTICE = 25
"""Level of messages that a person sees without `-v`; `ocria.console.logs` words them."""
DEADLINE_S = 2.5
"""Longest wait for the hub's first answer. Resolving a name alone can hang for longer."""
_WANTED = re.compile(r"[^/]+\.(?:json|safetensors|jinja)|instruction\.txt")
_LINE_EVERY_S = 5.0
_LARGE_BYTES = 8 << 20
_LOGGER = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class _File:
    name: str
    num_bytes: int


def fetch(hub_id: HubId, needed: Needed = NEEDED, *, may_fetch: bool = True) -> Path:
    """The folder of a checkpoint, from the cache or else from the hub.

    Args:
        hub_id: which.
        needed: files that it must hold beside its weights.
        may_fetch: the hub may be asked.

    Raises:
        WeightsError: it is in neither, or the hub cannot be reached; within `DEADLINE_S` and the
            time that the library takes to import.
    """
    found = cached_snapshot(hub_id, needed)
    if found is not None:
        return found
    if not may_fetch:
        raise _absent(hub_id, "`ocria parse` would fetch it")
    library = _import_library(hub_id)
    commit, files = _listing(library, hub_id)
    total = sum(file.num_bytes for file in files)
    _LOGGER.log(NOTICE, "fetching %s from the hub: %s", hub_id.repo, _gigabytes(total))
    arrived = _Arrived(hub_id.repo, total)
    for file in files:
        _fetch_file(library, hub_id, commit, file, arrived)
    _remember(hub_id, commit)
    snapshot = repo_folder(hub_id) / "snapshots" / commit
    lacking = missing_files(snapshot, needed)
    if lacking:
        raise WeightsError(
            f"{hub_id.repo} on the hub is no checkpoint that can be used: it lacks "
            f"{', '.join(lacking)}",
            hint="only safetensors are loaded; look for a repository that has them",
        )
    _LOGGER.log(NOTICE, "fetched %s, revision %s", hub_id.repo, commit)
    return snapshot


class _Arrived:
    """Bytes that have come, told every few seconds."""

    def __init__(self, repo: str, total: int) -> None:
        self._repo, self._total = repo, total
        self._count = 0
        self._told_s = time.monotonic()
        self._lock = threading.Lock()

    def add(self, num_bytes: int) -> None:
        with self._lock:
            self._count += num_bytes
            now_s = time.monotonic()
            if now_s - self._told_s < _LINE_EVERY_S:
                return
            self._told_s = now_s
        share = 100 * self._count / max(self._total, 1)
        _LOGGER.log(NOTICE, "fetching %s: %.0f %%", self._repo, min(share, 100))


def _import_library(hub_id: HubId) -> Any:
    if any(os.environ.get(v, "").lower() in ("1", "true", "yes", "on") for v in _OFFLINE):
        raise _absent(hub_id, "the hub is switched off by HF_HUB_OFFLINE")
    try:
        import huggingface_hub
    except ImportError as error:
        raise _absent(
            hub_id, "fetching needs huggingface_hub: `pip install 'ocria[hub]'`"
        ) from error
    return huggingface_hub


_OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE")


def _listing(library: Any, hub_id: HubId) -> tuple[str, list[_File]]:
    """Commit and wanted files of a repository."""
    api = library.HfApi(endpoint=os.environ.get("HF_ENDPOINT") or None)

    def ask() -> Any:
        return api.model_info(
            hub_id.repo, revision=hub_id.revision, timeout=DEADLINE_S, files_metadata=True
        )

    try:
        info = _within(DEADLINE_S, ask)
    except Exception as error:  # whatever its network stack raises; the cause is printed
        raise _absent(hub_id, _reason(error)) from error
    files = [
        _File(name=entry.rfilename, num_bytes=entry.size or 0)
        for entry in info.siblings or ()
        if _WANTED.fullmatch(entry.rfilename)
    ]
    # Small files first: a wrong repository shows before gigabytes have come.
    return info.sha, sorted(files, key=lambda file: file.num_bytes)


def _within(seconds: float, ask: Callable[[], Any]) -> Any:
    """`ask`'s answer, or TimeoutError; the thread is left behind if it hangs in a system call."""
    box: list[tuple[bool, Any]] = []

    def run() -> None:
        try:
            box.append((True, ask()))
        except Exception as error:  # handed over to the caller's thread
            box.append((False, error))

    thread = threading.Thread(target=run, daemon=True, name="hub")
    thread.start()
    thread.join(seconds)
    if not box:
        raise TimeoutError(f"no answer within {seconds:g} s")
    good, value = box[0]
    if good:
        return value
    raise value


def _fetch_file(library: Any, hub_id: HubId, commit: str, file: _File, arrived: _Arrived) -> None:
    endpoint = os.environ.get("HF_ENDPOINT") or None
    try:
        if file.num_bytes >= _LARGE_BYTES:
            _fetch_large(library, hub_id, commit, file, endpoint, arrived)
        else:
            arrived.add(file.num_bytes)
        # Finds a file that has come, and gives it its name in the snapshot.
        library.hf_hub_download(
            hub_id.repo,
            file.name,
            revision=commit,
            cache_dir=cache_folder(),
            endpoint=endpoint,
            etag_timeout=DEADLINE_S,
            tqdm_class=_silent_bar(),
        )
    except Exception as error:  # whatever its network stack raises; the cause is printed
        raise WeightsError(
            f"fetching {file.name} of {hub_id.repo} stopped: {_reason(error)}",
            hint="run the command again: it goes on where it stopped",
        ) from error


def _fetch_large(
    library: Any, hub_id: HubId, commit: str, file: _File, endpoint: str | None, arrived: _Arrived
) -> None:
    """A file into the cache's blobs, where the library looks before it fetches itself."""
    from huggingface_hub.utils import build_hf_headers

    url = library.hf_hub_url(hub_id.repo, file.name, revision=commit, endpoint=endpoint)
    found = library.get_hf_file_metadata(url, timeout=DEADLINE_S)
    target = repo_folder(hub_id) / "blobs" / found.etag
    if target.is_file():
        arrived.add(file.num_bytes)
        return
    # A login is for the hub alone, not for the store that it points to.
    here = urlsplit(found.location).netloc == urlsplit(url).netloc
    headers = build_hf_headers() if here else {}
    transfer(
        found.location,
        target,
        num_bytes=found.size or file.num_bytes,
        digest=found.etag,
        headers=headers,
        on_bytes=arrived.add,
    )


def _silent_bar() -> Any:
    from tqdm import tqdm

    class Bar(tqdm):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            options.pop("name", None)
            super().__init__(*arguments, **{**options, "disable": True})

    return Bar


def _remember(hub_id: HubId, commit: str) -> None:
    """Notes which commit a branch was, as the library does when it is given the branch."""
    reference = repo_folder(hub_id) / "refs" / hub_id.revision
    if hub_id.revision != commit:
        reference.parent.mkdir(parents=True, exist_ok=True)
        reference.write_text(commit)


def _reason(error: Exception) -> str:
    kind = type(error).__name__
    known = {
        "RepositoryNotFoundError": "the hub has no such repository, or it needs a login",
        "RevisionNotFoundError": "the hub has no such revision",
        "GatedRepoError": "its licence must be accepted on its page first, then `hf auth login`",
    }
    first = str(error).strip().split("\n")[0]
    return known.get(kind, f"the hub cannot be reached ({first or kind})")


def _absent(hub_id: HubId, why: str) -> WeightsError:
    names = ", ".join(" or ".join(names) for names in NEEDED)
    return WeightsError(
        f"model `{hub_id.repo}` is not on this machine; {why}",
        hint=f"looked for {names} and *.safetensors in {repo_folder(hub_id)}; fetch the "
        "repository where there is a network and give its folder as `--model DIR`",
    )


def _gigabytes(num_bytes: int) -> str:
    return f"{num_bytes / 1e9:.1f} GB"
