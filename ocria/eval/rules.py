"""The rules of olmOCR-bench, re-implemented from their description: a page passes or fails each.

present, absent: fuzzy partial ratio against 1 - max_diffs / length. order: some near hit of
`before` starts before some near hit of `after`. table: a cell and its neighbours or headings.
math: a formula with the same normalised LaTeX (the bench compares pictures, as `score` does where
a browser is there; without one this is stricter). baseline: something readable, no repetition at
the end, no letters of scripts that the bench does not expect. Other rule types are refused by name.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from fuzzysearch import find_near_matches
from rapidfuzz import fuzz

from ocria.eval.formulas import formulas_in, normalise_latex
from ocria.eval.rule_tables import CellRule, cell_rule_holds

MAX_TAIL_REPEATS = 30
MAX_TAIL_NGRAM = 5


class RuleError(ValueError):
    """A rule that cannot be read: unknown type, or a field missing or out of range."""


@dataclass(frozen=True, kw_only=True)
class Rule:
    """One rule of a page: its name, type, and what decides it; `formula` is that of a math rule."""

    id: str
    type: str
    holds: Callable[[str], bool]
    formula: str | None = None


def read_rule(row: Mapping[str, Any]) -> Rule:
    """Make a rule from one record of a bench file. Raises RuleError."""
    kind = str(row.get("type", ""))
    builder = _BUILDERS.get(kind)
    if builder is None:
        raise RuleError(f"unknown rule type `{kind}`")
    try:
        formula = str(row["math"]) if kind == "math" else None
        return Rule(id=str(row.get("id", "")), type=kind, holds=builder(row), formula=formula)
    except (KeyError, TypeError, ValueError) as error:
        raise RuleError(f"rule `{row.get('id', '?')}` of type {kind}: {error}") from error


def with_baseline(rules: Iterable[Rule]) -> tuple[Rule, ...]:
    """Every page gets a baseline rule unless it brings one."""
    kept = tuple(rules)
    if any(rule.type == "baseline" for rule in kept):
        return kept
    return (*kept, Rule(id="baseline", type="baseline", holds=_baseline({})))


_MARKS = re.compile(r"(\*\*|__)(.*?)\1")
_LIGHT_MARKS = re.compile(r"([*_])(.*?)\1")
_INLINE_TAG = re.compile(r"</?[bi]>")
_FANCY = str.maketrans(
    {"‘": "'", "’": "'", "‚": "'", "“": '"', "”": '"', "„": '"', "\uff3f": "_", "–": "-", "—": "-",
     "‑": "-", "‒": "-", "−": "-", "\u00b5": "\u03bc"}
)  # fmt: skip


def bench_text(markdown: str) -> str:
    """The bench's own normalisation, which differs from ours: only bold and italic marks go."""
    text = re.sub(r"<br/?>", " ", markdown)
    text = _INLINE_TAG.sub("", _MARKS.sub(r"\2", text))
    text = re.sub(r"\s+", " ", _LIGHT_MARKS.sub(r"\2", text))
    return unicodedata.normalize("NFC", text).translate(_FANCY)


def _presence(row: Mapping[str, Any], wanted: bool) -> Callable[[str], bool]:
    text = _required(row, "text")
    cased = bool(row.get("case_sensitive", True))
    first, last = int(row.get("first_n") or 0), int(row.get("last_n") or 0)
    threshold = 1.0 - int(row.get("max_diffs", 0)) / len(text)
    query = text if cased else text.lower()

    def holds(markdown: str) -> bool:
        page = bench_text(markdown)
        if not cased:
            page = page.lower()
        if first and last:
            page = page[:first] + page[-last:]
        elif first or last:
            page = page[:first] if first else page[-last:]
        return (fuzz.partial_ratio(query, page) / 100.0 >= threshold) is wanted

    return holds


def _order(row: Mapping[str, Any]) -> Callable[[str], bool]:
    before, after = _required(row, "before"), _required(row, "after")
    max_diffs = int(row.get("max_diffs", 0))
    if max_diffs > min(len(before), len(after)) // 2:
        raise RuleError("max_diffs is over half of a searched text")

    def holds(markdown: str) -> bool:
        page = bench_text(markdown)
        first = find_near_matches(before, page, max_l_dist=max_diffs)
        second = find_near_matches(after, page, max_l_dist=max_diffs)
        if not first or not second:
            return False
        return bool(min(m.start for m in first) < max(m.start for m in second))

    return holds


def _table(row: Mapping[str, Any]) -> Callable[[str], bool]:
    fields = ("up", "down", "left", "right", "top_heading", "left_heading")
    rule = CellRule(
        cell=_required(row, "cell"),
        neighbours=tuple((name, bench_text(str(row[name]))) for name in fields if row.get(name)),
        max_diffs=int(row.get("max_diffs", 0)),
    )
    return lambda markdown: cell_rule_holds(rule, markdown, clean=bench_text)


def _math(row: Mapping[str, Any]) -> Callable[[str], bool]:
    wanted = normalise_latex(str(row["math"]))
    if not wanted:
        raise RuleError("empty formula")
    return lambda markdown: any(normalise_latex(f) == wanted for f in formulas_in(markdown))


_UNEXPECTED = re.compile(
    "[\u4e00-\u9fff\u3040-\u309f\u30a0-\u30ff"
    "\U0001f600-\U0001f64f\U0001f300-\U0001f5ff\U0001f680-\U0001f6ff\U0001f1e0-\U0001f1ff]"
)


def _baseline(row: Mapping[str, Any]) -> Callable[[str], bool]:
    max_length = None if row.get("max_length") is None else int(row["max_length"])
    skips_pictures = bool(row.get("max_length_skips_image_alt_tags", False))
    max_repeats = int(row.get("max_repeats", MAX_TAIL_REPEATS))
    checks_script = bool(row.get("check_disallowed_characters", True))

    def holds(markdown: str) -> bool:
        if max_length is not None:
            counted = re.sub(r"!\[.*?\]\(.*?\)", "", markdown) if skips_pictures else markdown
            return sum(char.isalnum() for char in counted) <= max_length
        if not any(char.isalnum() for char in markdown):
            return False
        if max(tail_repeats(markdown)) > max_repeats:
            return False
        return not (checks_script and _UNEXPECTED.search(markdown))

    return holds


def tail_repeats(text: str) -> tuple[int, ...]:
    """How often the last 1-, 2-, ... MAX_TAIL_NGRAM-gram of characters stands at the end."""
    flat = re.sub(r"\s+", " ", text)
    counts = []
    for size in range(1, MAX_TAIL_NGRAM + 1):
        unit, end, count = flat[-size:], len(flat), 0
        while len(unit) == size and flat[max(end - size, 0) : end] == unit:
            count, end = count + 1, end - size
        counts.append(count)
    return tuple(counts)


def _required(row: Mapping[str, Any], name: str) -> str:
    text = bench_text(str(row[name]))
    if not text.strip():
        raise RuleError(f"`{name}` is empty")
    return text


_BUILDERS: dict[str, Callable[[Mapping[str, Any]], Callable[[str], bool]]] = {
    "present": lambda row: _presence(row, True),
    "absent": lambda row: _presence(row, False),
    "order": _order,
    "table": _table,
    "math": _math,
    "baseline": _baseline,
}
