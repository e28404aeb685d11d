"""The documents of examples/ read as the Markdown beside them says."""

from pathlib import Path

import pytest
from rapidfuzz.distance import Levenshtein

import ocria
from ocria.output import render

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


def reads_as_kept(name: str) -> None:
    document = ocria.parse(EXAMPLES / f"{name}.pdf", device="cpu")
    kept = (EXAMPLES / f"{name}.md").read_text(encoding="utf-8")
    # Not equal: the bytes are promised for one kind of CPU, and these were kept on another.
    assert Levenshtein.normalized_similarity(render(document, "md"), kept) > 0.98


def test_a_scan_reads_as_kept() -> None:
    reads_as_kept("scan")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["report", "book"])
def test_the_others_read_as_kept(name: str) -> None:
    reads_as_kept(name)
