"""`ocria bench` at the shell: one JSON line on standard output, the rest on standard error."""

import json
from pathlib import Path

import pytest

from ocria.cli import main

Capture = pytest.CaptureFixture[str]


@pytest.fixture
def command(checkpoint: Path, documents: tuple[Path, ...]) -> list[str]:
    given = ["--model", str(checkpoint), "--device", "cpu", "--max-tokens", "8", "--rounds", "1"]
    return ["bench", str(documents[1]), *given]


def test_the_last_line_is_one_json_object(
    command: list[str], capfd: Capture, tmp_path: Path
) -> None:
    plot = tmp_path / "out.svg"
    assert main([*command, "--rung", "auto", "--plot", str(plot)]) == 0
    out, err = capfd.readouterr()
    assert out.count("\n") == 1
    assert [rung["status"] for rung in json.loads(out)["rungs"]] == ["ok", "ok"]
    assert "tokens/s" in err and "bench: round 1 of 1: auto" in err
    assert plot.read_text().startswith("<svg ")


def test_an_existing_picture_is_not_touched(command: list[str], tmp_path: Path) -> None:
    plot = tmp_path / "out.svg"
    plot.write_text("mine")
    assert main([*command, "--plot", str(plot)]) == 4
    assert plot.read_text() == "mine"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--rung", "turbo"], 2),
        (["--rounds", "0"], 2),
        (["--accepted", "4"], 2),
        (["--shape", "huge"], 2),
        (["nowhere.pdf"], 3),
        (["--model", "nowhere"], 6),
    ],
)
def test_what_cannot_be_measured(command: list[str], arguments: list[str], code: int) -> None:
    assert main([*command, *arguments]) == code


def test_quiet_says_only_the_tables(command: list[str], capfd: Capture) -> None:
    assert main([*command, "--rung", "ngram", "-q"]) == 0
    assert "round 1" not in capfd.readouterr().err


@pytest.mark.slow
def test_transformers_is_judged_by_the_reference(command: list[str], capfd: Capture) -> None:
    pytest.importorskip("transformers")
    assert main([*command, "--rung", "transformers", "--transformers"]) == 0
    rung = json.loads(capfd.readouterr().out)["rungs"][1]
    assert (rung["name"], rung["status"]) == ("transformers", "ok")
    assert "of 8 tokens decided otherwise" in rung["note"]
    assert rung["tokens_per_step"] == 1.0
