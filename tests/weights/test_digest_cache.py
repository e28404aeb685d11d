"""Digests that are remembered, and when memory does not count."""

import hashlib
import os
from pathlib import Path

import pytest

from ocria.weights import digest_cache


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(digest_cache, "LARGE_BYTES", 10)
    return tmp_path / "home"


def counted(monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    read: list[Path] = []
    original = digest_cache._read
    monkeypatch.setattr(digest_cache, "_read", lambda path: read.append(path) or original(path))
    return read


def test_a_large_file_is_read_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    file = tmp_path / "weights"
    file.write_bytes(b"0123456789ab")
    expected = hashlib.sha256(b"0123456789ab").hexdigest()
    assert [digest_cache.sha256_of(file) for _ in range(3)] == [expected] * 3
    assert len(read) == 1


def test_a_changed_file_is_read_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = counted(monkeypatch)
    file = tmp_path / "weights"
    file.write_bytes(b"0123456789ab")
    digest_cache.sha256_of(file)
    file.write_bytes(b"0123456789AB")
    os.utime(file, ns=(1, 1))
    assert digest_cache.sha256_of(file) == hashlib.sha256(b"0123456789AB").hexdigest()
    assert len(read) == 2


def test_small_files_leave_no_trace(tmp_path: Path, home: Path) -> None:
    file = tmp_path / "config.json"
    file.write_bytes(b"{}")
    assert digest_cache.sha256_of(file) == hashlib.sha256(b"{}").hexdigest()
    assert not home.exists()


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 3}'])
def test_a_damaged_memory_is_made_anew(tmp_path: Path, content: str) -> None:
    memory = digest_cache.memory_file()
    memory.parent.mkdir(parents=True)
    memory.write_text(content)
    file = tmp_path / "weights"
    file.write_bytes(b"0123456789ab")
    assert digest_cache.sha256_of(file) == digest_cache.sha256_of(file)


def test_a_memory_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    file = tmp_path / "weights"
    file.write_bytes(b"0123456789ab")
    assert len(digest_cache.sha256_of(file)) == 64


def test_the_hub_s_cache_names_files_by_their_digest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = counted(monkeypatch)
    digest = "ab" * 32
    blob = tmp_path / "blobs" / digest
    blob.parent.mkdir()
    blob.write_bytes(b"0123456789ab")
    link = tmp_path / "model.safetensors"
    link.symlink_to(blob)
    assert digest_cache.sha256_of(link) == digest and read == []
