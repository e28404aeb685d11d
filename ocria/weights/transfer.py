"""One large file over HTTP, going on where an earlier run stopped, and checked by its digest.

The hub's library starts a file from its beginning in a new process (since 2.0), which is much for
one of 9 GB on a slow line.
"""

import fcntl
import hashlib
import os
import re
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import BinaryIO

_CHUNK_BYTES = 1 << 20
_TIMEOUT_S = 30.0
_SHA256 = re.compile(r"[0-9a-f]{64}")


def transfer(
    url: str,
    target: Path,
    *,
    num_bytes: int,
    digest: str,
    headers: Mapping[str, str],
    on_bytes: Callable[[int], None],
) -> None:
    """Brings `url` to `target`, by way of `target` with `.part`, which stays if this fails.

    Args:
        url: where it is.
        target: the finished file; not touched before all has come and is right.
        num_bytes: its size.
        digest: its SHA-256; another kind of tag is not checked.
        headers: sent along, such as a login.
        on_bytes: told how many bytes have come since the last call.

    Raises:
        OSError: the line broke, or another process is fetching the same file.
        ValueError: all came, and it is not what was promised; the next run begins anew.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    part = target.with_name(f"{target.name}.part")
    with part.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        done = file.tell()
        if done > num_bytes:
            file.truncate(done := 0)
        on_bytes(done)
        if done < num_bytes:
            _receive(url, file, done, headers, on_bytes)
        file.flush()
        os.fsync(file.fileno())
        size = file.tell()
        if size < num_bytes:
            raise ConnectionError(f"the line broke after {size} of {num_bytes} bytes")
        if size > num_bytes or (_SHA256.fullmatch(digest) and _digest(part) != digest):
            part.unlink()
            raise ValueError(f"{target.name} came damaged: its digest is not {digest[:12]}…")
        part.rename(target)


def _receive(
    url: str, file: BinaryIO, done: int, headers: Mapping[str, str], on_bytes: Callable[[int], None]
) -> None:
    request = urllib.request.Request(url, headers=dict(headers))
    if done:
        request.add_header("Range", f"bytes={done}-")
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S) as response:
        if done and response.status != 206:
            # A server that knows no ranges sends everything again.
            file.truncate(0)
        while chunk := response.read1(_CHUNK_BYTES):
            file.write(chunk)
            on_bytes(len(chunk))


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
