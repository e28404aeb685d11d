"""Where a training step's time goes: seconds by family of pages, then kernels.

    python -m ocria.models.recipes.nano.profile --base FOLDER --tokenizer FILE [--kernels 30]

Batches are noise of the sizes that `batches.py` gives: the same work, no typesetting.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import torch
from torch.profiler import ProfilerActivity, profile

from .batches import SHAPES, TYPICAL_TOKENS, Batch, batch_size
from .model import CHUNK, text_room
from .train import Plan, Rank, Run, peak_gib
from .vocabulary import EOS, FIRST_COORDINATE, FIRST_MARKUP

_SIDE = 32


def noise(family: str, budget_tflop: float) -> Batch:
    """A batch of a family's first shape and typical length; a tenth of its tokens are corners."""
    height, width = SHAPES[family][0]
    size = batch_size(family, (height, width), budget_tflop)
    room = text_room(height // _SIDE, width // _SIDE, max(TYPICAL_TOKENS[family], CHUNK)) + 1
    ids = torch.randint(4, FIRST_MARKUP, (size, room))
    corners = torch.rand(size, room) < 0.1
    ids = torch.where(corners, FIRST_COORDINATE + torch.randint(0, 512, (size, room)), ids)
    ids[:, TYPICAL_TOKENS[family] :] = 0
    ids[:, TYPICAL_TOKENS[family] - 1] = EOS
    pixels = torch.randint(0, 256, (size, height, width), dtype=torch.uint8)
    return Batch(family=family, pixels=pixels, ids=ids).pin_memory()


def measure(run: Run, batch: Batch, repeats: int) -> list[float]:
    """Seconds of whole steps, the first ones (compiling) included."""
    taken = []
    for _ in range(repeats):
        torch.cuda.synchronize()
        started = time.perf_counter()
        run.learn(batch)
        run.update(0.5)
        torch.cuda.synchronize()
        taken.append(time.perf_counter() - started)
    return taken


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--base", type=Path, required=True)
    parser.add_argument("--tokenizer", type=Path, required=True)
    parser.add_argument("--families", nargs="*", default=["portrait", "dense", "crop", "strip"])
    parser.add_argument("--kernels", type=int, default=30)
    parser.add_argument("--repeats", type=int, default=8)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as out:
        plan = Plan(
            base=given.base, out=Path(out), corpus=Path(out), fonts=Path(out),
            tokenizer=given.tokenizer, total_s=1e9, stop_s=1e9, peak=1e-6, tell=0.0,
        )  # fmt: skip
        run = Run(plan, Rank.join())
    batches = {name: noise(name, plan.budget_tflop) for name in given.families}
    print("family,pages,tokens,first s,median s,GiB", flush=True)
    for name, batch in batches.items():
        first, *rest = measure(run, batch, given.repeats)
        rest = rest[len(rest) // 3 :]
        figures = f"{first:.1f},{statistics.median(rest):.4f},{peak_gib(run.rank.device):.1f}"
        print(f"{name},{len(batch.ids)},{TYPICAL_TOKENS[name]},{figures}", flush=True)
    for name, batch in list(batches.items())[: 2 if given.kernels else 0]:
        with profile(activities=[ProfilerActivity.CPU, ProfilerActivity.CUDA]) as seen:
            measure(run, batch, 2)
        print(f"\n{name}, two steps")
        for line in busiest(seen, given.kernels):
            print(line)


def busiest(seen: profile, most: int) -> Iterator[str]:
    """Lines: milliseconds on the device, calls, name; those of the whole first."""
    found = [event for event in seen.key_averages() if event.device_type.name == "CUDA"]
    whole_ms = sum(event.self_device_time_total for event in found) / 1e3
    yield f"{whole_ms:8.2f} {sum(event.count for event in found):6d} all kernels"
    for event in sorted(found, key=lambda event: -event.self_device_time_total)[:most]:
        yield f"{event.self_device_time_total / 1e3:8.2f} {event.count:6d} {event.key[:110]}"


if __name__ == "__main__":
    main()
