"""A 4B-shaped checkpoint of random weights on one device: loading, memory, speed, leaks.

    python -m benchmarks.checkpoints.at_size --work /dev/shm/at_size --out at_size.csv

Run it at the repository's root. It writes 9.3 GB to `--work`, removes them at the end, and takes at
most 120 s: a part that fails or has no time left says so in its row, the others go on. Weights are
random, so a page says nothing and an MTP head's proposals are accepted by chance alone; times and
bytes do not depend on that. `--size tiny` tries the script on a CPU.
"""

import argparse
import csv
import gc
import json
import resource
import shutil
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.engine.speculative import Drafter
from ocria.models.base import ImagePatches
from ocria.models.device import dtype_of, resolve_device
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import LoadedModel, fill, open_checkpoint
from ocria.options import Precision
from ocria.pipeline.mtp import mtp_maker
from tests.checkpoints.random_checkpoint import SPECIALS, TEMPLATE, mtp_shapes, write_tokenizer
from tests.checkpoints.shapes import family_config, shrunk

SHARD_BYTES = 2 << 30
NUM_LEAK_PAGES = 200
# Ids of the family's special tokens, as far as the tests' tokenizer has them.
_IDS = {
    "<|endoftext|>": 248_044,
    "<|im_start|>": 248_045,
    "<|im_end|>": 248_046,
    "<|vision_start|>": 248_053,
    "<|vision_end|>": 248_054,
    "<|image_pad|>": 248_056,
    "<|video_pad|>": 248_057,
    "<think>": 248_068,
    "</think>": 248_069,
}


@dataclass
class Table:
    """Rows of figures, told as they come."""

    limit_s: float
    started_s: float = field(default_factory=time.monotonic)
    rows: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, what: str, value: object, unit: str) -> None:
        """Adds a figure."""
        shown = f"{value:.4g}" if isinstance(value, float) else str(value)
        self.rows.append((what, shown, unit))
        print(f"{what:<44} {shown:>12} {unit}", flush=True)

    @property
    def is_late(self) -> bool:
        """Whether nothing more should be begun."""
        return time.monotonic() - self.started_s > self.limit_s

    def part(self, what: str, run: Callable[[], object]) -> object:
        """Runs one part; its trouble becomes its row."""
        if self.is_late:
            self.add(what, "no time left", "")
            return None
        try:
            return run()
        except Exception as error:  # a benchmark goes on without the part
            self.add(what, f"{type(error).__name__}: {str(error)[:120]}", "failed")
            return None


def write_checkpoint(folder: Path, raw: dict[str, Any], ids: dict[str, int], device: str) -> int:
    """Random bf16 weights under the family's names, with an MTP head; bytes written."""
    folder.mkdir(parents=True)
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_mapping(raw))
    shapes = {name: tuple(value.shape) for name, value in model.state_dict().items()}
    generator = torch.Generator(device).manual_seed(1)
    placed: dict[str, str] = {}
    shard: dict[str, Tensor] = {}
    total = size = 0
    for name, shape in {**shapes, **mtp_shapes(raw["text_config"])}.items():
        noise = torch.randn(shape, generator=generator, device=device, dtype=torch.bfloat16)
        scale = 0.02 if len(shape) == 1 else float(shape[-1]) ** -0.5
        shard[name] = (noise * scale).cpu()
        size += shard[name].nbytes
        total += shard[name].nbytes
        if size > SHARD_BYTES:
            placed |= _save(folder, shard, len(placed))
            shard, size = {}, 0
    placed |= _save(folder, shard, len(placed))
    index = {"metadata": {"total_size": total}, "weight_map": placed}
    _write(folder / "model.safetensors.index.json", index)
    _write(folder / "config.json", raw)
    _write(folder / "generation_config.json", {"eos_token_id": ids["<|im_end|>"]})
    _write(folder / "tokenizer_config.json", {"eos_token": "<|im_end|>"})
    _write(folder / "preprocessor_config.json", {"patch_size": 16, "merge_size": 2, "size": {}})
    (folder / "chat_template.jinja").write_text(TEMPLATE)
    write_tokenizer(folder / "tokenizer.json", ids)
    return total


def _save(folder: Path, shard: dict[str, Tensor], number: int) -> dict[str, str]:
    name = f"model-{number:05d}.safetensors"
    save_file(shard, folder / name, metadata={"format": "pt"})
    return dict.fromkeys(shard, name)


def _write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content))


@dataclass
class Loaded:
    """A model and what it took to have it."""

    model: LoadedModel
    device: torch.device

    def image(self, side: int) -> ImagePatches:
        """A made-up page of `side` x `side` patches."""
        values = torch.randn(side * side, 768, generator=torch.Generator().manual_seed(side))
        return ImagePatches(values, side, side)

    def engine(self) -> Engine:
        """One page at a time."""
        tokens = self.model.tokens
        # Nothing ends a page early: every one writes to its limit.
        forbidden = tokens.suppressed_ids | tokens.stop_ids
        config = EngineConfig(stop_ids=frozenset(), forbidden_ids=forbidden, max_positions=4096)
        return Engine(self.model.target, config)

    def read(self, engine: Engine, side: int, max_tokens: int, drafter: Drafter | None) -> Result:
        """Reads one page."""
        request = Request(
            prompt=self.model.tokens.prompt.fill(side // 2, side // 2),
            image=self.image(side),
            max_tokens=max_tokens,
            drafter=drafter,
        )
        return engine.run(request)


def load_and_measure(table: Table, folder: Path, device: str, precision: Precision) -> Loaded:
    """Loads once the files lie in the page cache; seconds and bytes."""
    place = resolve_device(device)
    on_cuda = place.type == "cuda"
    if on_cuda:
        torch.cuda.empty_cache()
        torch.cuda.reset_peak_memory_stats(place)
    started = time.monotonic()
    checkpoint = open_checkpoint(folder, device=place, precision=precision)
    opened = time.monotonic()
    model = fill(checkpoint, place)
    if on_cuda:
        torch.cuda.synchronize(place)
    table.add(f"{precision}: open (settings, headers, digest)", opened - started, "s")
    table.add(f"{precision}: load from page cache", time.monotonic() - opened, "s")
    if on_cuda:
        table.add(f"{precision}: device memory", torch.cuda.memory_allocated(place) / 1e9, "GB")
        peak = torch.cuda.max_memory_allocated(place) / 1e9
        table.add(f"{precision}: highest while loading", peak, "GB")
    table.add(f"{precision}: host memory, highest", _host_gb(), "GB")
    return Loaded(model, place)


def measure_speed(table: Table, loaded: Loaded, name: str, side: int, num_tokens: int) -> None:
    """Tokens a second, plain and with the MTP head."""
    engine = loaded.engine()
    make = mtp_maker(loaded.model, needed=True)
    makers: dict[str, Callable[[], Drafter] | None] = {"plain": None, "mtp": make}
    written = {}
    for kind, maker in makers.items():
        loaded.read(engine, side, 24, maker() if maker else None)
        result = loaded.read(engine, side, num_tokens, maker() if maker else None)
        written[kind] = result.token_ids
        count = len(result.token_ids)
        table.add(f"{name}, {kind}: decode", count / result.decode_s, "tokens/s")
        table.add(f"{name}, {kind}: tokens a pass", count / max(result.steps, 1), "")
        if kind == "plain":
            table.add(f"{name}: vision, {side * side} patches", result.vision_s, "s")
            table.add(f"{name}: prefill", result.prefill_s, "s")
    table.add(f"{name}: same tokens with mtp", written["plain"] == written["mtp"], "")


def measure_leak(table: Table, loaded: Loaded, num_pages: int) -> None:
    """Memory after a tenth of the pages and after all of them, or as many as time allows."""
    engine, make = loaded.engine(), mtp_maker(loaded.model, needed=True)
    assert make is not None, "the checkpoint was written with a head"
    before: tuple[float, float] = (0.0, 0.0)
    for page in range(num_pages):
        if table.is_late:
            num_pages = page
            break
        loaded.read(engine, (8, 16)[page % 2], 6, make() if page % 2 else None)
        if page == num_pages // 10:
            before = _memory(loaded.device)
    device_mb, host_mb = (
        after - b for after, b in zip(_memory(loaded.device), before, strict=True)
    )
    table.add(f"device memory grown over {num_pages} pages", device_mb, "MB")
    table.add(f"host memory grown over {num_pages} pages", host_mb, "MB")


def _memory(device: torch.device) -> tuple[float, float]:
    """Device and host memory in MB, rubbish collected."""
    gc.collect()
    on_device = torch.cuda.memory_allocated(device) / 1e6 if device.type == "cuda" else 0.0
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return on_device, pages * resource.getpagesize() / 1e6


def _host_gb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def sizes(size: str) -> Iterator[Any]:
    """Config, special ids, patches a side and tokens of a page of this size."""
    if size == "4B":
        yield from (family_config("4B"), _IDS, 64, 256)
        return
    ids = {text: 300 + place for place, text in enumerate(SPECIALS)}
    named = {
        "image_token_id": ids["<|image_pad|>"],
        "video_token_id": ids["<|video_pad|>"],
        "vision_start_token_id": ids["<|vision_start|>"],
        "vision_end_token_id": ids["<|vision_end|>"],
    }
    yield from (shrunk("4B", vocab_size=320, ids=named), ids, 8, 24)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--work", type=Path, required=True, help="folder to write the weights to")
    parser.add_argument("--out", type=Path, help="CSV of the rows")
    parser.add_argument("--size", choices=("4B", "tiny"), default="4B")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--limit", type=float, default=105.0, help="seconds to begin work in")
    parser.add_argument("--pages", type=int, default=NUM_LEAK_PAGES)
    given = parser.parse_args()
    config, ids, side, num_tokens = sizes(given.size)
    table, place = Table(given.limit), resolve_device(given.device)
    name = torch.cuda.get_device_name(place) if place.type == "cuda" else "CPU"
    table.add("device", f"{name}, torch {torch.__version__}", "")
    folder = given.work / "chandra-ocr-2"
    try:
        started = time.monotonic()
        total = write_checkpoint(folder, config, ids, str(place))
        table.add("weights written", total / 1e9, "GB")
        table.add("writing them", time.monotonic() - started, "s")
        for precision in ("auto", "mixed"):
            loaded = table.part(
                precision,
                lambda p=precision: load_and_measure(table, folder, given.device, p),  # type: ignore[misc]
            )
            if not isinstance(loaded, Loaded):
                continue
            table.part(
                "speed",
                lambda m=loaded, p=precision: measure_speed(table, m, p, side, num_tokens),  # type: ignore[misc]
            )
            if precision == "mixed":
                table.part("leak", lambda m=loaded: measure_leak(table, m, given.pages))  # type: ignore[misc]
            del loaded
            gc.collect()
    finally:
        shutil.rmtree(given.work, ignore_errors=True)
    table.add("dtype", str(dtype_of(place)).removeprefix("torch."), "")
    table.add("in all", time.monotonic() - table.started_s, "s")
    if given.out:
        with given.out.open("w", newline="") as file:
            csv.writer(file).writerows([("what", "value", "unit"), *table.rows])
    print(json.dumps({what: value for what, value, _ in table.rows}))


if __name__ == "__main__":
    main()
