"""Predictions that `--pred` names: anyone's Markdown, or what a run here kept."""

from __future__ import annotations

import logging
import os
from pathlib import Path

from ocria.eval.prediction_store import (
    MAX_NAME_BYTES,
    EngineMark,
    Journal,
    PredictionError,
    file_sha256,
    read_journal,
    written_markdown,
)
from ocria.eval.predictions import PagePrediction, Prediction

_log = logging.getLogger(__name__)


def read_prediction(
    folder: Path, name: str, *, source: Path, pages: tuple[int, ...] | None = None
) -> Prediction:
    """The prediction `<name>.md`, or the journal of a run here that spells the same.

    A journal knows more (pages, seconds, confidence), but Markdown that differs is what counts. Of
    a journal only `pages` (None: all) are taken, and only where it is of the file `source`; without
    Markdown it must hold all of `pages`.

    Raises:
        PredictionError: there is none, it is not finished, or it cannot be read.
    """
    path, journal_path = _paths(folder, name)
    if len(os.fsencode(journal_path.name)) > MAX_NAME_BYTES:
        raise PredictionError(f"no prediction of {name}: the name is too long")
    try:
        written = path.read_bytes()
        journal = _journal_of(journal_path, written)
        if journal is None:
            page = PagePrediction(number=1, markdown=written.decode("utf-8"))
            return Prediction(pages=(page,))
    except FileNotFoundError as error:
        if not journal_path.is_file():
            raise PredictionError(f"no prediction {name}.md") from error
        journal = _finished(journal_path, pages)
    except (OSError, UnicodeDecodeError) as error:
        raise PredictionError(f"prediction {name}.md cannot be read: {error}") from error
    if journal.mark.get("source_sha256") not in (None, "", file_sha256(source)):
        raise PredictionError(f"prediction of {name} is of another file of that name")
    found = tuple(page for page in journal.pages if pages is None or page.number in pages)
    if not found:
        raise PredictionError(f"prediction of {name} holds no page that is asked for")
    return Prediction(pages=found)


def read_mark(folder: Path, name: str) -> EngineMark | None:
    """Who made a prediction; None where that is not written down, or the Markdown was changed."""
    path, journal_path = _paths(folder, name)
    try:
        journal = read_journal(journal_path)
        is_own = not path.is_file() or written_markdown(journal.pages) == path.read_bytes()
        return EngineMark(**journal.mark) if is_own else None
    except (OSError, PredictionError, TypeError):
        return None


def _paths(folder: Path, name: str) -> tuple[Path, Path]:
    return folder / f"{name}.md", folder / f"{name}.pages.jsonl"


def _journal_of(path: Path, written: bytes) -> Journal | None:
    """The journal where its pages spell exactly what was written; None where they do not."""
    if not path.is_file():
        return None
    try:
        journal = read_journal(path)
    except PredictionError as error:
        _log.warning("only the Markdown is used, without seconds and confidence: %s", error)
        return None
    return journal if journal.pages and written_markdown(journal.pages) == written else None


def _finished(path: Path, pages: tuple[int, ...] | None) -> Journal:
    """The journal, if it holds all `pages`: of a whole file it cannot say whether it is whole."""
    journal = read_journal(path)
    if pages is None or not set(pages) <= {page.number for page in journal.pages}:
        raise PredictionError(
            f"{path.name} is of a run that was stopped: let it finish (eval without --pred), "
            "or put the Markdown beside it"
        )
    return journal
