"""An item of a dataset: a file to read, and what is known about what it says."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ocria.eval.rules import Rule
from ocria.eval.tables import Table

Metric = Literal["text", "markdown", "blocks", "tables", "rules", "blank", "none"]
TruthOrigin = Literal["human", "exact", "text-layer", "machine", "none"]

RANKED_ORIGINS: frozenset[TruthOrigin] = frozenset({"human", "exact", "text-layer"})
"""Truth that may enter a ranking. Another parser's output never does."""


@dataclass(frozen=True, kw_only=True)
class Truth:
    """What the scored pages say. None means not known, an empty tuple means that there are none.

    `text` is Markdown where `is_markdown`, else plain text in reading order.
    """

    text: str | None = None
    is_markdown: bool = False
    tables: tuple[Table, ...] | None = None
    formulas: tuple[str, ...] | None = None
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Item:
    """One scored unit. `pages` are 1-based; None means all pages of the file.

    `name` is the path relative to the dataset, as predictions are filed under it; `group` is the
    set that figures are given for.
    """

    name: str
    path: Path
    pages: tuple[int, ...] | None
    group: str
    kind: str
    lang: str
    metric: Metric
    truth_origin: TruthOrigin
    truth: Truth | None


@dataclass(frozen=True, kw_only=True)
class Problem:
    """Something that could not be used: where, and why. Problems end the program with exit 7."""

    where: str
    what: str


@dataclass(frozen=True, kw_only=True)
class Dataset:
    """The items of a dataset in a fixed order, and what of it could not be used."""

    name: str
    root: Path
    layout: str
    items: tuple[Item, ...]
    problems: tuple[Problem, ...] = ()
