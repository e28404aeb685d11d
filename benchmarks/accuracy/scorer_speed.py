"""CPU seconds that `ocria eval` takes to score one page of the hardest kinds.

    python benchmarks/accuracy/scorer_speed.py [--runs N]

The pages are made here, from a fixed seed. Process time, so that other work on the machine counts
little; p20, p50 and p80 of the runs. The aim for each page is 2 s on one core.
"""

from __future__ import annotations

import argparse
import random
import time
from collections.abc import Callable
from pathlib import Path
from statistics import quantiles

from ocria.eval.items import Item, Truth
from ocria.eval.predictions import PagePrediction, Prediction, ReadBlock
from ocria.eval.score import score_item
from ocria.eval.truth import truth_from_markdown

SEED = 3
WORDS = (
    "amount",
    "balance",
    "capital",
    "debit",
    "estate",
    "freight",
    "gross",
    "interest",
    "ledger",
)
PARTS = (r"\frac{{{0}}}{{{1}}}", r"\sqrt{{{0}+{1}}}", r"x_{{{0}}}^{{{1}}}", r"\alpha_{{{0}}}-{1}")


def main() -> None:
    """Print a line a page: kind, characters, p20, p50, p80."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=5)
    runs = parser.parse_args().runs
    print("page,chars,p20_s,p50_s,p80_s")
    for kind, maker in PAGES.items():
        text, misread = maker(random.Random(SEED))
        times = sorted(_seconds(text, misread) for _ in range(runs))
        p20, *_, p80 = quantiles(times, n=5, method="inclusive")
        p50 = times[len(times) // 2]
        print(f"{kind},{len(text)},{p20:.2f},{p50:.2f},{p80:.2f}", flush=True)


def _seconds(text: str, misread: str) -> float:
    truth = truth_from_markdown(text)
    blocks = tuple(ReadBlock(text=part, confidence=0.5) for part in misread.split("\n\n"))
    prediction = Prediction(pages=(PagePrediction(number=1, markdown=misread, blocks=blocks),))
    start = time.process_time()
    score_item(_item(truth), prediction)
    return time.process_time() - start


def _item(truth: Truth) -> Item:
    return Item(
        name="page", path=Path("page"), pages=None, group="speed", kind="", lang="en",
        metric="markdown", truth_origin="exact", truth=truth,
    )  # fmt: skip


def _tables(rng: random.Random) -> tuple[str, str]:
    """60 tables of 8 rows and 5 columns; a tenth of the cells misread, two lost in every table."""
    right, wrong = [], []
    for _ in range(60):
        rows = [[f"{rng.choice(WORDS)} {rng.randrange(10**4)}" for _ in range(5)] for _ in range(8)]
        right.append(_pipes(rows))
        # At both ends, so that no row there is equal and nothing can be cut short.
        kept = [rows[0][1:], *rows[1:-1], rows[-1][1:]]
        wrong.append(_html([[_misread(cell, rng) for cell in row] for row in kept]))
    return "\n\n".join(right), "\n\n".join(wrong)


def _one_table(rng: random.Random) -> tuple[str, str]:
    """One table of 200 rows and 8 columns, far over what is compared exactly."""
    rows = [[f"{rng.choice(WORDS)} {rng.randrange(10**4)}" for _ in range(8)] for _ in range(200)]
    misread = [[_misread(cell, rng) for cell in row] for row in rows if rng.random() > 0.02]
    return _pipes(rows), _pipes(misread)


def _formulas(rng: random.Random) -> tuple[str, str]:
    """1,500 formulas, nearly every one misread, one in fifty lost."""
    right = [_formula(rng) for _ in range(1500)]
    kept = (formula for formula in right if rng.random() > 0.02)
    wrong = [f.replace("1", "7").replace("x", "z") for f in kept]
    return _dollars(right), _dollars(wrong)


def _prose(rng: random.Random) -> tuple[str, str]:
    """50,000 characters in paragraphs, one in twelve words misread."""
    paragraphs = [[rng.choice(WORDS) for _ in range(90)] for _ in range(70)]
    text = "\n\n".join(" ".join(words) for words in paragraphs)[:50_000]
    return text, " ".join(_misread(word, rng) for word in text.split(" "))


def _unlike(rng: random.Random) -> tuple[str, str]:
    """50,000 characters read as 50,000 others: nothing can be cut short."""
    letters = "abcdefghijklmnopqrstuvwxyz     "
    pages = ["".join(rng.choices(letters, k=50_000)) for _ in range(2)]
    return pages[0], pages[1]


def _misread(text: str, rng: random.Random) -> str:
    return text.replace("a", "o").replace("1", "l") if rng.random() < 0.1 else text


def _pipes(rows: list[list[str]]) -> str:
    lines = [f"| {' | '.join(row)} |" for row in rows]
    return "\n".join([lines[0], "|" + " --- |" * len(rows[0]), *lines[1:]])


def _html(rows: list[list[str]]) -> str:
    lines = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return f"<table>{''.join(lines)}</table>"


def _formula(rng: random.Random) -> str:
    return " + ".join(
        rng.choice(PARTS).format(rng.randrange(100), rng.choice("abcxyz")) for _ in range(3)
    )


def _dollars(formulas: list[str]) -> str:
    return "\n\n".join(f"$$\n{formula}\n$$" for formula in formulas)


PAGES: dict[str, Callable[[random.Random], tuple[str, str]]] = {
    "60 tables": _tables,
    "one table of 1600 cells": _one_table,
    "1500 formulas": _formulas,
    "50000 characters": _prose,
    "50000 characters, all wrong": _unlike,
}


if __name__ == "__main__":
    main()
