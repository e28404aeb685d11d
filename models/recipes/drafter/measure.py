"""Tokens and characters that a target pass yields with a drafter, on held-out pages by kind.

    python -m ocria.models.recipes.drafter.measure --target FOLDER --drafter FOLDER
        --corpus C --fonts F [--count 4] [--kinds book,letter] [--pages DIR]

The target's own greedy text is replayed: all its taps come from one pass, every place of it is
drafted, and a walk takes what verification would. `--pages` replays the first pages of stored
batches instead, `--truth` with their own text (and the target's corners) where decoding is slow.
"""

from __future__ import annotations

import argparse
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from tokenizers import Tokenizer
from torch import Tensor

from ocria.models.drafter import DFlash, load_drafter
from ocria.models.recipes.drafter.blocks import blocks_at, hidden_rows
from ocria.models.recipes.drafter.store import read_batch
from ocria.models.recipes.drafter.target import FrozenTarget, Reading
from ocria.models.recipes.nano import model
from ocria.models.recipes.nano.delta import CHUNK
from ocria.models.recipes.nano.evaluate import make_pages
from ocria.models.recipes.nano.generate import greedy
from ocria.models.recipes.nano.model import text_room
from ocria.models.recipes.nano.vocabulary import EOS, PAD
from ocria.models.recipes.pages.kinds import KINDS

# Rows of one drafter pass (blocks x block size) times context rows: 5 GB of scores on a GPU.
_SCORES = {"cuda": 1 << 28, "cpu": 1 << 24}


class Yield(NamedTuple):
    """What replaying one page took."""

    tokens: int
    passes: int
    characters: int


@dataclass(frozen=True, kw_only=True)
class Group:
    """Pages of one pixel shape: kinds, pixels [P, height, width] uint8, and text or None."""

    kinds: tuple[str, ...]
    pixels: Tensor
    ids: Tensor | None = None


def replay(
    target: FrozenTarget, drafter: DFlash, group: Group, tokenizer: Tokenizer, limit: int
) -> list[Yield]:
    """Replays the pages of a group."""
    pixels = group.pixels.to(target.device)
    if group.ids is None:
        ids_PT = padded([[*ids, EOS] for ids in greedy(target.reader, pixels, limit)], pixels.shape)
        reading = target.read(pixels, ids_PT.to(target.device), own_corners=0)
    else:
        reading = target.read(pixels, group.ids.to(target.device))
    drafted_PTK = draft_everywhere(target, drafter, reading)
    yields = []
    for ids, drafts in zip(reading.ids_PT.tolist(), drafted_PTK.tolist(), strict=True):
        text = ids[: ids.index(PAD)] if PAD in ids else ids
        spelled = tokenizer.decode([i for i in text if i != EOS], skip_special_tokens=True)
        yields.append(Yield(len(text) - 1, count_passes(text, drafts), len(spelled)))
    return yields


def count_passes(text: Sequence[int], drafts: Sequence[Sequence[int]]) -> int:
    """Target passes for a text whose first token the prefill gives; `drafts[i]` follow token i."""
    at = passes = 0
    while at < len(text) - 1:
        ahead = text[at + 1 :]
        right = 0
        while right < min(len(ahead), len(drafts[at])) and drafts[at][right] == ahead[right]:
            right += 1
        # The target adds its own token, unless the text ended inside the proposal.
        at, passes = at + min(right + 1, len(ahead)), passes + 1
    return passes


@torch.no_grad()
def draft_everywhere(target: FrozenTarget, drafter: DFlash, reading: Reading) -> Tensor:
    """Proposals [P, T, K] behind every text token."""
    pages, num_tokens = reading.ids_PT.shape
    size = drafter.config.block_size
    rows = pages * size * drafter.config.num_attention_heads * reading.taps_PSX.shape[1]
    step = max(1, _SCORES[target.device.type] // rows)
    found = []
    for start in range(0, num_tokens, step):
        places_N = torch.arange(start, min(start + step, num_tokens), device=target.device)
        blocks = blocks_at(reading, places_N.expand(pages, -1), size)
        with target.precision():
            hidden = hidden_rows(drafter, target, reading, blocks, size)
            found.append(drafter.choose(hidden, target.head(hidden), blocks.anchor_ids_PN))
    return torch.cat(found, 1)


def padded(texts: list[list[int]], shape: Sequence[int]) -> Tensor:
    """Ids [P, T] for pages [P, height, width], as long as the target's chunks ask."""
    longest = max(len(text) for text in texts) - 1
    room = text_room(shape[1] // 32, shape[2] // 32, max(longest, CHUNK)) + 1
    ids = torch.full((len(texts), room), PAD)
    for row, text in zip(ids, texts, strict=True):
        row[: len(text)] = torch.tensor(text)
    return ids


def made_groups(arguments: argparse.Namespace) -> Iterator[Group]:
    """Held-out pages, as many of each kind as asked for, by pixel shape."""
    kinds = arguments.kinds.split(",") if arguments.kinds else tuple(KINDS)
    shaped = defaultdict(list)
    for page in make_pages(
        arguments.corpus, arguments.fonts, arguments.count, arguments.seed, kinds
    ):
        shaped[page.pixels.shape].append(page)
    for group in shaped.values():
        for start in range(0, len(group), arguments.batch):
            some = group[start : start + arguments.batch]
            pixels = torch.from_numpy(np.stack([page.pixels for page in some]))
            yield Group(kinds=tuple(page.kind for page in some), pixels=pixels)


def stored_groups(arguments: argparse.Namespace) -> Iterator[Group]:
    """The first pages of stored batches, by family."""
    for path in sorted(arguments.pages.glob("*.safetensors"))[: arguments.count]:
        batch = read_batch(path)
        some = slice(0, arguments.batch)
        pixels = batch.pixels[some]
        ids = batch.ids[some] if arguments.truth else None
        yield Group(kinds=(batch.family,) * len(pixels), pixels=pixels, ids=ids)


def table(found: dict[str, list[Yield]]) -> str:
    """One line a kind: means over all of its passes."""
    lines = [f"{'kind':12s} {'pages':>5s} {'tokens':>7s} {'passes':>7s} {'tok/pass':>8s} chr/pass"]
    everything = [one for kind in found.values() for one in kind]
    for kind, rows in [*sorted(found.items()), ("all", everything)]:
        tokens, passes, characters = (sum(part) for part in zip(*rows, strict=True))
        lines.append(
            f"{kind:12s} {len(rows):5d} {tokens:7d} {passes:7d} "
            f"{tokens / max(1, passes):8.2f} {characters / max(1, passes):8.2f}"
        )
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--target", type=Path, required=True)
    parser.add_argument("--drafter", type=Path, required=True)
    for name in ("corpus", "fonts", "pages"):
        parser.add_argument(f"--{name}", type=Path)
    parser.add_argument("--count", type=int, default=4)
    parser.add_argument("--batch", type=int, default=48)
    parser.add_argument("--kinds", default="")
    parser.add_argument("--limit", type=int, default=2048)
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no group after these")
    parser.add_argument("--truth", action="store_true")
    parser.add_argument("--rounded", action="store_true")
    arguments = parser.parse_args()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    # Every decoding step is a new shape, and cuDNN would build a plan for each.
    torch.backends.cuda.enable_cudnn_sdp(False)
    model.CUDNN_ON_PAGES = False
    target = FrozenTarget(arguments.target, (), device, rounded=arguments.rounded)
    drafter = load_drafter(arguments.drafter, target).model
    target.taps = drafter.config.target_layer_ids
    tokenizer = Tokenizer.from_file(str(arguments.target / "tokenizer.json"))
    begun = time.perf_counter()
    found: dict[str, list[Yield]] = defaultdict(list)
    groups = stored_groups(arguments) if arguments.pages else made_groups(arguments)
    for group in groups:
        if time.perf_counter() - begun > arguments.seconds:
            break
        yields = replay(target, drafter, group, tokenizer, arguments.limit)
        for kind, one in zip(group.kinds, yields, strict=True):
            found[kind].append(one)
    print(table(found), flush=True)


if __name__ == "__main__":
    main()
