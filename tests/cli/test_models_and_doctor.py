"""`ocria models` and `ocria doctor` on small folders that stand in for checkpoints."""

import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from ocria.cli import main
from ocria.cli.machine import _drafter
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
    monkeypatch.setattr("ocria.models.registry.SHIPPED", tmp_path / "checkpoints")
    return folder


def damage(folder: Path) -> None:
    path = folder / "model.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)


def test_models_are_listed(checkpoint: Path, capfd: Capture) -> None:
    assert main(["models"]) == 0
    header, row = capfd.readouterr().out.splitlines()
    assert header.split() == ["NAME", "PRECISION", "SIZE", "LICENCE", "DIGEST", "STATE"]
    assert row.startswith("ocria-nano  bf16") and row.endswith("default")


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
    monkeypatch.setattr("ocria.models.registry.SHIPPED", tmp_path)
    assert main(["models"]) == 6
    captured = capfd.readouterr()
    assert captured.out == "" and "no checkpoint is installed" in captured.err


def test_doctor_says_what_would_be_used(checkpoint: Path, capfd: Capture) -> None:
    assert main(["doctor", "--device", "cpu", "--json"]) == 0
    found = json.loads(capfd.readouterr().out)
    assert found["device"].startswith("cpu with ") and found["faults"] == []
    assert "verified" in found["model"] and "gated_delta: " in found["kernels"]
    assert found["torch"] == torch.__version__


def test_doctor_says_that_nothing_is_drafted_on_cuda(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocria.models.device.resolve_device", lambda name: torch.device("cuda:0"))
    assert _drafter("ocria-nano", "auto").startswith("auto: none on CUDA")
    monkeypatch.setattr("ocria.models.device.resolve_device", lambda name: torch.device("cpu"))
    assert _drafter("ocria-nano", "auto").startswith("auto, step by step")


def test_doctor_names_every_fault(checkpoint: Path, capfd: Capture) -> None:
    damage(checkpoint)
    assert main(["doctor", "--device", "cuda:99"]) == 5
    captured = capfd.readouterr()
    assert "ocria-nano is damaged: model.safetensors" in captured.out
    assert captured.err.count("error: ") == 2 and "Traceback" not in captured.err
