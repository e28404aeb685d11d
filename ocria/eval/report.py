"""The result of an evaluation, and its one line of JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ocria.errors import ExitCode
from ocria.eval.figures import METRICS, Aggregate, aggregate, bench_score
from ocria.eval.items import RANKED_ORIGINS, Dataset, Problem
from ocria.eval.predictions import Prediction
from ocria.eval.score import ItemScore
from ocria.eval.suite_figures import SuiteFigure, suite_figures

DIGITS = 4
AS_LATEX = "normalised LaTeX"
SHARED_SECONDS = "pages read side by side: their seconds are shares of the time of all of them"


@dataclass(frozen=True, kw_only=True)
class ScoredItem:
    """An item's figures and the prediction that they are of."""

    score: ItemScore
    prediction: Prediction


@dataclass(frozen=True, kw_only=True)
class EngineRun:
    """One engine over a dataset. `overall` leaves out what must not be ranked."""

    engine: str
    version: str
    items: tuple[ScoredItem, ...]
    overall: Aggregate
    groups: tuple[Aggregate, ...]
    origins: tuple[Aggregate, ...]
    problems: tuple[Problem, ...]
    suites: tuple[SuiteFigure, ...] = ()

    @property
    def num_in_company(self) -> int:
        """Pages that were read beside others: their seconds are shares of a common time."""
        pages = (page for item in self.items for page in item.prediction.pages)
        return sum(page.side_by_side > 1 for page in pages)

    def suite_text(self, name: str) -> str:
        """A suite's figure by name as people read it; nothing where it is not known."""
        return next((figure.text for figure in self.suites if figure.name == name), "")


@dataclass(frozen=True, kw_only=True)
class EvalReport:
    """Every engine's figures on one dataset, and what could not be used."""

    dataset: Dataset
    dpi: int
    runs: tuple[EngineRun, ...]
    formulas_compared: str = AS_LATEX

    @property
    def problems(self) -> tuple[Problem, ...]:
        """Bad rows of the dataset, then missing or damaged predictions and failed pages."""
        return (*self.dataset.problems, *(p for run in self.runs for p in run.problems))

    @property
    def exit_code(self) -> ExitCode:
        """7 where anything could not be used or read, else 0."""
        return ExitCode.PARTIAL if self.problems else ExitCode.OK

    def as_json_line(self) -> str:
        """One JSON object: figures of the first engine by name; all engines under `engines`."""
        rows = {run.engine: _run_row(run) for run in self.runs}
        row: dict[str, Any] = {
            "dataset": self.dataset.name,
            "layout": self.dataset.layout,
            "dpi": self.dpi,
            "formulas_compared": self.formulas_compared,
            **next(iter(rows.values()), {}),
            "problems": [{"where": p.where, "what": p.what} for p in self.problems],
        }
        for metric in METRICS:
            row.setdefault(metric.name, None)
        if len(rows) > 1:
            row["engines"] = rows
        line = json.dumps(row, ensure_ascii=False, allow_nan=False)
        # A file name need not be Unicode; the replacement of its odd bytes is JSON's own escape.
        return line.encode("utf-8", "backslashreplace").decode("utf-8")


def summarise(
    engine: str, version: str, items: Sequence[ScoredItem], problems: Sequence[Problem]
) -> EngineRun:
    """Group an engine's scored items by set and by origin of the truth."""
    scores = [item.score for item in items]
    ranked = [s for s in scores if s.item.truth_origin in RANKED_ORIGINS]
    groups = dict.fromkeys(score.item.group for score in scores)
    origins = dict.fromkeys(score.item.truth_origin for score in scores)
    return EngineRun(
        engine=engine,
        version=version,
        items=tuple(items),
        overall=aggregate("overall", ranked),
        groups=tuple(aggregate(g, [s for s in scores if s.item.group == g]) for g in groups),
        origins=tuple(
            aggregate(o, [s for s in scores if s.item.truth_origin == o]) for o in origins
        ),
        problems=tuple(problems),
        suites=suite_figures(scores),
    )


def _run_row(run: EngineRun) -> dict[str, Any]:
    return {
        "engine": run.engine,
        "version": run.version,
        **_aggregate_row(run.overall),
        **({"pages_side_by_side": run.num_in_company} if run.num_in_company else {}),
        **_bench_row(run),
        **_suites_row(run),
        "sets": {group.name: _aggregate_row(group) for group in run.groups},
        "truth_origins": {origin.name: _aggregate_row(origin) for origin in run.origins},
    }


def _bench_row(run: EngineRun) -> dict[str, float]:
    score = bench_score([item.score for item in run.items])
    return {} if score is None else {"olmocr_bench_score": round(score, DIGITS)}


def _suites_row(run: EngineRun) -> dict[str, Any]:
    """Figures of the frozen suites under their names; none for other data sets."""
    row: dict[str, Any] = {}
    for figure in run.suites:
        row[figure.name] = round(figure.value, DIGITS)
        row[f"{figure.name}_n"] = figure.n
        if figure.ci95 is not None:
            row[f"{figure.name}_ci95"] = [round(bound, DIGITS) for bound in figure.ci95]
    return row


def _aggregate_row(group: Aggregate) -> dict[str, Any]:
    row: dict[str, Any] = {
        "items": group.num_items,
        "pages": group.num_pages,
        "pages_failed": group.pages_failed,
        "pages_truncated": group.pages_truncated,
        "loop_rate": round(group.loop_rate, DIGITS),
    }
    for figure in group.figures:
        name, value = figure.metric.name, figure.estimate
        row[name] = round(value.mean, DIGITS)
        row[f"{name}_median"] = round(value.median, DIGITS)
        row[f"{name}_ci95"] = [round(value.low, DIGITS), round(value.high, DIGITS)]
        row[f"{name}_n"] = value.n
    if group.rules:
        row["rules"] = {tally.type: [tally.passed, tally.total] for tally in group.rules}
    if group.auroc is not None:
        row["confidence_auroc"] = round(group.auroc, DIGITS)
        row["confidence_blocks"] = group.num_blocks
    if group.seconds_mean is not None and group.seconds_median is not None:
        row["seconds_per_page"] = round(group.seconds_mean, DIGITS)
        row["seconds_per_page_median"] = round(group.seconds_median, DIGITS)
    if group.cpu_seconds_mean is not None and group.cpu_seconds_median is not None:
        row["cpu_seconds_per_page"] = round(group.cpu_seconds_mean, DIGITS)
        row["cpu_seconds_per_page_median"] = round(group.cpu_seconds_median, DIGITS)
        row["threads"] = list(group.threads)
    if group.tokens_mean is not None:
        row["tokens_per_page"] = round(group.tokens_mean, 1)
    return row
