"""What may be loaded, and reached, by the quick commands."""

import subprocess
import sys
from pathlib import Path

import pytest
from PIL import Image

HEAVY = (
    "torch",
    "numpy",
    "rich",
    "PIL",
    "pypdfium2",
    "tokenizers",
    "safetensors",
    "triton",
)


def modules_after(code: str) -> set[str]:
    probe = f"{code}\nimport sys; sys.stderr.write(' '.join(sys.modules))"
    done = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True, timeout=60
    )
    return set(done.stderr.split())


@pytest.mark.parametrize(
    "code",
    [
        "import ocria",
        "from ocria.cli import main; main(['--help'])",
        "from ocria.cli import main; main(['--version'])",
        "from ocria.cli import main; main(['parse', '--help'])",
    ],
)
def test_nothing_heavy_is_imported(code: str) -> None:
    assert sorted(modules_after(code) & set(HEAVY)) == []


def test_a_model_that_cannot_be_had_is_told_of_before_torch_is_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    Image.new("RGB", (40, 40), "white").save(tmp_path / "page.png")
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "cache"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.delenv("HF_HUB_OFFLINE", raising=False)
    page, out = str(tmp_path / "page.png"), str(tmp_path / "out")
    for arguments in (
        ["parse", page, "--model", "someone/else"],
        ["parse", page, "--drafter-model", "someone/else"],
        ["batch", page, out, "--model", "someone/else"],
    ):
        modules = modules_after(f"from ocria.cli import main; assert main({arguments}) == 6")
        assert "torch" not in modules


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_the_quickest_two_load_no_pydantic_either(option: str) -> None:
    assert "pydantic" not in modules_after(f"from ocria.cli import main; main(['{option}'])")


@pytest.mark.parametrize("option", ["--help", "--version"])
def test_help_and_version_print_on_standard_output(option: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ocria", option], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (0, "") and "ocria" in done.stdout


def test_every_option_of_the_contract_is_in_the_help() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "ocria", "parse", "--help"],
        capture_output=True,
        text=True,
        check=True,
    )
    options = (
        "-o --output -f --format --pages --model --device --drafter --max-tokens --dpi "
        "--password-file --page-markers --furniture --images --stats --progress --overwrite -v -q"
    )
    assert [option for option in options.split() if option not in done.stdout] == []
