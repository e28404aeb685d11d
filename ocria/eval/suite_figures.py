"""The figures that the frozen self-made suites exist for, each by its own name.

They are taken from exact truth alone, and told apart by the `kind` of an item, so that any part of
the suites can be run by itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean

from ocria.eval.bootstrap import estimate
from ocria.eval.confidence import JudgedBlock, auroc_of_wrong
from ocria.eval.score import ItemScore

MAX_DISPLACED = 0.01
"""Share of a page's anchor words that may stand elsewhere where its order is right.

A page has some 300: three misread words may meet by chance, a moved line is more.
"""
LOW_CONFIDENCE = 0.6
"""Below it `ocria parse` calls the reading of a page doubtful."""

_Scores = Sequence[ItemScore]


@dataclass(frozen=True, kw_only=True)
class SuiteFigure:
    """One figure by name over `n` pages; `ci95` where it is a mean over them."""

    name: str
    title: str
    value: float
    n: int
    ci95: tuple[float, float] | None = None
    is_count: bool = False

    @property
    def text(self) -> str:
        """The value; counts without decimals."""
        return f"{self.value:.0f}" if self.is_count else f"{self.value:.4f}"


def suite_figures(scores: _Scores) -> tuple[SuiteFigure, ...]:
    """Every figure that the items have truth for; none for data sets of other kinds."""
    exact = [score for score in scores if score.item.truth_origin == "exact"]
    found: list[SuiteFigure | None] = []
    for name, title, kinds, measure in _MEANS:
        values = [measure(score) for score in _of(exact, *kinds)]
        found.append(_mean(name, title, [value for value in values if value is not None]))
    found += [_verbatim(exact), _invented(exact), _told_apart(exact), _loops(exact)]
    return tuple(figure for figure in found if figure is not None)


def _in_order(score: ItemScore) -> float:
    """Where too little was read to tell, the order is not right."""
    return float(score.order_edit is not None and score.order_edit <= MAX_DISPLACED)


def _is_doubtful(score: ItemScore) -> float | None:
    """None from an engine without confidence; a page on which it read nothing says enough."""
    if not score.has_text:
        return 1.0
    return None if score.confidence is None else float(score.confidence < LOW_CONFIDENCE)


_Measure = Callable[[ItemScore], float | None]
_MEANS: tuple[tuple[str, str, tuple[str, ...], _Measure], ...] = (
    ("vietnamese_word_f1", "Vietnamese: word F1", ("vietnamese",), lambda s: s.word_f1),
    ("two_column_pages_in_order", "two columns: pages read in order", ("columns/2",), _in_order),
    ("three_column_pages_in_order", "three columns: pages read in order", ("columns/3",),
     _in_order),
    ("suite_table_teds", "tables: TEDS", ("table/",), lambda s: s.teds),
    ("unknown_script_invented_words", "unknown scripts: share of words invented",
     ("unknown script/",), lambda s: s.invented_words),
    ("unknown_script_confidence", "unknown scripts: confidence of a page", ("unknown script/",),
     lambda s: s.confidence),
    ("unknown_script_doubtful_pages",
     f"unknown scripts: pages under confidence {LOW_CONFIDENCE} or without text",
     ("unknown script/",), _is_doubtful),
)  # fmt: skip
_EMPTY_KINDS = ("blank/", "figure/")
_KNOWN_KINDS = ("columns/", "vietnamese")
_SUITE_KINDS = (*_EMPTY_KINDS, *_KNOWN_KINDS, "table/", "random strings", "repetition",
                "unknown script/")  # fmt: skip


def _of(scores: _Scores, *kinds: str) -> list[ItemScore]:
    return [score for score in scores if score.item.kind.startswith(kinds)]


def _mean(name: str, title: str, values: list[float]) -> SuiteFigure | None:
    found = estimate(values)
    if found is None:
        return None
    interval = (found.low, found.high)
    return SuiteFigure(name=name, title=title, value=found.mean, n=found.n, ci95=interval)


def _verbatim(scores: _Scores) -> SuiteFigure | None:
    """Over characters, not pages."""
    pages = [s for s in _of(scores, "random strings") if s.cer is not None and s.truth_chars]
    if not pages:
        return None
    wrong = sum((s.cer or 0.0) * s.truth_chars for s in pages)
    right = 1.0 - wrong / sum(s.truth_chars for s in pages)
    title = "random strings: characters right"
    return SuiteFigure(name="verbatim_chars", title=title, value=right, n=len(pages))


def _invented(scores: _Scores) -> SuiteFigure | None:
    """All of them together: the aim is none."""
    counts = [s.invented_chars for s in _of(scores, *_EMPTY_KINDS) if s.invented_chars is not None]
    if not counts:
        return None
    title = "blank and figure-only pages: characters invented, in all"
    return SuiteFigure(
        name="empty_pages_invented_chars", title=title, value=sum(counts), n=len(counts),
        is_count=True,
    )  # fmt: skip


def _told_apart(scores: _Scores) -> SuiteFigure | None:
    """Chance that a page in an unknown script has lower confidence than one in a known script."""
    pages = [
        JudgedBlock(confidence=score.confidence, wrong=is_unknown)
        for is_unknown, kinds in ((True, ("unknown script/",)), (False, _KNOWN_KINDS))
        for score in _of(scores, *kinds)
        if score.confidence is not None
    ]
    value = auroc_of_wrong(pages)
    if value is None:
        return None
    title = "unknown scripts: AUROC of low confidence against known ones"
    return SuiteFigure(
        name="unknown_script_confidence_auroc", title=title, value=value, n=len(pages)
    )


def _loops(scores: _Scores) -> SuiteFigure | None:
    pages = _of(scores, *_SUITE_KINDS)
    if not pages:
        return None
    share = fmean(score.looping for score in pages)
    title = "pages that loop, of all suites"
    return SuiteFigure(name="suite_loop_share", title=title, value=share, n=len(pages))
