"""Trains OCRia-1 nano for a given time, on any number of GPUs (README.md has the command).

The schedule follows the clock, in two parts. In the first the rate falls to zero: its end is the
parent, `RUN/parent.safetensors`. In the second the weights that ship rounded learn, rounded, to say
what the parent says; all others stay the parent's. A run resumes from its own checkpoint folder.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections import defaultdict
from dataclasses import dataclass, fields
from pathlib import Path
from typing import NamedTuple

import torch
import torch.distributed as dist
import torch.nn.functional as F
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer
from torch import Tensor, nn

from .batches import Batch, Batches, Source
from .delta import PIECES
from .feed import Feed
from .layout import Folder, load_reader
from .loss import divergence, token_losses
from .model import Reader
from .noise import disturbed
from .optimiser import Optimiser, Rates
from .rounding import Masters
from .tell import Targets, Teller, draw_targets
from .vocabulary import IMAGE, LAST_USED, MASK, PAD

_MODEL, _TELLER, _PARENT = "model.", "teller.", "parent.safetensors"
# Share of the first part over which the picture's rows are asked less and less.
_TELL_FALL = 0.2


@dataclass(frozen=True, kw_only=True)
class Plan:
    """One training run. Times in seconds; `spent_s` is what earlier calls of the run took.

    `tell` weighs what the picture's rows are asked after layer `tell_layer` (tell.py); 0: not at
    all. A run resumes with the choice it began with.
    """

    base: Path
    out: Path
    corpus: Path
    fonts: Path
    tokenizer: Path
    total_s: float
    stop_s: float
    peak: float = 1e-3
    warm_steps: int = 100
    rounded_from: float = 0.86
    rounded_peak: float = 2e-4
    workers: int = 14
    budget_tflop: float = 41.0
    save_every_s: float = 110.0
    seed: int = 1
    compile: bool = True
    max_steps: int = 10**9
    tell: float = 0.3
    tell_layer: int = 5


class Figures(NamedTuple):
    """What a batch gave: loss and share right of the text, and of what the picture's rows tell.

    Numbers on the device, which has not made them yet: to look at one is to wait for it.
    """

    loss: Tensor
    right: Tensor
    tell: Tensor
    tell_right: Tensor


@dataclass
class Rank:
    """This process among its peers."""

    index: int
    count: int
    device: torch.device

    @staticmethod
    def of_environment() -> Rank:
        """As torchrun says; does not touch the device."""
        index, count = int(os.environ.get("RANK", 0)), int(os.environ.get("WORLD_SIZE", 1))
        # Asking through NVML: the other way makes a context, after which forking is unsafe.
        os.environ["PYTORCH_NVML_BASED_CUDA_CHECK"] = "1"
        device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return Rank(index, count, device)

    @staticmethod
    def join() -> Rank:
        """This process, on its device and met with its peers."""
        rank = Rank.of_environment()
        rank.enter()
        return rank

    def enter(self) -> None:
        """Takes the device and meets the peers."""
        if self.device.type == "cuda":
            torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
        if self.count > 1:
            dist.init_process_group("nccl" if self.device.type == "cuda" else "gloo")


class Log:
    """Running figures, one JSON line every few steps.

    Of each family: mean loss, share of tokens right, pages, batches, seconds a batch; loss and
    share right of what the picture's rows tell (0 where they were not asked).
    """

    def __init__(self, path: Path | None) -> None:
        self._file = path.open("a", encoding="utf-8") if path else None
        self._rows: dict[str, list[tuple[int, float, Figures]]] = defaultdict(list)

    def add(self, batch: Batch, figures: Figures, seconds: float) -> None:
        self._rows[batch.family].append((len(batch.ids), seconds, figures))

    def write(self, **figures: float) -> None:
        record: dict[str, object] = {key: round(value, 4) for key, value in figures.items()}
        for family, rows in sorted(self._rows.items()):
            pages, seconds, told = zip(*rows, strict=True)
            means = torch.stack([torch.stack(row) for row in told]).mean(0).tolist()
            loss, right, tell, tell_right = (round(value, 4) for value in means)
            record[family] = [
                loss, right, sum(pages), len(rows), round(sum(seconds) / len(rows), 3),
                tell, tell_right,
            ]  # fmt: skip
        self._rows.clear()
        if self._file:
            self._file.write(json.dumps(record) + "\n")
            self._file.flush()
            print(json.dumps(record), flush=True)


class Run:
    """The state of a training run on one rank."""

    def __init__(self, plan: Plan, rank: Rank) -> None:
        self.plan, self.rank = plan, rank
        torch.manual_seed(plan.seed)
        torch.set_float32_matmul_precision("high")
        tokenizer = Tokenizer.from_file(str(plan.tokenizer))
        self.model: Reader = load_reader(Folder(path=plan.base), tokenizer).to(rank.device)
        self.teller = Teller(self.model.g.width).to(rank.device) if plan.tell else None
        trained: nn.Module = self.model
        if self.teller:
            trained = nn.ModuleDict({"reader": self.model, "teller": self.teller})
        self.optimiser = Optimiser(trained, Rates(peak=plan.peak))
        self.masters: Masters | None = None
        self.step = self.skipped = self.dropped = self.pages = 0
        self.spent_s = 0.0
        self._resume()
        if plan.compile:
            PIECES.compile()
            for block in self.model.visual.blocks:
                block.compile(dynamic=True)
            for layer in self.model.layers:
                layer.compile_pieces()
        self.banned = torch.tensor(
            [PAD, IMAGE, IMAGE + 1, MASK, *range(LAST_USED + 1, self.model.g.rows)],
            device=rank.device,
        )

    def loss(self, batch: Batch) -> tuple[Tensor, Tensor]:
        """What to minimise, and the batch's figures [4] as in `Figures`.

        The text's loss is the mean cross entropy, or the divergence from the parent once weights
        are rounded.
        """
        pixels, ids = self._there(batch.pixels), self._there(batch.ids)
        # Where truth stands is found on the host: asked of the device, it would have to wait.
        known = self._there((batch.ids != PAD).flatten().nonzero()[:, 0])
        shown = disturbed(ids[:, :-1])
        truth, grid = ids.flatten()[known], (pixels.shape[1] // 32, pixels.shape[2] // 32)
        tell_weight = self.tell_weight()
        # Before the passes: how many rows are asked is known once the device has drawn them.
        targets = self._targets(batch, ids) if tell_weight else None
        with self._autocast():
            image = self.model.visual((pixels.float() - 127.5) / 127.5)
        if self.masters is None:
            hidden, rows = self._hidden(image, grid, shown)
            logits = self._logits(hidden.flatten(0, 1)[known])
            loss = token_losses(logits, truth).mean()
        else:
            image = image.detach()
            with self.masters.parent_in_place():
                told, _ = self._hidden(image, grid, shown)
                parent = self._logits(told.flatten(0, 1)[known]).detach()
            hidden, rows = self._hidden(image, grid, shown)
            logits = self._logits(hidden.flatten(0, 1)[known])
            loss = divergence(logits, parent).mean()
        figures = [loss.detach(), _share_right(logits, truth)]
        if targets:
            tell, right = self._tell(rows, targets)
            loss = loss + tell_weight * tell
            figures += tell.detach(), right
        return loss, F.pad(torch.stack(figures), (0, 4 - len(figures)))

    def _there(self, tensor: Tensor) -> Tensor:
        """The tensor on the device, which need not have it yet."""
        if self.rank.device.type == "cuda":
            tensor = tensor.pin_memory()
        return tensor.to(self.rank.device, non_blocking=True)

    def tell_weight(self) -> float:
        """The weight of what the picture's rows tell; falls to zero before the rate does."""
        if self.teller is None or self.masters is not None:
            return 0.0
        left = 1.0 - self.spent_s / self.plan.total_s / self.plan.rounded_from
        return self.plan.tell * min(1.0, max(0.0, left) / _TELL_FALL)

    def _targets(self, batch: Batch, ids: Tensor) -> Targets | None:
        """What the picture's rows are asked, no more than the text is; None where nothing is."""
        if batch.patches is None or batch.unsure is None:
            return None
        patches = batch.patches.to(ids.device, non_blocking=True)
        unsure = batch.unsure.to(ids.device, non_blocking=True)
        targets = draw_targets(ids, patches, unsure, (ids != PAD).sum())
        return targets if targets.count else None

    def _tell(self, rows: Tensor, targets: Targets) -> tuple[Tensor, Tensor]:
        """Mean cross entropy and share right of the targets, from rows [B, R, D]."""
        assert self.teller is not None
        with self._autocast():
            told = self.teller(rows, targets)
        logits, truth = self._logits(told), torch.cat(targets.tokens)
        return F.cross_entropy(logits, truth), _share_right(logits, truth)

    def _autocast(self) -> torch.autocast:
        # Entered anew for each pass: within one, casts of weights are kept, of swapped ones too.
        return torch.autocast(self.rank.device.type, torch.bfloat16)

    def _hidden(self, image: Tensor, grid: tuple[int, int], shown: Tensor) -> tuple[Tensor, Tensor]:
        """`Reader.decode`'s hidden states, and the picture's rows [B, R, D] as they are tapped."""
        end = 1 + grid[0] * grid[1]
        with self._autocast():
            for index, x in enumerate(self.model.states(image, grid, shown)):
                if index == self.plan.tell_layer:
                    rows = x[:, 1:end]
            return self.model.norm(x[:, end:]), rows

    def _logits(self, hidden: Tensor) -> Tensor:
        """Float32 logits [N, V] of hidden [N, D]; rows that are never written at -1e4."""
        with self._autocast():
            logits = self.model.logits(hidden)
        return logits.float().index_fill_(1, self.banned, -1e4)

    def learn(self, batch: Batch) -> Figures | None:
        """Adds a batch's gradient; its figures, or None where memory ran out.

        A rank that ran out gives nothing and goes on to the reduction, where its peers wait.
        """
        try:
            loss, figures = self.loss(batch)
            loss.backward()
            return Figures(*figures.unbind())
        except torch.OutOfMemoryError:
            pass
        # Outside the handler: its traceback holds the graph, and with it the memory.
        self.optimiser.flat.zero_()
        torch.cuda.empty_cache()
        self.dropped += 1
        return None

    def rate(self, done: float) -> float:
        """The share of the peak rate: a short warm-up, then linear to zero, once for each part."""
        part = self.plan.rounded_from
        if self.masters is None:
            return min(1.0, (self.step + 1) / self.plan.warm_steps) * max(0.0, 1.0 - done / part)
        left = max(0.0, (1.0 - done) / (1.0 - part))
        return self.plan.rounded_peak / self.plan.peak * left

    def update(self, done: float) -> Tensor:
        """Steps the weights unless the gradient is not finite; returns its norm."""
        norm = self.optimiser.reduce()
        # A norm of zero: no rank had memory for its batch.
        if bool(torch.isfinite(norm) & (norm > 0)):
            if self.masters:
                self.masters.restore()
            self.optimiser.step(self.rate(done), norm)
            if self.masters:
                self.masters.round()
        else:
            self.skipped += 1
        self.optimiser.flat.zero_()
        self.step += 1
        return norm

    def begin_rounding(self) -> None:
        """What the weights are now becomes the parent; from here on they are rounded."""
        if self.masters is None:
            self.masters = Masters(self.model)
            self.masters.round()
            if self.rank.index == 0:
                parent = {_MODEL + name: tensor for name, tensor in self.masters.parent.items()}
                self._write(_PARENT, parent)

    def weights(self) -> dict[str, Tensor]:
        """Full-precision weights under the trainable names, with a prefix."""
        state = {name: tensor.detach() for name, tensor in self.model.named_parameters()}
        state |= self.masters.copies if self.masters else {}
        return {_MODEL + name: tensor for name, tensor in state.items()}

    def save(self) -> None:
        """Writes the checkpoint; the rename makes it whole or absent."""
        tensors = self.weights() | self.optimiser.state()
        if self.teller:
            tensors |= {_TELLER + name: p for name, p in self.teller.state_dict().items()}
        meta = {
            "step": str(self.step), "spent_s": str(self.spent_s), "pages": str(self.pages),
            "rounded": str(int(self.masters is not None)),
        }  # fmt: skip
        self._write("checkpoint.safetensors", tensors, meta)

    def _write(
        self, name: str, tensors: dict[str, Tensor], meta: dict[str, str] | None = None
    ) -> None:
        ready = {key: tensor.detach().cpu().contiguous() for key, tensor in tensors.items()}
        save_file(ready, self.plan.out / "writing.tmp", metadata=meta)
        (self.plan.out / "writing.tmp").replace(self.plan.out / name)

    def _resume(self) -> None:
        path = self.plan.out / "checkpoint.safetensors"
        if not path.exists():
            return
        tensors = load_file(path)
        with torch.no_grad():
            for name, parameter in self.model.named_parameters():
                parameter.copy_(tensors[_MODEL + name])
            for name, parameter in self.teller.named_parameters() if self.teller else ():
                parameter.copy_(tensors[_TELLER + name])
        self.optimiser.load({k: v for k, v in tensors.items() if not k.startswith(_MODEL)})
        with safe_open(path, "pt") as file:
            meta = file.metadata()
        self.step, self.spent_s = int(meta["step"]), float(meta["spent_s"])
        self.pages = int(meta["pages"])
        if meta["rounded"] == "1":
            stored = load_file(self.plan.out / _PARENT, device=str(self.rank.device))
            parent = {name.removeprefix(_MODEL): tensor for name, tensor in stored.items()}
            self.masters = Masters(self.model, parent)
            self.masters.round()


def _share_right(logits: Tensor, truth: Tensor) -> Tensor:
    return (logits.detach().argmax(-1) == truth).float().mean()


def train(plan: Plan) -> None:
    """Runs until `stop_s` of wall clock in this call, or `total_s` over all calls."""
    begun = time.perf_counter()
    rank = Rank.of_environment()
    plan.out.mkdir(parents=True, exist_ok=True)
    progress = torch.zeros(1).share_memory_()
    source = Source(
        corpus=plan.corpus, fonts=plan.fonts, tokenizer=plan.tokenizer,
        seed=plan.seed + int(time.time()), budget_tflop=plan.budget_tflop,
    )  # fmt: skip
    batches = Batches(source, rank.index, progress)
    # Workers are forked before anything touches the device.
    feed = Feed(batches.stream, plan.workers, pin=rank.device.type == "cuda")
    rank.enter()
    run = Run(plan, rank)
    log = Log(plan.out / "log.jsonl" if rank.index == 0 else None)
    before_s, waited_s, marked = run.spent_s, 0.0, time.perf_counter()
    saved, clock = time.perf_counter(), torch.zeros(1, device=rank.device)
    while run.step < plan.max_steps:
        started = time.perf_counter()
        batch = feed.next()
        fetched = time.perf_counter()
        waited_s += fetched - started
        figures = run.learn(batch)
        done = run.spent_s / plan.total_s
        progress.fill_(done)
        norm = run.update(done)
        if figures:
            log.add(batch, figures, time.perf_counter() - fetched)
        now_s = time.perf_counter() - begun
        if rank.count > 1:
            # One clock for all ranks, or they would disagree on when to round and when to stop.
            clock.fill_(now_s)
            dist.broadcast(clock, 0)
            now_s = clock.item()
        run.spent_s = before_s + now_s
        run.pages += len(batch.ids) * rank.count
        if run.spent_s > plan.rounded_from * plan.total_s:
            run.begin_rounding()
        if run.step % 25 == 0:
            now = time.perf_counter()
            log.write(
                step=run.step, spent_s=run.spent_s, s25=now - marked, waited_s=waited_s,
                norm=norm.item(), pages=run.pages, skipped=run.skipped, rate=run.rate(done),
                dropped=run.dropped, lost=feed.lost, gib=peak_gib(rank.device),
            )  # fmt: skip
            marked, waited_s = now, 0.0
        ending = now_s > plan.stop_s or run.spent_s > plan.total_s
        if rank.index == 0 and (ending or time.perf_counter() - saved > plan.save_every_s):
            run.save()
            saved = time.perf_counter()
        if ending:
            break
    if rank.index == 0:
        if run.step >= plan.max_steps:
            run.save()
        print(f"ended at step {run.step}, {run.spent_s:.0f} s, {run.pages} pages", flush=True)
    feed.close()
    if rank.count > 1:
        dist.barrier()
    # Threads of the feed may hang in a read; leaving at once spares the wait for them.
    os._exit(0)


def peak_gib(device: torch.device) -> float:
    """The most device memory that was in use since the last call."""
    if device.type != "cuda":
        return 0.0
    peak = torch.cuda.max_memory_allocated(device) / 2**30
    torch.cuda.reset_peak_memory_stats(device)
    return peak


def plan_from_arguments() -> Plan:
    """A plan from the command line, one option a field."""
    parser = argparse.ArgumentParser(description=__doc__)
    kinds = {"Path": Path, "float": float, "int": int}
    for item in fields(Plan):
        name = "--" + item.name.replace("_", "-")
        if item.type == "bool":
            parser.add_argument(name, action=argparse.BooleanOptionalAction, default=item.default)
        else:
            required = item.name in (
                "base",
                "out",
                "corpus",
                "fonts",
                "tokenizer",
                "total_s",
                "stop_s",
            )
            default = None if required else item.default
            parser.add_argument(
                name, type=kinds[str(item.type)], required=required, default=default
            )
    return Plan(**vars(parser.parse_args()))


if __name__ == "__main__":
    train(plan_from_arguments())
