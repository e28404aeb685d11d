"""How well the boxes of blocks lie, as the model gives them and snapped to the ink.

    OMP_NUM_THREADS=1 python benchmarks/accuracy/boxes.py --corpus DIR --fonts DIR --keep DIR
        [--count 1] [--seed 7] [--kinds NAME...] > boxes.csv

`--count` held-out pages of each kind are made (`models/recipes/pages`, all kinds with text by
default), read eight side by side with the shipped model, second readings of regions included, and
kept in `--keep`; what is kept is not read again. Then each page's boxes are snapped, which is
timed on one core.

A block of the truth is found where a box read has an IoU of 0.5 with it. Standard output gets a
row a group of blocks: of them the share that is found before and after. `right` are blocks of the
truth that were read, in the same order, with at least 90 % of their letters and digits; they are
held against the box of the block that says so, and grouped by type, kind and number of lines. A
picture has no text: it counts as right where a figure stands at its place in the order. Lines are
counted in the picture, within the truth's box. `left`, `top`, `right`, `bottom`: median errors
in 1/511 of the page's sides.
"""

from __future__ import annotations

import argparse
import csv
import difflib
import pickle
import random
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from ocria.document import Page
from ocria.models.recipes.nano.evaluate import make_pages
from ocria.models.recipes.nano.markup import overlap, read_blocks
from ocria.models.recipes.pages.kinds import KINDS
from ocria.options import ParseOptions
from ocria.pipeline import regions
from ocria.pipeline.box_snapping import snapped
from ocria.pipeline.page_reader import load_page_reader
from ocria.rasterize import PageImage
from ocria.vision import PageLines

Box = tuple[int, int, int, int]
LAST = 511
SIDE_BY_SIDE = 8
POINTS_PER_PIXEL = 0.5
FOUND = 0.5
RIGHT = 0.9
COLUMNS = (
    "group", "name", "blocks", "found_before", "found_after",
    "left_before", "top_before", "right_before", "bottom_before",
    "left_after", "top_after", "right_after", "bottom_after",
)  # fmt: skip


class Kept(NamedTuple):
    """A page as it was made and read: grey pixels [H, W], the truth's markup, the reading."""

    kind: str
    pixels: NDArray[np.uint8]
    markup: str
    page: Page


class Found(NamedTuple):
    """A block of the truth, and the box of a reading before and after.

    Attributes:
        before: the block's that says the same, or the best one of the page.
        after: the same, snapped.
    """

    kind: str
    type: str
    num_lines: int
    truth: Box
    before: Box
    after: Box


def main() -> None:
    """Make and read what is not kept, then print the shares."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    for name in ("corpus", "fonts", "keep"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--count", type=int, default=1)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kinds", nargs="*", choices=tuple(KINDS), default=tuple(KINDS))
    arguments = parser.parse_args()
    arguments.keep.mkdir(parents=True, exist_ok=True)
    _read(arguments)
    every: list[Found] = []
    right: list[Found] = []
    seconds = []
    for path in sorted(arguments.keep.glob("*.pickle")):
        kept = Kept(*pickle.loads(path.read_bytes()))
        started = time.process_time()
        after = snapped(kept.page, PageLines(_rgb(kept.pixels)))
        seconds.append(time.process_time() - started)
        best, said = _blocks(kept, after)
        every += best
        right += said
    milliseconds = [round(1000 * value) for value in seconds]
    print(
        f"{len(seconds)} pages, snapped in {median(milliseconds)} ms (median), "
        f"{max(milliseconds)} ms at most",
        file=sys.stderr,
    )
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow(COLUMNS)
    writer.writerows(_rows(every, right))


def _read(arguments: argparse.Namespace) -> None:
    """Makes the pages and keeps their readings, boxes as the model gave them."""
    kinds = [kind for kind in arguments.kinds if kind != "empty"]
    made = make_pages(arguments.corpus, arguments.fonts, arguments.count, arguments.seed, kinds)
    waiting = [
        (
            arguments.keep / f"{arguments.seed}-{sample.kind}-{number % arguments.count}.pickle",
            sample,
        )
        for number, sample in enumerate(made)
    ]
    waiting = [(path, sample) for path, sample in waiting if not path.exists()]
    if not waiting:
        return
    # A run that is stopped has seen pages of all sorts.
    random.Random(arguments.seed).shuffle(waiting)
    reader = load_page_reader(ParseOptions(device="cpu"), most_pages=SIDE_BY_SIDE, isolates=True)
    begun = {}
    with mock.patch.object(regions, "snapped", lambda page, _: page):
        while waiting or begun:
            while waiting and len(begun) < SIDE_BY_SIDE:
                path, sample = waiting.pop(0)
                job = reader.job(_picture(sample.pixels), reader.new_drafting())
                begun[reader.submit(job)] = (path, sample)
            for key, page in reader.step():
                path, sample = begun.pop(key)
                kept = Kept(sample.kind, sample.pixels, sample.markup, page)
                path.write_bytes(pickle.dumps(tuple(kept)))
                print(path.name, page.status, len(page.blocks), file=sys.stderr, flush=True)


def _rgb(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.ascontiguousarray(np.repeat(pixels[..., None], 3, axis=2))


def _picture(pixels: NDArray[np.uint8]) -> PageImage:
    height, width = pixels.shape
    return PageImage(
        number=1, rgb=_rgb(pixels), rotation=0, seconds=0.0,
        width_pt=width * POINTS_PER_PIXEL, height_pt=height * POINTS_PER_PIXEL,
    )  # fmt: skip


def _blocks(kept: Kept, after: Page) -> tuple[list[Found], list[Found]]:
    """Every block of the truth with the best box, and those read right with their own."""
    truth = read_blocks(kept.markup)
    boxes = [list(_boxes(page)) for page in (kept.page, after)]
    lines = PageLines(_rgb(kept.pixels))
    every = []
    for block in truth:
        name = "heading" if block.type[1:].isdigit() else block.type
        best = [max(page, key=lambda box: overlap(block.box, box), default=_NONE) for page in boxes]
        num_lines = _num_lines(lines, block.box)
        every.append(Found(kept.kind, name, num_lines, block.box, *best))
    wanted = [_bare(block.text) if block.type != "figure" else "figure" for block in truth]
    read = [_bare(block.text) if block.type != "figure" else "figure" for block in kept.page.blocks]
    right = [
        every[i]._replace(before=boxes[0][j], after=boxes[1][j]) for i, j in _same(wanted, read)
    ]
    return every, right


_NONE: Box = (0, 0, -1, -1)
"""Has no IoU with anything."""


def _boxes(page: Page) -> Iterator[Box]:
    """Boxes of a page's blocks in 1/511 of its sides."""
    sides = (page.width_pt, page.height_pt) * 2
    for block in page.blocks:
        if block.bbox is None:
            yield _NONE
        else:
            a, b, c, d = (
                round(LAST * edge / side) for edge, side in zip(block.bbox, sides, strict=True)
            )
            yield a, b, c, d


def _num_lines(lines: PageLines, box: Box) -> int:
    x0, y0, x1, y1 = (edge / LAST for edge in box)
    level = lines.level((x0, y0, x1, y1))
    found = lines.lines(level, 0.0)
    middles = (found.top + found.bottom) / 2
    return int(np.count_nonzero((middles > level[1]) & (middles < level[3])))


def _bare(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))


def _same(wanted: Sequence[str], read: Sequence[str]) -> list[tuple[int, int]]:
    """Pairs of equal texts, both ascending, such that most characters are in pairs."""
    worth = np.zeros((len(wanted) + 1, len(read) + 1))
    gain = np.array([[_worth(one, other) for other in read] for one in wanted])
    for i in range(len(wanted) - 1, -1, -1):
        for j in range(len(read) - 1, -1, -1):
            taken = gain[i, j] + worth[i + 1, j + 1] if gain[i, j] else 0.0
            worth[i, j] = max(taken, worth[i + 1, j], worth[i, j + 1])
    pairs, i, j = [], 0, 0
    while i < len(wanted) and j < len(read):
        if gain[i, j] and worth[i, j] == gain[i, j] + worth[i + 1, j + 1]:
            pairs.append((i, j))
            i, j = i + 1, j + 1
        elif worth[i, j] == worth[i + 1, j]:
            i += 1
        else:
            j += 1
    return pairs


def _worth(one: str, other: str) -> float:
    """Characters that two texts share, 0 if they are not the same."""
    if not one or not other:
        return 0.0
    if one == other:
        return float(len(one))
    if min(len(one), len(other)) < 0.8 * max(len(one), len(other)):
        return 0.0
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    if matcher.quick_ratio() < RIGHT or matcher.ratio() < RIGHT:
        return 0.0
    return matcher.ratio() * min(len(one), len(other))


def _rows(every: list[Found], right: list[Found]) -> Iterator[list[str | int]]:
    yield _row("all", "", every, with_errors=False)
    yield _row("right", "", right)
    groups = {
        "type": lambda block: block.type,
        "lines": lambda block: (
            "1" if block.num_lines < 2 else "2-3" if block.num_lines < 4 else "4-"
        ),
        "kind": lambda block: block.kind,
    }
    for group, name_of in groups.items():
        members: dict[str, list[Found]] = defaultdict(list)
        for block in right:
            members[name_of(block)].append(block)
        for name, blocks in sorted(members.items()):
            yield _row(group, name, blocks)


def _row(
    group: str, name: str, blocks: list[Found], *, with_errors: bool = True
) -> list[str | int]:
    before, after = (
        [(block.truth, getattr(block, when)) for block in blocks] for when in ("before", "after")
    )
    shares = [f"{_share(pairs):.3f}" for pairs in (before, after)]
    errors = [e for pairs in (before, after) for e in _errors(pairs)] if with_errors else [""] * 8
    return [group, name, len(blocks), *shares, *errors]


def _share(pairs: Sequence[tuple[Box, Box]]) -> float:
    return sum(overlap(*pair) >= FOUND for pair in pairs) / max(1, len(pairs))


def _errors(pairs: Iterable[tuple[Box, Box]]) -> list[str]:
    edges = zip(*((abs(a - b) for a, b in zip(*pair, strict=True)) for pair in pairs), strict=True)
    return [f"{median(edge):.1f}" for edge in edges]


if __name__ == "__main__":
    main()
