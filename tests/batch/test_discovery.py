"""What a command line finds: folders and globs alike, links to folders left out."""

import os
from glob import glob
from pathlib import Path

import pytest

from ocria.batch.discovery import discover
from ocria.batch.pattern import matching


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """`in` with documents at three depths, a hidden folder, and links round a loop and outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("in/a.pdf", "in/sub/b.pdf", "in/sub/deep/c.pdf", "in/.hid/d.pdf", "far/e.pdf"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"%PDF-1.7 " + name.encode())
    (tmp_path / "in" / "sub" / "loop").symlink_to("..")
    (tmp_path / "in" / "link").symlink_to("../far")
    return tmp_path


def found(*inputs: str, recursive: bool = True) -> dict[str, str]:
    documents, _ = discover(inputs, Path("out"), recursive=recursive)
    return {str(document.path): document.output for document in documents}


def test_a_glob_finds_what_its_folder_does(tree: Path) -> None:
    expected = {
        "in/a.pdf": "a.pdf",
        "in/sub/b.pdf": "sub/b.pdf",
        "in/sub/deep/c.pdf": "sub/deep/c.pdf",
    }
    assert found("in/**/*.pdf") == found("in") == expected
    assert found(f"{tree}/in/**/*.pdf").keys() == {f"{tree}/{name}" for name in expected}


def test_a_link_to_a_folder_is_followed_only_where_a_pattern_names_it(tree: Path) -> None:
    assert found("in/*/*.pdf") == {"in/sub/b.pdf": "sub/b.pdf"}
    assert found("in/link/*.pdf") == {"in/link/e.pdf": "e.pdf"}
    assert found("in/s*/loop/*.pdf") == {"in/sub/loop/a.pdf": "sub/loop/a.pdf"}


def test_a_wildcard_does_not_stand_for_the_output_folder(tree: Path) -> None:
    (tree / "out").mkdir()
    (tree / "out" / "old.pdf").write_bytes(b"%PDF-1.7 old")
    assert found("*/*.pdf").keys() == {"in/a.pdf", "far/e.pdf"}
    assert found("out/*.pdf").keys() == {"out/old.pdf"}


@pytest.mark.parametrize("recursive", [True, False])
@pytest.mark.parametrize(
    "pattern",
    [
        "*",
        "in/*",
        "in/**/*.pdf",
        "**/*.pdf",
        "in/**",
        "in/.h*/*",
        "i?/[a-c].pdf",
        "in/*/../*.pdf",
        "in/sub/*p/*",
        "**/deep/c.pdf",
        "absent/*",
        "in/a.pdf/*",
        "in/[[]",
        "in/**/**/c.*",
    ],
)
def test_without_links_a_pattern_matches_what_the_standard_library_says(
    tree: Path, pattern: str, recursive: bool
) -> None:
    (tree / "in" / "link").unlink()
    (tree / "in" / "sub" / "loop").unlink()
    paths = matching(Path(pattern), recursive=recursive, is_entered=lambda path: True)
    names = glob(pattern, recursive=recursive)  # noqa: PTH207
    standard = set(map(os.path.normpath, names))
    ours = {os.path.normpath(path) for path in paths}
    assert ours == standard - ({"in"} if pattern == "in/**" else set())
