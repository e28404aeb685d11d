"""A folder with `index.jsonl`: one row a file, our own layout.

Row: `file`, `truth` (path or null), `truth_type`, `kind`, `lang`; optional `pages` ("1-2,4"),
`truth_origin`, `metric`, `set`. A bad row is named and left out; the rest is used.
"""

from __future__ import annotations

import json
from pathlib import Path, PurePosixPath
from typing import Any

from ocria.eval.items import Dataset, Item, Metric, Problem, Truth, TruthOrigin
from ocria.eval.truth import TRUTH_READERS, TruthError

_METRICS: dict[str, tuple[Metric, str]] = {
    "text": ("text", "text"),
    "markdown": ("markdown", "markdown"),
    "blocks": ("blocks", "blocks"),
    "teds": ("tables", "html-table"),
    "table-xml": ("tables", "icdar2013"),
    "rules": ("rules", "rules"),
    "blank": ("blank", ""),
    "none": ("none", ""),
}
_ORIGINS: dict[str, TruthOrigin] = {
    "human": "human",
    "exact": "exact",
    "exact-synthetic": "exact",
    "text-layer": "text-layer",
    "machine": "machine",
    "none": "none",
}


_MAX_PAGES = 100_000


class RowError(ValueError):
    """An index row that cannot be used."""


def read_index(root: Path) -> Dataset:
    """Read `root/index.jsonl`."""
    items: list[Item] = []
    problems: list[Problem] = []
    # By newline alone: a JSON string may hold what Unicode calls a line separator.
    lines = (root / "index.jsonl").read_bytes().removeprefix(b"\xef\xbb\xbf").split(b"\n")
    seen: set[str] = set()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        try:
            item = _item(root, line.decode("utf-8"))
            if item.name in seen:
                raise RowError(f"{item.name} is listed twice")
            seen.add(item.name)
            items.append(item)
        except (RowError, TruthError) as error:
            problems.append(Problem(where=f"index.jsonl line {number}", what=str(error)))
        # Whatever else a row or its truth provokes is that row's trouble, not the run's.
        except (ValueError, TypeError, KeyError, OSError, RecursionError) as error:
            what = f"cannot be used: {type(error).__name__}: {error}"
            problems.append(Problem(where=f"index.jsonl line {number}", what=what))
    return Dataset(
        name=root.name, root=root, layout="index", items=tuple(items), problems=tuple(problems)
    )


def parse_pages(text: str) -> tuple[int, ...]:
    """`1-2,4` as page numbers. Raises RowError."""
    numbers: list[int] = []
    for part in text.split(","):
        first, dash, last = part.strip().partition("-")
        if not first.isdecimal() or (dash and not last.isdecimal()):
            raise RowError(f"pages `{text}` is not a list such as 1-2,4")
        start, stop = int(first), int(last or first)
        if stop - start >= _MAX_PAGES or len(numbers) >= _MAX_PAGES:
            raise RowError(f"pages `{text[:40]}` are more than {_MAX_PAGES}")
        numbers.extend(range(start, stop + 1))
    if not numbers or min(numbers) < 1:
        raise RowError(f"pages `{text}` names no page")
    return tuple(dict.fromkeys(numbers))


def _item(root: Path, line: str) -> Item:
    try:
        row = json.loads(line)
    except json.JSONDecodeError as error:
        raise RowError(f"not JSON: {error}") from error
    if not isinstance(row, dict) or not isinstance(row.get("file"), str) or not row["file"]:
        raise RowError("no `file`")
    name = _inside(root, row["file"])
    path = root / name
    if not path.is_file():
        raise RowError(f"{name} is missing")
    metric, reader = _metric(row)
    truth = _truth(root, row, reader) if metric != "blank" else Truth(text="")
    return Item(
        name=name,
        path=path,
        pages=parse_pages(str(row["pages"])) if row.get("pages") else None,
        group=str(row.get("set") or name.partition("/")[0]),
        kind=str(row.get("kind") or ""),
        lang=str(row.get("lang") or ""),
        metric=metric if truth is not None else "none",
        truth_origin=_origin(row),
        truth=truth,
    )


def _inside(root: Path, named: str) -> str:
    """The one spelling of a path in the dataset. Raises RowError for a path that leaves it."""
    pure = PurePosixPath(named)
    if pure.is_absolute() or not (root / pure).resolve().is_relative_to(root.resolve()):
        raise RowError(f"{named} lies outside the dataset")
    return str(pure)


def _metric(row: dict[str, Any]) -> tuple[Metric, str]:
    """The metric and truth reader: from `metric`, else guessed from `truth_type`."""
    named = row.get("metric")
    if named is None:
        kind = str(row.get("truth_type") or "none")
        guesses = (("unit tests", "rules"), ("table structure XML", "table-xml"),
                   ("html table", "teds"), ("json blocks", "blocks"), ("markdown", "markdown"),
                   ("blank", "blank"), ("text", "text"))  # fmt: skip
        named = next((metric for word, metric in guesses if word in kind), "none")
        if named == "none" and row.get("truth"):
            unknown = f"unknown truth_type `{kind}`"
            raise RowError("truth without truth_type" if kind == "none" else unknown)
    if not isinstance(named, str) or named not in _METRICS:
        raise RowError(f"unknown metric `{named}`")
    return _METRICS[named]


def _origin(row: dict[str, Any]) -> TruthOrigin:
    named = str(row.get("truth_origin") or ("human" if row.get("truth") else "none"))
    if named not in _ORIGINS:
        raise RowError(f"unknown truth_origin `{named}`")
    return _ORIGINS[named]


def _truth(root: Path, row: dict[str, Any], reader: str) -> Truth | None:
    named = row.get("truth")
    if not reader:
        return None
    if not isinstance(named, str) or not named:
        raise RowError(f"{row['file']} has a metric but no truth")
    return TRUTH_READERS[reader](root / _inside(root, named))
