"""Trains a DFlash drafter for a given time, on any number of GPUs (README.md has the command).

One pass of the frozen target over a batch of pages feeds several steps of the drafter, each with
anchors of its own. The schedule follows the clock. A run resumes from its own checkpoint.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass, fields
from pathlib import Path

import torch
import torch.distributed as dist
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor

from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.layers import TOGETHER
from ocria.models.recipes.drafter.blocks import Losses, Weighting, draw_blocks, hidden_rows, losses
from ocria.models.recipes.drafter.design import Sizes, new_drafter, public_config
from ocria.models.recipes.drafter.export import read_checkpoint
from ocria.models.recipes.drafter.store import live_batches, stored_batches
from ocria.models.recipes.drafter.target import FrozenTarget, Reading
from ocria.models.recipes.nano import model
from ocria.models.recipes.nano.batches import Batch, Source
from ocria.models.recipes.nano.optimiser import Optimiser, Rates
from ocria.models.recipes.nano.train import Rank

# Codebooks are look-up tables and base kernels vectors: AdamW's.
_NOT_MUON = ("codebook", "base_kernel", "kernel_projection")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One training run. Times in seconds; `total_s` is counted over all calls of the run.

    It begins from `base`, a drafter's folder or checkpoint, or from new weights.
    Pages come from `pages`, a folder of stored batches, or are made live from corpus and fonts.
    `blocks` are anchors of one step on one rank, `steps_a_batch` steps of one target pass.
    """

    target: Path
    out: Path
    total_s: float
    base: Path | None = None
    pages: Path | None = None
    corpus: Path | None = None
    fonts: Path | None = None
    rounded: bool = False
    blocks: int = 2048
    steps_a_batch: int = 3
    own_corners: int = 1
    weighting: Weighting = "pace"
    selector_weight: float = 1.0
    peak: float = 2.5e-3
    warm_steps: int = 60
    fall_from: float = 0.4
    workers: int = 12
    budget_tflop: float = 50.0
    save_every_s: float = 60.0
    report_every: int = 50
    seed: int = 1
    max_steps: int = 10**9
    own_sizes: str = "{}"

    @property
    def sizes(self) -> Sizes:
        """Sizes of the drafter: JSON over the defaults, such as `{"layers": 2, "inner": 640}`."""
        told = json.loads(self.own_sizes)
        return Sizes(**{**told, **({"taps": tuple(told["taps"])} if "taps" in told else {})})


class Run:
    """The state of a training run on one rank."""

    def __init__(self, plan: Plan, rank: Rank) -> None:
        self.plan, self.rank = plan, rank
        torch.manual_seed(plan.seed)
        torch.set_float32_matmul_precision("high")
        # Flash costs 25 ms more a batch; cuDNN plans a second for each of twenty shapes.
        model.CUDNN_ON_PAGES = False
        taps = plan.sizes.taps
        self.target = FrozenTarget(plan.target, taps, rank.device, rounded=plan.rounded)
        self.content = public_config(plan.sizes, self.target.reader.g)
        config = DrafterConfig.from_mapping(self.content)
        gains = 1 + self.target.reader.norm.weight.detach().cpu()
        self.drafter = new_drafter(config, gains, plan.seed).to(rank.device)
        if plan.base is not None:
            self._begin_from(plan.base)
        self.optimiser = Optimiser(self.drafter, Rates(peak=plan.peak), not_muon=_NOT_MUON)
        self.step = self.skipped = self.dropped = self.pages = 0
        self.spent_s = 0.0
        self._resume()
        self._draws = torch.Generator()
        self._draws.manual_seed(plan.seed + 7919 * rank.index + 104_729 * self.step)

    def read(self, batch: Batch) -> Reading | None:
        """The target's pass, or None where it does not fit in memory."""
        device = self.rank.device
        try:
            pixels = batch.pixels.to(device, non_blocking=True)
            ids = batch.ids.to(device, non_blocking=True)
            return self.target.read(pixels, ids, own_corners=self.plan.own_corners)
        except torch.OutOfMemoryError:
            self._drop()
            return None

    def gradients(self, reading: Reading | None) -> Losses | None:
        """Adds one step's gradients. A rank that runs out of memory adds none, and goes on."""
        if reading is None:
            return None
        plan, size = self.plan, self.drafter.config.block_size
        # Whole groups, which attend in one call.
        count = TOGETHER * max(1, round(plan.blocks / len(reading.ids_PT) / TOGETHER))
        try:
            blocks = draw_blocks(reading, count, size, self._draws)
            with self.target.precision():
                hidden = hidden_rows(self.drafter, self.target, reading, blocks, size)
                found = losses(self.drafter, self.target, hidden, blocks, plan.weighting)
            (found.base + plan.selector_weight * found.selector).backward()
        except torch.OutOfMemoryError:
            self.optimiser.flat.zero_()
            self._drop()
            return None
        return found

    def update(self, done: float) -> None:
        """Steps the weights unless the gradient is not finite: then on no rank."""
        norm = self.optimiser.reduce()
        if bool(torch.isfinite(norm)):
            self.optimiser.step(self.rate(done), norm)
        else:
            self.skipped += 1
        self.optimiser.flat.zero_()
        self.step += 1

    def rate(self, done: float) -> float:
        """Share of the peak: a short warm-up, level, then linear to zero."""
        falling = (1.0 - done) / (1.0 - self.plan.fall_from)
        return min((self.step + 1) / self.plan.warm_steps, 1.0, max(0.0, falling))

    def save(self) -> None:
        """Writes the checkpoint; the rename makes it whole or absent."""
        tensors = {f"model.{name}": p.detach() for name, p in self.drafter.named_parameters()}
        tensors |= self.optimiser.state()
        tensors = {name: tensor.cpu().contiguous() for name, tensor in tensors.items()}
        meta = {
            "step": str(self.step),
            "spent_s": str(self.spent_s),
            "pages": str(self.pages),
            "config": json.dumps(self.content),
        }
        out = self.plan.out
        save_file(tensors, out / "checkpoint.tmp", metadata=meta)
        (out / "checkpoint.tmp").replace(out / "checkpoint.safetensors")

    def _begin_from(self, base: Path) -> None:
        weights, content = read_checkpoint(base)
        assert content == self.content, f"{base} is another drafter"
        with torch.no_grad():
            for name, parameter in self.drafter.named_parameters():
                parameter.copy_(weights[name])

    def _resume(self) -> None:
        path = self.plan.out / "checkpoint.safetensors"
        if not path.exists():
            return
        with safe_open(path, "pt") as file:
            meta = file.metadata()
        assert json.loads(meta["config"]) == self.content, f"{path} is of another drafter"
        tensors = load_file(path)
        with torch.no_grad():
            for name, parameter in self.drafter.named_parameters():
                parameter.copy_(tensors[f"model.{name}"])
        self.optimiser.load({k: v for k, v in tensors.items() if not k.startswith("model.")})
        self.step, self.pages = int(meta["step"]), int(meta["pages"])
        self.spent_s = float(meta["spent_s"])

    def _drop(self) -> None:
        self.dropped += 1
        if self.rank.device.type == "cuda":
            torch.cuda.empty_cache()


class Log:
    """Means of the last steps, one JSON line each time."""

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8") if path else None
        self._found: list[Tensor] = []

    def add(self, found: Losses | None) -> None:
        if found is not None:
            self._found.append(torch.stack([part.detach() for part in found]))

    def write(self, **figures: float) -> None:
        record = {key: round(value, 4) for key, value in figures.items()}
        if self._found:
            means = torch.stack(self._found).mean(0).tolist()
            record |= {k: round(v, 4) for k, v in zip(Losses._fields, means, strict=True)}
        self._found.clear()
        if self._file:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            print(json.dumps(record), flush=True)

    def close(self) -> None:
        if self._file:
            self._file.close()


def batches(plan: Plan, rank: Rank) -> Iterator[Batch]:
    """Stored pages, or live ones."""
    if plan.pages is not None:
        return stored_batches(plan.pages, plan.seed, rank.index, rank.count)
    assert plan.corpus and plan.fonts, "give --pages, or --corpus and --fonts"
    source = Source(
        corpus=plan.corpus,
        fonts=plan.fonts,
        tokenizer=plan.target / "tokenizer.json",
        seed=plan.seed + int(time.time()),
        budget_tflop=plan.budget_tflop,
    )
    return live_batches(source, rank.index, plan.workers)


def train(plan: Plan, rank: Rank, stream: Iterator[Batch]) -> Run:
    """Runs until `total_s` over all calls is spent, or `max_steps` steps are done."""
    begun = time.perf_counter()
    plan.out.mkdir(parents=True, exist_ok=True)
    run = Run(plan, rank)
    log = Log(plan.out / "log.jsonl" if rank.index == 0 else None)
    before_s, saved, waited_s, read_s = run.spent_s, begun, 0.0, 0.0
    clock = torch.zeros(1, device=rank.device)
    while run.spent_s < plan.total_s and run.step < plan.max_steps:
        started = time.perf_counter()
        batch = next(stream)
        fetched = time.perf_counter()
        reading = run.read(batch)
        waited_s, read_s = waited_s + fetched - started, read_s + time.perf_counter() - fetched
        run.pages += len(batch.ids) * rank.count
        for _ in range(plan.steps_a_batch):
            found = run.gradients(reading)
            run.update(run.spent_s / plan.total_s)
            log.add(found)
            if run.step % plan.report_every == 0:
                log.write(
                    step=run.step,
                    spent_s=run.spent_s,
                    waited_s=waited_s,
                    read_s=read_s,
                    pages=run.pages,
                    skipped=run.skipped,
                    dropped=run.dropped,
                    rate=run.rate(run.spent_s / plan.total_s),
                )
        # One clock for all ranks, or they would disagree on when to stop.
        clock.fill_(time.perf_counter() - begun)
        if rank.count > 1:
            dist.broadcast(clock, 0)
        run.spent_s = before_s + clock.item()
        if rank.index == 0 and time.perf_counter() - saved > plan.save_every_s:
            run.save()
            saved = time.perf_counter()
    log.close()
    if rank.index == 0:
        run.save()
        print(f"ended at step {run.step}, {run.spent_s:.0f} s, {run.pages} pages", flush=True)
        (plan.out / "plan.json").write_text(json.dumps(asdict(plan), default=str) + "\n")
    return run


def plan_from_arguments(arguments: list[str] | None = None) -> Plan:
    """A plan from the command line, one option a field."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = {"Path": Path, "Path | None": Path, "float": float, "int": int}
    for item in fields(Plan):
        name = "--" + item.name.replace("_", "-")
        kind = str(item.type)
        if kind == "bool":
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=item.default)
        elif item.name in ("target", "out", "total_s"):
            parser.add_argument(name, type=kinds[kind], required=True)
        else:
            parser.add_argument(name, type=kinds.get(kind, str), default=item.default)
    return Plan(**vars(parser.parse_args(arguments)))


def main() -> None:
    plan, rank = plan_from_arguments(), Rank.of_environment()
    # Workers are forked before anything touches the device.
    stream = batches(plan, rank)
    rank.enter()
    train(plan, rank, stream)
    if rank.count > 1:
        dist.barrier()
    # Workers hold pages half made; leaving at once spares the wait for them.
    os._exit(0)


if __name__ == "__main__":
    main()
