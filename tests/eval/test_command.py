"""`ocria eval` at the shell: one JSON line on standard output, the rest on standard error."""

import json
from pathlib import Path

import pytest
from PIL import Image

from ocria.cli import main


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    root = tmp_path / "set"
    root.mkdir()
    rows = []
    for name in ("a", "b"):
        Image.new("RGB", (30, 20), "white").save(root / f"{name}.png")
        (root / f"{name}.txt").write_text(f"truth of {name}")
        rows.append({"file": f"{name}.png", "truth": f"{name}.txt", "metric": "text"})
    (root / "index.jsonl").write_text("\n".join(map(json.dumps, rows)))
    pred = tmp_path / "pred"
    pred.mkdir()
    (pred / "a.png.md").write_text("truth of a")
    return root


def test_the_last_line_is_one_json_object(
    dataset: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "report.html"
    pred = str(tmp_path / "pred")
    code = main(["eval", str(dataset), "--pred", pred, "--limit", "1", "--report", str(page)])
    out, err = capfd.readouterr()
    assert code == 0
    assert out.count("\n") == 1
    assert json.loads(out)["cer"] == 0.0
    assert "CER" in err
    assert page.read_text().startswith("<!doctype html>")


def test_what_cannot_be_scored_is_named_and_ends_with_7(
    dataset: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code = main(["eval", str(dataset), "--pred", str(tmp_path / "pred")])
    out, err = capfd.readouterr()
    assert code == 7
    assert json.loads(out)["items"] == 1
    assert json.loads(out)["problems"][0]["where"] == "b.png"
    assert "b.png" in err


def test_an_existing_report_is_not_touched(dataset: Path, tmp_path: Path) -> None:
    page = tmp_path / "report.html"
    page.write_text("mine")
    arguments = ["eval", str(dataset), "--pred", str(tmp_path / "pred"), "--report", str(page)]
    assert main(arguments) == 4
    assert page.read_text() == "mine"


def test_a_report_in_no_folder_says_how_to_make_it(
    dataset: Path, capfd: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    page = tmp_path / "none" / "report.html"
    arguments = ["eval", str(dataset), "--pred", str(tmp_path / "pred"), "--report"]
    assert main([*arguments, str(page)]) == 4
    assert f"mkdir -p '{page.parent}'" in capfd.readouterr().err
    assert main([*arguments, str(tmp_path)]) == 4
    assert f"name a file in it: {tmp_path}/report.html" in capfd.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["--engine", "nobody"], 2),
        (["--shard", "4/4"], 2),
        (["--dpi", "1"], 2),
        (["--threads", "0"], 2),
        (["--pred", ".", "--engine", "ocria"], 2),
    ],
)
def test_impossible_options(dataset: Path, arguments: list[str], code: int) -> None:
    assert main(["eval", str(dataset), *arguments]) == code


def test_no_dataset(tmp_path: Path) -> None:
    assert main(["eval", str(tmp_path / "nowhere")]) == 3


def test_without_the_extra_it_says_what_to_install(
    dataset: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ocria.cli.eval.SCORERS", ("rapidfuzz", "no_such_scorer"))
    assert main(["eval", str(dataset)]) == 2
    err = capfd.readouterr().err
    assert "needs no_such_scorer" in err
    assert "ocria[eval]" in err
