"""Figures over many items: overall, by set, by origin of the truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median
from typing import Literal

from ocria.eval.bootstrap import Estimate, estimate
from ocria.eval.confidence import auroc_of_wrong
from ocria.eval.score import ItemScore


@dataclass(frozen=True, kw_only=True)
class MetricSpec:
    """A figure by name: its heading, which way is better, and whether it is a rate."""

    name: str
    title: str
    better: Literal["lower", "higher"]
    is_rate: bool = True


METRICS: tuple[MetricSpec, ...] = (
    MetricSpec(name="cer", title="CER", better="lower"),
    MetricSpec(name="cer_raw", title="CER raw", better="lower"),
    MetricSpec(name="wer", title="WER", better="lower"),
    MetricSpec(name="word_f1", title="word F1", better="higher"),
    MetricSpec(name="words_in_order", title="in order", better="higher"),
    MetricSpec(name="order_edit", title="order edit", better="lower"),
    MetricSpec(name="teds", title="TEDS", better="higher"),
    MetricSpec(name="teds_structure", title="TEDS-S", better="higher"),
    MetricSpec(name="formula_match", title="formula =", better="higher"),
    MetricSpec(name="formula_match_drawn", title="formula = drawn", better="higher"),
    MetricSpec(name="formula_similarity", title="formula ~", better="higher"),
    MetricSpec(name="rules_passed", title="rules", better="higher"),
    MetricSpec(name="invented_words", title="invented words", better="lower"),
    MetricSpec(name="invented_chars", title="invented chars", better="lower", is_rate=False),
)


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One figure of a group of items."""

    metric: MetricSpec
    estimate: Estimate


@dataclass(frozen=True, kw_only=True)
class RuleTally:
    """Rules of one type: how many there are and how many hold."""

    type: str
    passed: int
    total: int


@dataclass(frozen=True, kw_only=True)
class Aggregate:
    """A group of items. Seconds and tokens are a page; the loop rate is over items. `threads` are
    the numbers of CPU threads that pages were read with.

    `auroc` is the probability that a wrong block has lower confidence than a right one.
    """

    name: str
    num_items: int
    num_pages: int
    pages_failed: int
    pages_truncated: int
    loop_rate: float
    figures: tuple[Figure, ...]
    rules: tuple[RuleTally, ...]
    auroc: float | None
    num_blocks: int
    seconds_mean: float | None
    seconds_median: float | None
    cpu_seconds_mean: float | None
    cpu_seconds_median: float | None
    threads: tuple[int, ...]
    tokens_mean: float | None

    def figure(self, name: str) -> Estimate | None:
        """The estimate of a metric by name; None where no item has it."""
        return next((f.estimate for f in self.figures if f.metric.name == name), None)


def aggregate(name: str, scores: Sequence[ItemScore]) -> Aggregate:
    """Mean, median and interval of every metric over the items that have it."""
    pages = sum(score.pages for score in scores)
    timed = [s.seconds / s.pages for s in scores if s.seconds is not None and s.pages]
    worked = [s.cpu_seconds / s.pages for s in scores if s.cpu_seconds is not None and s.pages]
    counted = [s for s in scores if s.tokens is not None and s.pages]
    judged = [block for score in scores for block in score.judged]
    return Aggregate(
        name=name,
        num_items=len(scores),
        num_pages=pages,
        pages_failed=sum(score.pages_failed for score in scores),
        pages_truncated=sum(score.pages_truncated for score in scores),
        loop_rate=fmean(score.looping for score in scores) if scores else 0.0,
        figures=tuple(_figures(scores)),
        rules=_rule_tallies(scores),
        auroc=auroc_of_wrong(judged),
        num_blocks=len(judged),
        seconds_mean=fmean(timed) if timed else None,
        seconds_median=median(timed) if timed else None,
        cpu_seconds_mean=fmean(worked) if worked else None,
        cpu_seconds_median=median(worked) if worked else None,
        threads=tuple(sorted({count for score in scores for count in score.threads})),
        tokens_mean=(
            sum(s.tokens or 0 for s in counted) / sum(s.pages for s in counted) if counted else None
        ),
    )


def bench_score(scores: Sequence[ItemScore]) -> float | None:
    """olmOCR-bench's own score: the plain mean of the pass rates by rule file.

    Baseline rules count as a file of their own. None without rules.
    """
    files: dict[str, list[bool]] = {}
    for score in scores:
        for outcome in score.rules:
            name = "baseline" if outcome.type == "baseline" else score.item.group
            files.setdefault(name, []).append(outcome.passed)
    return fmean(fmean(passed) for passed in files.values()) if files else None


def _figures(scores: Sequence[ItemScore]) -> list[Figure]:
    found = []
    for metric in METRICS:
        values = [getattr(score, metric.name) for score in scores]
        result = estimate([value for value in values if value is not None])
        if result is not None:
            found.append(Figure(metric=metric, estimate=result))
    return found


def _rule_tallies(scores: Sequence[ItemScore]) -> tuple[RuleTally, ...]:
    outcomes = [outcome for score in scores for outcome in score.rules]
    return tuple(
        RuleTally(
            type=kind,
            passed=sum(o.passed for o in outcomes if o.type == kind),
            total=sum(o.type == kind for o in outcomes),
        )
        for kind in sorted({outcome.type for outcome in outcomes})
    )
