"""Which layout a dataset has, from what lies in it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ocria.errors import InputError
from ocria.eval.datasets import folders
from ocria.eval.datasets.index import read_index
from ocria.eval.datasets.olmocr import is_rule_row, read_olmocr_bench
from ocria.eval.datasets.omnidocbench import is_annotation, read_omnidocbench
from ocria.eval.items import Dataset
from ocria.eval.truth import TruthError

_LAYOUTS = (
    "a folder with index.jsonl, olmOCR-bench (*.jsonl beside pdfs/), OmniDocBench (*.json), "
    "pdf-parse-bench (pdfs/ and ground_truth/), SROIE (img/ and box/), PubTabNet (*.jsonl), "
    "ICDAR 2013 (*-str.xml beside *.pdf), or images beside .txt files"
)


def load_dataset(path: Path) -> Dataset:
    """Read a dataset of any known layout. Raises InputError if there is none."""
    if not path.exists():
        raise InputError(f"no such dataset: {path}")
    try:
        reader = _file_reader(path) if path.is_file() else _folder_reader(path)
        if reader is not None:
            return reader()
    except (OSError, UnicodeDecodeError, TruthError) as error:
        raise InputError(f"dataset cannot be read: {path}: {error}") from error
    raise InputError(f"not a dataset of a known layout: {path}", hint=f"known are {_LAYOUTS}")


def _folder_reader(root: Path) -> Callable[[], Dataset] | None:
    if (root / "index.jsonl").is_file():
        return lambda: read_index(root)
    if (root / "pdfs").is_dir() and (root / "ground_truth").is_dir():
        return lambda: folders.read_pdf_parse_bench(root)
    if (root / "img").is_dir() and (root / "box").is_dir():
        return lambda: folders.read_sroie(root)
    if any(root.glob("*-str.xml")):
        return lambda: folders.read_icdar2013(root)
    for file in sorted([*root.glob("*.jsonl"), *root.glob("*.json")]):
        reader = _file_reader(file)
        if reader is not None:
            return (lambda: read_olmocr_bench(root)) if is_rule_row(_first(file)) else reader
    if any(path.with_suffix(".txt").is_file() for path in folders.documents(root)):
        return lambda: folders.read_plain(root)
    return None


def _file_reader(file: Path) -> Callable[[], Dataset] | None:
    row = _first(file)
    if file.name == "index.jsonl":
        return lambda: read_index(file.parent)
    if is_rule_row(row):
        return lambda: read_olmocr_bench(file)
    if is_annotation(row):
        return lambda: read_omnidocbench(file)
    if folders.is_pubtabnet_row(row):
        return lambda: folders.read_pubtabnet(file)
    return None


def _first(file: Path) -> Any:
    """First record of a JSON-lines file or of a JSON list; None if it is neither."""
    try:
        with file.open(encoding="utf-8") as stream:
            if file.suffix == ".jsonl":
                return json.loads(next((line for line in stream if line.strip()), "null"))
            rows = json.load(stream)
    except json.JSONDecodeError:
        return None
    return rows[0] if isinstance(rows, list) and rows else None
