"""The public face: names, laziness of arguments, and typed errors."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import ocria

from .cli.fake_program import open_stream


def test_the_names_are_these_and_sorted() -> None:
    assert ocria.__all__ == sorted(ocria.__all__)
    assert all(hasattr(ocria, name) for name in ocria.__all__)
    public = {name for name in vars(ocria) if not name.startswith("_") and name[0].isupper()}
    hidden = {"Any", "Iterator", "Path", "PathLike", "TYPE_CHECKING"}
    assert public - hidden <= set(ocria.__all__)


def test_the_version_is_the_metadata_version() -> None:
    from importlib.metadata import PackageNotFoundError, version

    try:
        installed = version("ocria")
    except PackageNotFoundError:
        pytest.skip("ocria is not installed here, only on the path")
    assert installed == ocria.__version__


def test_wrong_options_raise_at_the_call() -> None:
    with pytest.raises(ocria.UsageError):
        ocria.iter_pages("x.pdf", max_tokens=0)
    with pytest.raises(TypeError):
        ocria.iter_pages("x.pdf", colour="red")


def test_a_missing_file_is_an_input_error(tmp_path: Path) -> None:
    with pytest.raises(ocria.InputError):
        ocria.parse(tmp_path / "missing.pdf")
    with pytest.raises(ocria.InputError):
        next(ocria.iter_pages(tmp_path / "missing.pdf"))


def test_pages_come_one_by_one_and_bytes_are_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ocria.pipeline.open_stream", open_stream)
    script = b'{"pages": [{"text": "one"}, {"error": "DeviceError"}]}'
    pages = ocria.iter_pages(script)
    assert next(pages).blocks[0].text == "one"
    with pytest.raises(ocria.DeviceError):
        next(pages)


def test_a_document_holds_every_page(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("ocria.pipeline.open_stream", open_stream)
    path = tmp_path / "a.pdf"
    path.write_text('{"pages": [{"text": "one"}, {"status": "failed"}]}')
    document = ocria.parse(str(path), model="some-model")
    assert [page.status for page in document.pages] == ["ok", "failed"]
    assert document.source.name == "a.pdf" and document.generator.model.name == "some-model"


def test_waiting_threads_sleep_soon_whoever_loads_torch_first() -> None:
    code = "import os, sys, ocria; print(os.environ['GOMP_SPINCOUNT'], 'torch' in sys.modules)"
    unset = {k: v for k, v in os.environ.items() if not k.startswith(("OMP_", "GOMP_"))}
    told = subprocess.run(
        [sys.executable, "-c", code], env=unset, capture_output=True, text=True, check=True
    )
    assert told.stdout.split() == ["4000", "False"]
