"""Differences of two texts as HTML marks, word by word. All text is escaped."""

from __future__ import annotations

import html
import re

from rapidfuzz.distance import Levenshtein

from ocria.eval.tables import Table

MAX_WORDS = 20_000
_CONTROL = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def safe(text: str) -> str:
    """Text for HTML: escaped, without control, direction-changing and surrogate characters."""
    return html.escape(_CONTROL.sub("\ufffd", text))


def marked_differences(truth: str, prediction: str) -> str:
    """The prediction with missing words as <del> and words that are not in the truth as <ins>.

    Both are normalised texts. Past MAX_WORDS words the prediction is shown without marks.
    """
    left, right = truth.split(), prediction.split()
    if max(len(left), len(right)) > MAX_WORDS:
        return safe(prediction)
    parts: list[str] = []
    for step in Levenshtein.opcodes(left, right):
        missing = safe(" ".join(left[step.src_start : step.src_end]))
        found = safe(" ".join(right[step.dest_start : step.dest_end]))
        if step.tag == "equal":
            parts.append(found)
            continue
        if missing:
            parts.append(f"<del>{missing}</del>")
        if found:
            parts.append(f"<ins>{found}</ins>")
    return " ".join(parts)


def table_html(table: Table) -> str:
    """A table of ours as HTML, spans included."""
    rows = "".join(
        "<tr>"
        + "".join(
            f'<td rowspan="{c.rowspan}" colspan="{c.colspan}">{safe(c.text)}</td>' for c in row
        )
        + "</tr>"
        for row in table.rows
    )
    return f"<table>{rows}</table>"
