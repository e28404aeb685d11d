"""Greedy decoding of held-out pages by kind: characters, boxes, table cells, loops."""

from __future__ import annotations

import argparse
import json
import random
import time
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

import numpy as np
import torch

from ocria.models.recipes.pages.kinds import KINDS
from ocria.models.recipes.pages.sampler import Sample, make_samples, open_studio

from .generate import greedy
from .layout import Folder, load_reader
from .markup import overlap, read_blocks
from .rounding import round_in_place

_SHAPES = {
    "slide": (1024, 1408), "table": (640, 832), "receipt": (1408, 640), "region": (512, 640),
    "line": (128, 512), "formula": (320, 640), "strings": (512, 640),
}  # fmt: skip
_PAGE = (1408, 1024)


@dataclass(frozen=True, kw_only=True)
class PageScore:
    """One page. `cer` is edits over truth characters; `boxes` and `cells` are shares found."""

    cer: float
    boxes: float
    cells: float | None
    looped: bool
    exact: bool


def edits(a: str, b: str) -> int:
    """Levenshtein distance, a row of numpy at a time."""
    if not a or not b:
        return max(len(a), len(b))
    other = np.frombuffer(b.encode("utf-32-le"), np.uint32)
    places = np.arange(len(other) + 1)
    row = places.copy()
    for i, character in enumerate(a):
        best = np.minimum(row[1:] + 1, row[:-1] + (other != ord(character)))
        row = np.concatenate([[i + 1], best])
        row = np.minimum.accumulate(row - places) + places
    return int(row[-1])


def score(truth: str, read: str, tokens: int, limit: int) -> PageScore:
    """Compares two pages' markup."""
    wanted, got = read_blocks(truth), read_blocks(read)
    text, seen = (" ".join(b.text for b in blocks if b.text) for blocks in (wanted, got))
    found = [max((overlap(w.box, g.box) for g in got), default=0.0) >= 0.5 for w in wanted]
    cells = [cell for block in wanted for cell in block.cells]
    left = [cell for block in got for cell in block.cells]
    hits = 0
    for cell in cells:
        if cell in left:
            left.remove(cell)
            hits += 1
    return PageScore(
        cer=edits(text, seen) / max(1, len(text)),
        boxes=mean(found) if found else float(not got),
        cells=hits / len(cells) if cells else None,
        looped=tokens >= limit,
        exact=truth == read,
    )


def make_pages(
    corpus: Path, fonts: Path, count: int, seed: int, kinds: Sequence[str] = tuple(KINDS)
) -> list[Sample]:
    """`count` held-out pages of each of the kinds."""
    studio = open_studio(corpus, fonts, held_out=True)
    pages: list[Sample] = []
    for kind in kinds:
        rng = random.Random(f"{seed}/{kind}")
        height, width = _SHAPES.get(kind, _PAGE)
        made: list[Sample] = []
        while len(made) < count:
            made += make_samples(studio, kind, rng, width_px=width, height_px=height)[:1]
        pages += made[:count]
    return pages


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("folder", "corpus", "fonts", "out"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--limit", type=int, default=2560)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--kinds", nargs="*", choices=tuple(KINDS), default=tuple(KINDS))
    parser.add_argument("--rounded", action="store_true", help="decode with NVFP4/FP8 weights")
    arguments = parser.parse_args()
    device = "cuda" if torch.cuda.is_available() else "cpu"
    # Every decoding step is a new shape, and cuDNN would build a plan for each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    folder = Folder(path=arguments.folder)
    reader = load_reader(folder).to(device).eval()
    if arguments.rounded:
        round_in_place(reader)
    tokenizer = folder.tokenizer()
    pages = make_pages(
        arguments.corpus, arguments.fonts, arguments.count, arguments.seed, arguments.kinds
    )
    shaped: dict[tuple[int, ...], list[Sample]] = defaultdict(list)
    for page in pages:
        shaped[page.pixels.shape].append(page)
    scores: dict[str, list[PageScore]] = defaultdict(list)
    arguments.out.mkdir(parents=True, exist_ok=True)
    record = (arguments.out / "pages.jsonl").open("w", encoding="utf-8")
    for shape, group in shaped.items():
        start = time.perf_counter()
        stack = torch.from_numpy(np.stack([page.pixels for page in group])).to(device)
        read = greedy(reader, stack, arguments.limit)
        print(shape, len(group), f"{time.perf_counter() - start:.1f} s", flush=True)
        for page, ids in zip(group, read, strict=True):
            text = tokenizer.decode(ids, skip_special_tokens=False)
            scored = score(page.markup, text, len(ids), arguments.limit)
            scores[page.kind].append(scored)
            line = {"kind": page.kind, "truth": page.markup, "read": text, "cer": scored.cer}
            record.write(json.dumps(line, ensure_ascii=False) + "\n")
    for kind, rows in scores.items():
        cells = [row.cells for row in rows if row.cells is not None]
        print(
            f"{kind:10s} n={len(rows)} cer mean {mean(r.cer for r in rows):.4f} "
            f"median {median(r.cer for r in rows):.4f} boxes {mean(r.boxes for r in rows):.3f} "
            f"cells {mean(cells) if cells else float('nan'):.3f} "
            f"loops {sum(r.looped for r in rows)} exact {sum(r.exact for r in rows)}",
            flush=True,
        )


if __name__ == "__main__":
    main()
