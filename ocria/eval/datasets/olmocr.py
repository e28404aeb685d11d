"""olmOCR-bench: JSON-lines files of rules, one row a rule, beside a folder of PDFs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from ocria.eval.items import Dataset, Item, Problem, Truth
from ocria.eval.rules import Rule, RuleError, read_rule, with_baseline

_PDF_FOLDERS = ("pdfs", ".")


def read_olmocr_bench(source: Path) -> Dataset:
    """Read one rule file, or every rule file of a folder; rules of one page make one item.

    The set of an item is its rule file, as the bench means its scores over files. A page that
    several files have rules for is one item a file.
    """
    root = source if source.is_dir() else source.parent
    files = sorted(source.glob("*.jsonl")) if source.is_dir() else [source]
    pages: dict[tuple[str, str, int], list[Rule]] = {}
    problems: list[Problem] = []
    for file in files:
        lines = file.read_text(encoding="utf-8").rstrip("\n").split("\n")
        for number, line in enumerate(lines, start=1):
            if not line.strip():
                continue
            try:
                row = json.loads(line)
                key = (file.stem, str(row["pdf"]), int(row["page"]))
                pages.setdefault(key, []).append(read_rule(row))
            except (ValueError, KeyError, TypeError, OverflowError, RecursionError) as error:
                where = f"{file.name} line {number}"
                problems.append(Problem(where=where, what=_reason(error)))
    items: list[Item] = []
    for (group, pdf, page), rules in pages.items():
        path = _pdf_path(root, pdf)
        if path is None:
            problems.append(Problem(where=f"{group}.jsonl", what=f"{pdf} is missing"))
        else:
            items.append(_item(group, pdf, page, path, rules))
    return Dataset(
        name=root.name, root=root, layout="olmocr-bench",
        items=tuple(items), problems=tuple(problems),
    )  # fmt: skip


def is_rule_row(row: Any) -> bool:
    """Whether a decoded JSON line looks like a rule."""
    return isinstance(row, dict) and {"pdf", "page", "type"} <= row.keys()


def _reason(error: Exception) -> str:
    if isinstance(error, RuleError):
        return str(error)
    return f"no {error}" if isinstance(error, KeyError) else f"cannot be used: {error}"


def _pdf_path(root: Path, pdf: str) -> Path | None:
    candidates = (root / folder / pdf for folder in _PDF_FOLDERS)
    return next((path for path in candidates if path.is_file()), None)


def _item(group: str, pdf: str, page: int, path: Path, rules: list[Rule]) -> Item:
    return Item(
        name=f"{pdf}#p{page}",
        path=path,
        pages=(page,),
        group=group,
        kind="rules",
        lang="en",
        metric="rules",
        truth_origin="human",
        truth=Truth(rules=with_baseline(rules)),
    )
