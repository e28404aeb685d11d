"""Manifests: digests depend on every file that matters, and damage is found and named."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.errors import WeightsError
from ocria.weights import Manifest, read_manifest, verify, write_manifest
from ocria.weights.manifest import (
    DRAFTER_FOLDER,
    MANIFEST_FILE,
    check_sizes,
    digest_drafter,
    digest_files,
    digest_of_files,
)
from ocria.weights.shards import SINGLE_FILE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_file({"a": torch.arange(64.0)}, tmp_path / SINGLE_FILE)
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "README.md").write_text("words")
    write_manifest(tmp_path, manifest_of(tmp_path))
    return tmp_path


def manifest_of(folder: Path) -> Manifest:
    return Manifest(
        name="small",
        licence="Apache-2.0",
        training="nothing",
        precision="bf16",
        files=digest_files(folder),
    )


def test_a_manifest_comes_back_as_it_was(folder: Path) -> None:
    manifest = read_manifest(folder)
    assert manifest == manifest_of(folder)
    assert [file.name for file in manifest.files] == ["config.json", SINGLE_FILE]
    assert manifest.digest == digest_of_files(folder)
    assert manifest.num_bytes == 2 + (folder / SINGLE_FILE).stat().st_size
    assert verify(folder) == ()


def test_a_folder_may_have_none(tmp_path: Path) -> None:
    assert read_manifest(tmp_path) is None
    with pytest.raises(WeightsError, match=f"no {MANIFEST_FILE}"):
        verify(tmp_path)


def test_one_changed_bit_is_found(folder: Path) -> None:
    path = folder / SINGLE_FILE
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    problems = verify(folder)
    assert [problem.file for problem in problems] == [SINGLE_FILE]
    assert "sha256" in problems[0].message
    check_sizes(folder, manifest_of(folder))


def test_a_short_and_a_missing_file_are_found(folder: Path) -> None:
    manifest = manifest_of(folder)
    path = folder / SINGLE_FILE
    path.write_bytes(path.read_bytes()[:-8])
    (folder / "config.json").unlink()
    assert [problem.message for problem in verify(folder)] == [
        "missing",
        f"{manifest.files[1].num_bytes - 8} bytes, not {manifest.files[1].num_bytes}",
    ]
    with pytest.raises(WeightsError, match=r"config\.json is missing"):
        check_sizes(folder, manifest)


def test_words_about_the_model_do_not_change_its_digest(folder: Path) -> None:
    before = digest_of_files(folder)
    (folder / "README.md").write_text("other words")
    assert digest_of_files(folder) == before
    (folder / "config.json").write_text("{ }")
    assert digest_of_files(folder) != before


def test_a_drafter_is_verified_and_does_not_change_the_digest(folder: Path) -> None:
    before, inside = manifest_of(folder), folder / DRAFTER_FOLDER
    inside.mkdir()
    save_file({"b": torch.zeros(8)}, inside / SINGLE_FILE)
    (inside / "config.json").write_text("{}")
    manifest = replace(before, drafter=digest_drafter(folder))
    write_manifest(folder, manifest)
    assert read_manifest(folder) == manifest
    assert (manifest.digest, manifest.num_bytes) == (before.digest, before.num_bytes)
    assert manifest.drafter_bytes == 2 + (inside / SINGLE_FILE).stat().st_size
    assert digest_of_files(folder) == before.digest and verify(folder) == ()
    (inside / "config.json").write_text("[]")
    (inside / SINGLE_FILE).unlink()
    found = {problem.file: problem.message for problem in verify(folder)}
    assert found.keys() == {"drafter/config.json", "drafter/model.safetensors"}
    assert found["drafter/model.safetensors"] == "missing"
    check_sizes(folder, manifest)


@pytest.mark.parametrize("content", ["", "{}", '{"schema": "ocria.checkpoint/9"}', "[1]"])
def test_a_manifest_that_makes_no_sense_is_refused(folder: Path, content: str) -> None:
    (folder / MANIFEST_FILE).write_text(content)
    with pytest.raises(WeightsError, match="cannot understand the manifest"):
        read_manifest(folder)
