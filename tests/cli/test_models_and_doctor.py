"""`ocria models` and `ocria doctor` on small folders that stand in for checkpoints."""

import hashlib
import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.cli import main
from ocria.cli.machine import _drafter
from ocria.models.finding import SHIPPED
from ocria.weights import Manifest, write_manifest
from ocria.weights.manifest import digest_files

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def checkpoint(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "checkpoints" / "ocria-nano"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text("{}")
    save_file({"w": torch.zeros(64)}, folder / "model.safetensors")
    manifest = Manifest(
        name="ocria-nano",
        licence="Apache-2.0",
        training="nothing",
        precision="bf16",
        files=digest_files(folder),
    )
    write_manifest(folder, manifest)
    monkeypatch.setattr("ocria.models.finding.SHIPPED", tmp_path / "checkpoints")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "no-hub"))
    return folder


def damage(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_models_are_listed(checkpoint: Path, capfd: Capture) -> None:
    assert main(["models"]) == 0
    header, row = capfd.readouterr().out.splitlines()
    assert header.split() == ["NAME", "PRECISION", "SIZE", "DRAFTER", "LICENCE", "DIGEST", "STATE"]
    assert row.startswith("ocria-nano  bf16") and row.endswith("default")


def test_presets_in_the_hub_s_cache_are_listed_and_verified(
    checkpoint: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    repo = tmp_path / "hub" / "models--numind--NuExtract3"
    snapshot = repo / "snapshots" / "abc"
    for folder in (snapshot, repo / "refs", repo / "blobs"):
        folder.mkdir(parents=True)
    (repo / "refs" / "main").write_text("abc")
    for name in ("config.json", "tokenizer.json", "preprocessor_config.json"):
        (snapshot / name).write_text("{}")
    save_file({"w": torch.zeros(64).bfloat16()}, tmp_path / "weights")
    content = (tmp_path / "weights").read_bytes()
    blob = repo / "blobs" / hashlib.sha256(content).hexdigest()
    blob.write_bytes(content)
    (snapshot / "model.safetensors").symlink_to(blob)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    assert main(["models", "--verify", "--json"]) == 0
    rows = [json.loads(line) for line in capfd.readouterr().out.splitlines()]
    assert [row["name"] for row in rows] == ["ocria-nano", "nuextract3"]
    assert (rows[1]["licence"], rows[1]["precision"]) == ("Apache-2.0", "bf16")
    assert rows[1]["problems"] == []
    blob.write_bytes(content[:-1] + b"x")
    assert main(["models", "--verify"]) == 6
    assert "nuextract3: model.safetensors: sha256" in capfd.readouterr().err
    # Half a file: it has no header to read formats from, and is listed and named all the same.
    blob.write_bytes(content[: len(content) // 2])
    assert main(["models"]) == 0
    assert capfd.readouterr().out.splitlines()[2].split()[:2] == ["nuextract3", "-"]
    assert main(["models", "--verify"]) == 6
    captured = capfd.readouterr()
    assert "ocria-nano" in captured.out and "nuextract3: model.safetensors" in captured.err


def test_doctor_fetches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr("ocria.weights.hub._import_library", None)
    assert main(["doctor", "--model", "chandra-ocr-2", "--device", "cpu"]) == 6
    assert "would fetch it" in capfd.readouterr().err


def test_verify_finds_one_changed_bit(checkpoint: Path, capfd: Capture) -> None:
    assert main(["models", "--verify"]) == 0
    assert capfd.readouterr().out.rstrip().endswith("verified")
    damage(checkpoint)
    assert main(["models", "--verify"]) == 6
    captured = capfd.readouterr()
    assert captured.out.rstrip().endswith("damaged")
    assert "ocria-nano: model.safetensors: sha256" in captured.err and "hint: " in captured.err


def test_models_as_json(checkpoint: Path, capfd: Capture) -> None:
    damage(checkpoint)
    assert main(["models", "--verify", "--json"]) == 6
    row = json.loads(capfd.readouterr().out)
    assert row["name"] == "ocria-nano" and row["default"] is True and len(row["problems"]) == 1


def test_no_checkpoint_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    monkeypatch.setattr("ocria.models.finding.SHIPPED", tmp_path)
    assert main(["models"]) == 6
    captured = capfd.readouterr()
    assert captured.out == "" and "no checkpoint is installed" in captured.err


def test_doctor_says_what_would_be_used(checkpoint: Path, capfd: Capture) -> None:
    assert main(["doctor", "--device", "cpu", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["device"].startswith("cpu with ") and found["faults"] == []
    assert "verified" in found["model"] and "gated_delta: " in found["kernels"]
    assert found["torch"] == torch.__version__


@pytest.mark.parametrize(
    ("device", "is_fused", "expected"),
    [
        ("cpu", False, "auto, step by step"),
        ("cuda:0", True, "auto, step by step"),
        ("cuda:0", False, "auto: none, since the fused kernels do not take this model"),
    ],
)
def test_doctor_says_what_is_drafted(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, device: str, is_fused: bool, expected: str
) -> None:
    monkeypatch.setattr("ocria.models.device.resolve_device", lambda name: torch.device(device))
    sizes = next(SHIPPED.glob("*/config.json"))
    (checkpoint / "config.json").write_bytes(sizes.read_bytes())
    monkeypatch.setattr("ocria.models.qwen3_5.fused.can_fuse", lambda *asked: is_fused)
    assert _drafter("ocria-nano", "auto").startswith(expected)


def test_doctor_names_every_fault(checkpoint: Path, capfd: Capture) -> None:
    damage(checkpoint)
    assert main(["doctor", "--device", "cuda:99"]) == 5
    captured = capfd.readouterr()
    assert "ocria-nano is damaged: model.safetensors" in captured.out
    assert captured.err.count("error: ") == 2 and "Traceback" not in captured.err
