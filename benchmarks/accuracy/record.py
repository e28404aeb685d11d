"""Writes the figures of kept predictions as files to commit: numbers alone, no text.

    python benchmarks/accuracy/record.py NAME DATASET PREDICTIONS OUT [MACHINE]

PREDICTIONS is one engine's folder of an `ocria eval --work` run. OUT/NAME-<engine>.csv gets a row a
document, OUT/NAME-<engine>.json the JSON line of `ocria eval` with date and the machine that read
them, this one if it is not named.
"""

from __future__ import annotations

import csv
import json
import os
import platform
import sys
from datetime import UTC, datetime
from pathlib import Path

from ocria.eval import EvalOptions, evaluate
from ocria.eval.figures import METRICS
from ocria.eval.score import ItemScore


def main(name: str, machine: str, dataset: Path, predictions: Path, out: Path) -> None:
    """Score and write both files."""
    report = evaluate(EvalOptions(dataset=dataset, pred=predictions))
    (run,) = report.runs
    out.mkdir(parents=True, exist_ok=True)
    stem = f"{name}-{run.engine}"
    with (out / f"{stem}.csv").open("w", encoding="utf-8", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        names = [metric.name for metric in METRICS]
        writer.writerow(["document", "truth_origin", "pages", "looping", *names, "seconds"])
        writer.writerows(_row(item.score) for item in run.items)
    row = json.loads(report.as_json_line())
    row.update(dataset=name, date=datetime.now(UTC).date().isoformat(), machine=machine)
    # A line a figure: files of a figure's parts on lines of their own are twice as large.
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(value)}" for key, value in row.items())
    (out / f"{stem}.json").write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")


def _row(score: ItemScore) -> list[str | int]:
    values = [getattr(score, metric.name) for metric in METRICS]
    return [
        score.item.name,
        score.item.truth_origin,
        score.pages,
        int(score.looping),
        *("" if value is None else f"{value:.4f}" for value in values),
        "" if score.seconds is None else f"{score.seconds:.2f}",
    ]


if __name__ == "__main__":
    if len(sys.argv) not in (5, 6):
        sys.exit(__doc__)
    here = f"{platform.machine()}, {os.cpu_count()} cores"
    main(sys.argv[1], (sys.argv[5:] or [here])[0], *map(Path, sys.argv[2:5]))
