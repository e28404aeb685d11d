"""Holds our scorer against the published figures of OpenDataLoader-bench.

    python benchmarks/accuracy/validate_opendataloader.py CHECKOUT > validate_opendataloader.csv

CHECKOUT is a copy of github.com/opendataloader-project/opendataloader-bench: 200 truths in
Markdown, the outputs of seven engines, and their published score of every document. Its three
figures that we also have are worked out with our code: NID (similarity of the whole page, tables
as HTML), TEDS and TEDS-S of a page. One row an engine and figure: the published mean, ours, the
largest difference of a document, and how many documents differ by over a hundredth.
"""

from __future__ import annotations

import csv
import html
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from rapidfuzz.distance import Indel

from ocria.eval.table_scores import teds_of_page
from ocria.eval.tables import Table, tables_in

FIGURES = ("nid", "teds", "teds_s")
NOTABLE = 0.01


def main(checkout: Path) -> None:
    """Write the comparison of every engine to standard output."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["engine", "figure", "documents", "published_mean", "our_mean", "mean_abs_difference",
         "max_difference", "documents_over_0.01"]
    )  # fmt: skip
    for folder in sorted((checkout / "prediction").iterdir()):
        rows = list(compare_engine(checkout / "ground-truth" / "markdown", folder))
        for figure in FIGURES:
            pairs = [(published, ours) for name, published, ours in rows if name == figure]
            gaps = [abs(published - ours) for published, ours in pairs]
            writer.writerow(
                [folder.name, figure, len(pairs), *_means(pairs), f"{sum(gaps) / len(gaps):.4f}",
                 f"{max(gaps):.4f}", sum(gap > NOTABLE for gap in gaps)]
            )  # fmt: skip


def compare_engine(truths: Path, folder: Path) -> Iterator[tuple[str, float, float]]:
    """Yield (figure, published, ours) for each document that the engine is scored on."""
    evaluation = json.loads((folder / "evaluation.json").read_text(encoding="utf-8"))
    for document in evaluation["documents"]:
        name = f"{document['document_id']}.md"
        truth = (truths / name).read_text(encoding="utf-8")
        path = folder / "markdown" / name
        found = path.read_text(encoding="utf-8") if path.is_file() else ""
        for figure, ours in our_figures(truth, found).items():
            published = document["scores"][figure]
            if published is not None:
                yield figure, published, ours


def our_figures(truth: str, found: str) -> dict[str, float]:
    """NID, TEDS and TEDS-S of one page by our table reader and tree distance."""
    truth_tables, found_tables = tables_in(truth), tables_in(found)
    return {
        "nid": Indel.normalized_similarity(flat(truth), flat(found)),
        "teds": teds_of_page(truth_tables, found_tables),
        "teds_s": teds_of_page(truth_tables, found_tables, structure_only=True),
    }


def flat(markdown: str) -> str:
    """The page with pipe tables written as HTML, all white space as single spaces."""
    lines = markdown.split("\n")
    written: list[str] = []
    index = 0
    while index < len(lines):
        end = index
        while end < len(lines) and "|" in lines[end]:
            end += 1
        tables = tables_in("\n".join(lines[index:end])) if end - index > 1 else ()
        if len(tables) == 1 and "<table" not in "".join(lines[index:end]):
            written.append(_as_html(tables[0]))
            index = end
        else:
            written.append(lines[index])
            index += 1
    return " ".join("\n".join(written).split())


def _as_html(table: Table) -> str:
    rows = []
    for number, row in enumerate(table.rows):
        tag = "td" if number else "th"
        cells = (f"<{tag}>{html.escape(cell.text)}</{tag}>" for cell in row)
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return f"<table>{''.join(rows)}</table>"


def _means(pairs: list[tuple[float, float]]) -> list[str]:
    return [f"{sum(pair[side] for pair in pairs) / len(pairs):.4f}" for side in (0, 1)]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
