"""Holds our olmOCR-bench rules against the bench's own code, verdict by verdict.

    pip install beautifulsoup4 tqdm
    python benchmarks/accuracy/validate_olmocr_rules.py CHECKOUT > validate_olmocr_rules.csv

CHECKOUT is a copy of github.com/allenai/olmocr. Its sample rules are decided by both on its sample
reading of each page, and on readings that we damage: letters changed, lines dropped, shuffled or
repeated. Rules of type math are left out, as theirs need a browser. One row a rule type.
"""

from __future__ import annotations

import csv
import importlib
import json
import random
import sys
from collections import Counter
from pathlib import Path
from types import ModuleType
from typing import Any

from ocria.eval.rules import read_rule

NUM_DAMAGED = 12
SEED = 5


def main(checkout: Path) -> None:
    """Write verdicts and disagreements by rule type to standard output."""
    bench = their_rules(checkout)
    sample = checkout / "olmocr" / "bench" / "sample_data"
    rows = [
        json.loads(line)
        for name in ("dataset.jsonl", "blanks.jsonl")
        for line in (sample / name).read_text(encoding="utf-8").splitlines()
        if line.strip()
    ]
    pages = sorted({(row["pdf"], row["page"]) for row in rows})
    rows += [
        {"pdf": pdf, "page": page, "id": f"{pdf}-{page}", "type": "baseline"} for pdf, page in pages
    ]
    verdicts: Counter[tuple[str, bool, bool]] = Counter()
    for row in rows:
        if row["type"] != "math":
            verdicts.update(compare(bench, row, readings(sample, row)))
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(["rule", "verdicts", "they_pass", "we_pass", "disagreements"])
    for kind in sorted({key[0] for key in verdicts}):
        counts = {key[1:]: n for key, n in verdicts.items() if key[0] == kind}
        passed = [sum(n for key, n in counts.items() if key[side]) for side in (0, 1)]
        differ = sum(n for key, n in counts.items() if key[0] != key[1])
        writer.writerow([kind, sum(counts.values()), *passed, differ])


def their_rules(checkout: Path) -> ModuleType:
    """Their module of rules, without the browser that only their math rule needs."""
    sys.path.insert(0, str(checkout))
    package = ModuleType("olmocr")
    package.__path__ = [str(checkout / "olmocr")]
    render = ModuleType("olmocr.bench.katex.render")
    render.compare_rendered_equations = None  # type: ignore[attr-defined]
    render.render_equation = None  # type: ignore[attr-defined]
    sys.modules.update({"olmocr": package, "olmocr.bench.katex.render": render})
    return importlib.import_module("olmocr.bench.tests")


def readings(sample: Path, row: dict[str, Any]) -> list[str]:
    """The sample reading of a rule's page, damaged copies of it, and nothing."""
    stem = row["pdf"].removesuffix(".pdf")
    path = sample / "olmocr_pipeline" / f"{stem}_pg{row['page']}_repeat1.md"
    if not path.is_file():
        return []
    whole = path.read_text(encoding="utf-8")
    source = random.Random(f"{SEED}{row['id']}")
    return [whole, "", *(damaged(whole, source) for _ in range(NUM_DAMAGED))]


def damaged(text: str, source: random.Random) -> str:
    """A reading with mistakes."""
    rate = source.choice((0.0, 0.01, 0.05))
    lines = "".join(source.choice("aeiou1") if source.random() < rate else c for c in text)
    kept = [line for line in lines.split("\n") if source.random() > 0.1]
    if source.random() < 0.4:
        source.shuffle(kept)
    if kept and source.random() < 0.2:
        kept.extend([source.choice(kept)] * 40)
    return "\n".join(kept)


def compare(
    bench: ModuleType, row: dict[str, Any], texts: list[str]
) -> list[tuple[str, bool, bool]]:
    """(type, their verdict, our verdict) for each reading."""
    classes = {
        "present": bench.TextPresenceTest,
        "absent": bench.TextPresenceTest,
        "order": bench.TextOrderTest,
        "table": bench.TableTest,
        "baseline": bench.BaselineTest,
    }
    theirs, ours = classes[row["type"]](**row), read_rule(row)
    return [(row["type"], bool(theirs.run(text)[0]), ours.holds(text)) for text in texts]


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(Path(sys.argv[1]))
