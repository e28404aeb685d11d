"""Batches of pages on disk, made beforehand: training a drafter needs fewer pages than passes.

    python -m ocria.models.recipes.drafter.store --out DIR --corpus C --fonts F --tokenizer T
        --seconds 600 [--workers 3] [--held-out]

Writes DIR/NNNNNN-rank.safetensors until time or space is up; may run beside other work under
`nice`, and again to add more.
"""

from __future__ import annotations

import argparse
import os
import queue
import random
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from ocria.models.recipes.nano.batches import Batch, Batches, Source
from ocria.models.recipes.nano.feed import Feed

_AHEAD = 4
# Turned pages: the reader says by how much and stops.
_WITHOUT_TEXT = ("turned",)


def write_batch(batch: Batch, path: Path) -> None:
    """Whole or absent: written beside, then renamed."""
    beside = path.with_suffix(".tmp")
    tensors = {"pixels": batch.pixels.contiguous(), "ids": batch.ids.to(torch.int32)}
    save_file(tensors, beside, metadata={"family": batch.family})
    beside.replace(path)


def read_batch(path: Path) -> Batch:
    """One stored batch."""
    with safe_open(path, "pt") as file:
        family = file.metadata()["family"]
        pixels, ids = file.get_tensor("pixels"), file.get_tensor("ids")
    return Batch(family=family, pixels=pixels, ids=ids.long())


def stored_batches(folder: Path, seed: int, rank: int, count: int) -> Iterator[Batch]:
    """Endless: every `count`-th batch of the folder in an order drawn anew for each round.

    Files that appear while it runs join the next round; damaged ones are passed over. Reading runs
    ahead in a thread.
    """
    ready: queue.Queue[Batch] = queue.Queue(_AHEAD)
    rng = random.Random(f"{seed}/{rank}")

    def fill() -> None:
        while True:
            paths = sorted(folder.glob("*.safetensors"))
            own = paths[rank::count] or paths
            rng.shuffle(own)
            if not own:
                time.sleep(0.5)
            for path in own:
                try:
                    batch = read_batch(path)
                except (SafetensorError, OSError, KeyError):
                    continue
                ready.put(batch.pin_memory() if torch.cuda.is_available() else batch)

    threading.Thread(target=fill, daemon=True).start()
    while True:
        yield ready.get()


def live_batches(source: Source, rank: int, workers: int) -> Iterator[Batch]:
    """Endless, made by processes that are replaced when they die.

    They are started at once, so call this before the process touches a GPU.
    """
    late = torch.ones(1).share_memory_()
    feed = Feed(Batches(source, rank, late).stream, max(1, workers), pin=torch.cuda.is_available())

    def endless() -> Iterator[Batch]:
        while True:
            yield feed.next()

    return endless()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in ("out", "corpus", "fonts", "tokenizer"):
        parser.add_argument(f"--{name}", type=Path, required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--workers", type=int, default=3)
    parser.add_argument("--budget-tflop", type=float, default=50.0)
    parser.add_argument("--most-gib", type=float, default=30.0)
    parser.add_argument("--held-out", action="store_true")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    arguments = parser.parse_args()
    begun, pages = time.perf_counter(), 0
    arguments.out.mkdir(parents=True, exist_ok=True)
    source = Source(
        corpus=arguments.corpus,
        fonts=arguments.fonts,
        tokenizer=arguments.tokenizer,
        seed=arguments.seed,
        held_out=arguments.held_out,
        budget_tflop=arguments.budget_tflop,
    )
    room = arguments.most_gib * 2**30
    stream = live_batches(source, 0, arguments.workers)
    number = 0
    while time.perf_counter() - begun < arguments.seconds and room > 0:
        batch = next(stream)
        if batch.family in _WITHOUT_TEXT:
            continue
        path = arguments.out / f"{arguments.seed}-{number:06d}.safetensors"
        write_batch(batch, path)
        room -= path.stat().st_size
        number, pages = number + 1, pages + len(batch.ids)
    print(f"{number} batches, {pages} pages, {time.perf_counter() - begun:.0f} s", flush=True)
    # Workers hold pages half made; leaving at once spares the wait for them.
    os._exit(0)


if __name__ == "__main__":
    main()
