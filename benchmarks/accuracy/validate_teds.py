"""Holds our TEDS against the PubTabNet authors' implementation on made-up table pairs.

    pip install table-recognition-metric
    python benchmarks/accuracy/validate_teds.py > validate_teds.csv

Tables are random grids with spans; each is paired with a copy in which cells are misread, rows or
cells dropped or added, and spans broken. Texts carry no marks and every cell is `td`: theirs
counts marks inside a cell as characters and a heading cell as another kind of node, ours does not.
"""

from __future__ import annotations

import csv
import random
import sys
from dataclasses import replace

from table_recognition_metric import TEDS

from ocria.eval.table_scores import teds
from ocria.eval.tables import LooseCell, place_cells

NUM_PAIRS = 200
SEED = 11
Rows = list[list[LooseCell]]


def main() -> None:
    """Write the comparison to standard output."""
    source = random.Random(SEED)
    pairs = [(rows, mutated(rows, source)) for rows in (grid(source) for _ in range(NUM_PAIRS))]
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(
        ["implementation", "figure", "pairs", "their_mean", "our_mean", "max_difference"]
    )
    for structure_only in (False, True):
        reference = TEDS(structure_only=structure_only)
        theirs = [float(reference(as_html(b), as_html(a))) for a, b in pairs]
        ours = [
            teds(place_cells(a), place_cells(b), structure_only=structure_only) for a, b in pairs
        ]
        gap = max(abs(x - y) for x, y in zip(theirs, ours, strict=True))
        writer.writerow(
            ["table-recognition-metric", "teds_s" if structure_only else "teds", len(pairs),
             f"{sum(theirs) / len(pairs):.4f}", f"{sum(ours) / len(pairs):.4f}", f"{gap:.6f}"]
        )  # fmt: skip


def grid(source: random.Random) -> Rows:
    """Two to nine rows of two to seven cells, some with spans."""
    columns = source.randint(2, 7)
    return [
        [
            LooseCell(
                text=word(source),
                rowspan=source.choices((1, 2), (9, 1))[0],
                colspan=source.choices((1, 2, 3), (9, 1, 1))[0],
            )
            for _ in range(columns)
        ]
        for _ in range(source.randint(2, 9))
    ]


def mutated(rows: Rows, source: random.Random) -> Rows:
    """A misreading of a table; never empty."""
    changed: Rows = []
    for row in rows:
        if source.random() < 0.1:
            continue
        cells = [misread(cell, source) for cell in row if source.random() > 0.08]
        if source.random() < 0.1:
            cells.insert(source.randint(0, len(cells)), LooseCell(text=word(source)))
        changed.append(cells)
    return changed if any(changed) else rows


def misread(cell: LooseCell, source: random.Random) -> LooseCell:
    """The cell with letters changed, its span lost, or as it was."""
    kind = source.random()
    if kind < 0.25:
        text = "".join(source.choice("abc") if source.random() < 0.3 else c for c in cell.text)
        return replace(cell, text=text)
    return replace(cell, colspan=1, rowspan=1) if kind < 0.35 else cell


def word(source: random.Random) -> str:
    """Up to nine letters and digits; at times nothing."""
    return "".join(source.choices("abcdefghij0123456789", k=source.randint(0, 9)))


def as_html(rows: Rows) -> str:
    """A table that both packages read."""
    lines = []
    for row in rows:
        cells = "".join(
            f'<td rowspan="{c.rowspan}" colspan="{c.colspan}">{c.text}</td>' for c in row
        )
        lines.append(f"<tr>{cells}</tr>")
    return f"<html><body><table>{''.join(lines)}</table></body></html>"


if __name__ == "__main__":
    main()
