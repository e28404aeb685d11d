"""Run engines over a dataset, or take kept predictions, and score both."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

from ocria.errors import InputError, OcriaError, OutputError, UsageError
from ocria.eval.datasets import load_dataset
from ocria.eval.drawn_ahead import Waiting
from ocria.eval.engines import Engine, PageImage, UnreadablePage, make_engine
from ocria.eval.formula_pictures import FormulaPictures, open_formula_pictures
from ocria.eval.given_predictions import read_mark, read_prediction
from ocria.eval.items import Dataset, Item, Problem
from ocria.eval.one_by_one import read_one_by_one
from ocria.eval.options import EvalOptions
from ocria.eval.page_images import page_images
from ocria.eval.prediction_store import (
    EngineMark,
    PredictionError,
    PredictionStore,
    asked_pages,
    file_sha256,
)
from ocria.eval.predictions import FAILED, PagePrediction, Prediction
from ocria.eval.report import AS_LATEX, EngineRun, EvalReport, ScoredItem, summarise
from ocria.eval.score import ItemScore, score_item
from ocria.eval.side_by_side import (
    WhatIsRead,
    is_for_company,
    read_side_by_side,
    what_is_read,
)

Notify = Callable[[str], None]
_log = logging.getLogger(__name__)


def evaluate(options: EvalOptions, *, notify: Notify = lambda line: None) -> EvalReport:
    """Evaluate as the options say; `notify` hears one line an item.

    Raises InputError where the dataset is of no known layout, UsageError for an engine that is
    unknown or where nothing is left to score, WeightsError for one that is not installed,
    OutputError for a work folder that cannot be written. Everything else that goes wrong is named
    in the report.
    """
    dataset = _selected(load_dataset(options.dataset), options)
    pictures = None if options.katex is None else open_formula_pictures(options.katex)
    if options.pred is not None:
        if not options.pred.is_dir():
            raise InputError(f"no such folder: {options.pred}", hint="--pred wants a folder")
        runs = [_score_predictions(dataset, options, pictures)]
    else:
        _make_work_folder(options.work)
        # All of them first: a missing one must not be found after hours with another.
        engines = [make_engine(name, options) for name in options.engines]
        runs = [_run_engine(engine, dataset, options, pictures, notify) for engine in engines]
    if pictures is None:
        return EvalReport(dataset=dataset, dpi=options.dpi, runs=tuple(runs))
    return EvalReport(
        dataset=_with_undrawn(dataset, pictures),
        dpi=options.dpi,
        runs=tuple(runs),
        formulas_compared=f"{AS_LATEX}, and as drawn by KaTeX {pictures.version}",
    )


def _with_undrawn(dataset: Dataset, pictures: FormulaPictures) -> Dataset:
    """The dataset; that the browser failed is a problem of the whole evaluation."""
    if not pictures.num_failed:
        return dataset
    what = f"{pictures.num_failed} formulas were not drawn: the browser failed"
    return replace(dataset, problems=(*dataset.problems, Problem(where="--katex", what=what)))


def _make_work_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {path}: {error.strerror}", hint="name another with --work"
        ) from error


def _selected(dataset: Dataset, options: EvalOptions) -> Dataset:
    """What the options leave of a dataset; raises UsageError where that is nothing."""
    items = [
        item
        for item in dataset.items
        if options.unscored or item.metric != "none"
        if options.only is None or options.only in item.kind or options.only in item.group
    ]
    # Where there is nothing but problems, naming them is the result.
    if not items and (dataset.items or not dataset.problems):
        hint = "see --only, and what the dataset lists"
        if dataset.problems:
            first = dataset.problems[0]
            hint += f"; not all of it can be used: {first.where}: {first.what}"
        raise UsageError("nothing to score", hint=hint)
    if options.limit is not None:
        items = _spread(items)[: options.limit]
    return Dataset(
        name=dataset.name, root=dataset.root, layout=dataset.layout,
        items=tuple(items), problems=dataset.problems,
    )  # fmt: skip


def _spread(items: list[Item]) -> list[Item]:
    """The first of each set, then the second of each: a small limit still sees every set."""
    turn: dict[str, int] = {}
    keyed = []
    for item in items:
        turn[item.group] = turn.get(item.group, 0) + 1
        keyed.append((turn[item.group], item))
    return [item for _, item in sorted(keyed, key=lambda pair: pair[0])]


def _score_predictions(
    dataset: Dataset, options: EvalOptions, pictures: FormulaPictures | None
) -> EngineRun:
    assert options.pred is not None
    scored: list[ScoredItem] = []
    problems: list[Problem] = []
    for item in dataset.items:
        try:
            prediction = read_prediction(
                options.pred, item.name, source=item.path, pages=item.pages
            )
        except PredictionError as error:
            problems.append(Problem(where=item.name, what=str(error)))
            continue
        score = score_item(item, prediction, pictures)
        scored.append(ScoredItem(score=score, prediction=prediction))
    marks = (read_mark(options.pred, item.score.item.name) for item in scored)
    mark = next((mark for mark in marks if mark is not None), None)
    engine = mark.engine if mark else options.pred.name
    return summarise(engine, mark.version if mark else "", scored, problems)


def _run_engine(
    engine: Engine,
    dataset: Dataset,
    options: EvalOptions,
    pictures: FormulaPictures | None,
    notify: Notify,
) -> EngineRun:
    mark = EngineMark(
        engine=engine.name, version=engine.version, dpi=options.dpi,
        text_layer=options.with_text_layer,
    )  # fmt: skip
    scored: list[ScoredItem] = []
    problems: list[Problem] = []
    read: dict[WhatIsRead, Prediction] = {}
    if is_for_company(engine):
        waiting = _waiting(mark, dataset, options)
        read = read_side_by_side(engine, waiting, threads=options.num_threads, notify=notify)
    for number, item in _own_items(dataset, options):
        prediction, is_kept = read.get(what_is_read(item)), False
        try:
            if prediction is None:
                store = _store(mark, item, options)
                prediction, is_kept = _predict(engine, store, item, options)
        except OutputError:
            raise  # No later reading could be kept either.
        except (PredictionError, OcriaError) as error:
            problems.append(Problem(where=item.name, what=str(error)))
            continue
        failed = [page for page in prediction.pages if page.status == FAILED]
        problems.extend(
            Problem(where=f"{item.name} page {page.number}", what=page.error or FAILED)
            for page in failed
        )
        score = score_item(item, prediction, pictures)
        scored.append(ScoredItem(score=score, prediction=prediction))
        place = f"{number + 1}/{len(dataset.items)}"
        kept = " (kept)" if is_kept else ""
        notify(f"{engine.name} {place} {item.name}{kept}{_absent(score)}")
    return summarise(engine.name, engine.version, scored, problems)


def _own_items(dataset: Dataset, options: EvalOptions) -> Iterator[tuple[int, Item]]:
    """The items of this shard with their numbers."""
    index, count = options.shard
    for number, item in enumerate(dataset.items):
        if number % count == index:
            yield number, item


def _store(mark: EngineMark, item: Item, options: EvalOptions) -> PredictionStore:
    own = replace(mark, source_sha256=file_sha256(item.path), asked=asked_pages(item.pages))
    return PredictionStore(options.work / mark.engine, own)


def _waiting(mark: EngineMark, dataset: Dataset, options: EvalOptions) -> Iterator[Waiting]:
    """Items that are not kept in whole; of items that share a name the first."""
    names: set[str] = set()
    for _, item in _own_items(dataset, options):
        if item.name in names:
            continue
        names.add(item.name)
        store = _store(mark, item, options)
        whole, kept = (None, ()) if options.rerun else _kept_pages(store, item)
        if whole is None:
            done = frozenset(page.number for page in kept)
            pictures = page_images(item.path, item.pages, dpi=options.dpi, done=done)
            yield Waiting(item=item, store=store, kept=kept, pictures=pictures)


def _absent(score: ItemScore) -> str:
    """Words on pages that the data set states and the file does not have."""
    missing = len(score.item.pages or ()) - score.pages
    return f" ({missing} stated page(s) not in the file)" if missing > 0 else ""


def _predict(
    engine: Engine, store: PredictionStore, item: Item, options: EvalOptions
) -> tuple[Prediction, bool]:
    """Kept pages, and those still to read; whether all of them were kept.

    A document that was read in whole is not opened.
    """
    whole, kept = (None, ()) if options.rerun else _kept_pages(store, item)
    if whole is not None:
        return whole, True
    done = frozenset(page.number for page in kept)
    waiting = list(page_images(item.path, item.pages, dpi=options.dpi, done=done))
    if kept and not waiting:
        return Prediction(pages=kept), True
    broken = [page for page in waiting if isinstance(page, UnreadablePage)]
    if broken:
        names = ", ".join(f"page {page.number}: {page.reason}" for page in broken)
        raise InputError(f"cannot be rasterised: {names}")
    pictures = [page for page in waiting if isinstance(page, PageImage)]
    if options.with_text_layer:
        pictures = [replace(page, source=item.path) for page in pictures]
    more = read_one_by_one(engine, pictures, item.lang, options.num_threads)
    return store.keep(item.name, kept, more), False


def _kept_pages(
    store: PredictionStore, item: Item
) -> tuple[Prediction | None, tuple[PagePrediction, ...]]:
    """The whole reading of the item or the pages that there are; none of what cannot be used."""
    try:
        whole, kept = store.finished(item.name), store.kept_pages(item.name)
    except PredictionError as error:
        _log.warning("%s: kept reading not used, read again: %s", item.name, error)
        return None, ()
    return whole, tuple(p for p in kept if item.pages is None or p.number in item.pages)
