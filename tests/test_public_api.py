"""The public face: names, laziness of arguments, and typed errors."""

from pathlib import Path

import pytest

import ocria


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
