"""Layouts that pair a folder of documents with a folder, or suffix, of truth files."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ocria.eval.items import Dataset, Item, Metric, Problem, Truth, TruthOrigin
from ocria.eval.tables import tables_in
from ocria.eval.truth import TRUTH_READERS, TruthError

DOCUMENT_SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".bmp", ".webp"})


@dataclass(frozen=True, kw_only=True)
class _Pairing:
    layout: str
    metric: Metric
    reader: str
    origin: TruthOrigin = "human"


_PLAIN = _Pairing(layout="plain", metric="text", reader="text")
_SROIE = _Pairing(layout="sroie", metric="text", reader="sroie-boxes")
_ICDAR = _Pairing(layout="icdar2013", metric="tables", reader="icdar2013")
_BLOCKS = _Pairing(layout="pdf-parse-bench", metric="blocks", reader="blocks", origin="exact")


def documents(root: Path) -> list[Path]:
    """Document files directly in a folder, by name."""
    return sorted(p for p in root.iterdir() if p.suffix.lower() in DOCUMENT_SUFFIXES)


def read_plain(root: Path) -> Dataset:
    """ISRI and others: `page.tif` beside `page.txt`."""
    return _paired(root, documents(root), _PLAIN, lambda path: path.with_suffix(".txt"))


def read_sroie(root: Path) -> Dataset:
    """SROIE 2019: `img/*.jpg` and `box/*.csv`, in other copies `box/*.txt`."""

    def boxes(path: Path) -> Path:
        named = root / "box" / f"{path.stem}.txt"
        return named if named.is_file() else named.with_suffix(".csv")

    return _paired(root, documents(root / "img"), _SROIE, boxes)


def read_icdar2013(root: Path) -> Dataset:
    """ICDAR 2013 tables: `eu-001.pdf` beside `eu-001-str.xml`."""
    files = [p for p in documents(root) if p.suffix.lower() == ".pdf"]
    return _paired(root, files, _ICDAR, lambda path: path.with_name(f"{path.stem}-str.xml"))


def read_pdf_parse_bench(root: Path) -> Dataset:
    """pdf-parse-bench: `pdfs/*.pdf` and `ground_truth/*.json`."""
    files = documents(root / "pdfs")
    return _paired(root, files, _BLOCKS, lambda p: root / "ground_truth" / f"{p.stem}.json")


def read_pubtabnet(source: Path) -> Dataset:
    """PubTabNet: JSON lines with `filename`, `split` and `html` tokens; images beside them."""
    root = source.parent
    items: list[Item] = []
    problems: list[Problem] = []
    lines = source.read_text(encoding="utf-8").rstrip("\n").split("\n")
    for number, line in enumerate(lines, start=1):
        try:
            items.append(_pubtabnet_item(root, json.loads(line)))
        except TruthError as error:
            problems.append(Problem(where=f"{source.name} line {number}", what=str(error)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            named = f"no {error}" if isinstance(error, KeyError) else str(error)
            what = f"not a record of PubTabNet: {named}"
            problems.append(Problem(where=f"{source.name} line {number}", what=what))
    return Dataset(
        name=root.name, root=root, layout="pubtabnet", items=tuple(items), problems=tuple(problems)
    )


def is_pubtabnet_row(row: Any) -> bool:
    """Whether a decoded JSON line looks like a PubTabNet record."""
    return isinstance(row, dict) and {"filename", "html"} <= row.keys()


def _paired(
    root: Path, files: Iterable[Path], pairing: _Pairing, truth_path: Callable[[Path], Path]
) -> Dataset:
    items: list[Item] = []
    problems: list[Problem] = []
    for path in files:
        name = path.relative_to(root).as_posix()
        try:
            truth = TRUTH_READERS[pairing.reader](truth_path(path))
        except TruthError as error:
            problems.append(Problem(where=name, what=str(error)))
            continue
        items.append(
            Item(
                name=name, path=path, pages=None, group=root.name, kind=pairing.layout, lang="",
                metric=pairing.metric, truth_origin=pairing.origin, truth=truth,
            )
        )  # fmt: skip
    return Dataset(
        name=root.name, root=root, layout=pairing.layout,
        items=tuple(items), problems=tuple(problems),
    )  # fmt: skip


def _pubtabnet_item(root: Path, row: dict[str, Any]) -> Item:
    name = str(row["filename"])
    split = str(row.get("split") or ".")
    path = next((p for p in (root / split / name, root / name) if p.is_file()), None)
    if path is None:
        raise TruthError(f"{name} is missing")
    return Item(
        name=name, path=path, pages=None, group=root.name, kind="table image", lang="en",
        metric="tables", truth_origin="human", truth=Truth(tables=tables_in(_html(row["html"]))),
    )  # fmt: skip


def _html(html: dict[str, Any]) -> str:
    """Cell texts put into the structure tokens: each `</td>` closes the next cell."""
    cells = iter(html["cells"])
    parts: list[str] = []
    for token in html["structure"]["tokens"]:
        if token == "</td>":
            parts.append("".join(next(cells, {"tokens": []})["tokens"]))
        parts.append(token)
    return f"<table>{''.join(parts)}</table>"
