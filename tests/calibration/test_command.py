"""`ocria quantize` as a person at the shell meets it: streams, codes, words."""

import json
from pathlib import Path

import pytest

from ocria.cli import main
from ocria.models.finding import find_checkpoint


@pytest.fixture(autouse=True)
def few_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    from ocria.calibration import options

    fields = options.QuantizeOptions.__init__.__kwdefaults__
    monkeypatch.setitem(fields, "max_tokens", 6)


def run(*arguments: object) -> int:
    return main(["quantize", *(str(argument) for argument in arguments)])


def test_json_on_standard_output_all_else_on_standard_error(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "child"
    assert run(checkpoint, target, "--pages", 4, "--max-loss", 1e9, "--report") == 0
    out, err = capfd.readouterr()
    (line,) = out.splitlines()
    summary = json.loads(line)
    assert summary["folder"] == str(target) and summary["precision"] == "nvfp4+fp8"
    assert summary["target_bytes"] < summary["source_bytes"]
    assert 0 <= summary["agreement"] <= 1 and summary["kl_nats"] >= 0
    assert "rounding products: 9 of 9" in err
    assert "model.language_model.layers.1.mlp.down_proj" in err
    assert len((target / "sensitivity.csv").read_text().splitlines()) == 9
    assert find_checkpoint(target) == target


def test_quiet_says_nothing(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(checkpoint, tmp_path / "child", "--pages", 4, "--quiet") == 0
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("--budget", "0"), 2, "--budget must be"),
        (("--max-loss", "-1"), 2, "--max-loss must be"),
        (("--format", "gguf"), 2, "gguf"),
        (("--calibrate", "nowhere.pdf"), 3, "nowhere.pdf"),
    ],
)
def test_what_cannot_be_done(
    checkpoint: Path,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    arguments: tuple[str, ...],
    code: int,
    message: str,
) -> None:
    assert run(checkpoint, tmp_path / "child", *arguments) == code
    assert message in capfd.readouterr().err
    assert not (tmp_path / "child").exists()


def test_existing_and_missing_folders(
    checkpoint: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert run(checkpoint, checkpoint) == 4
    assert "exists already" in capfd.readouterr().err
    assert run(tmp_path / "nowhere", tmp_path / "child") == 6
    assert not (tmp_path / "child").exists()
