"""Tilings of the shipped model's products, timed one beside the other: where should programs lie?

A line a product: the tiling that `choose_tiling` takes, then those that are quicker. Times are of
16 rows in a graph, weights of nine layers read round and round, from the L2 as in a pass.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from itertools import product as combinations
from typing import NamedTuple

import torch
from launches import codes_of
from subject import Figures, Subject
from torch import Tensor

from ocria.kernels.small_gemm import Norm, PackedWeight, pack, small_gemm
from ocria.kernels.small_gemm.layout import Format, Tiling, choose_tiling

SHAPES: tuple[tuple[str, int, int, Format], ...] = (
    ("down", 512, 1280, "nvfp4"),
    ("out", 512, 512, "nvfp4"),
    ("gate|up", 2560, 512, "nvfp4"),
    ("delta in", 2048, 512, "nvfp4"),
    ("attention in", 1280, 512, "nvfp4"),
    ("decay and beta", 8, 512, "bf16"),
)
COPIES, ROUNDS, ROWS = 9, 4, 16


class _Trial(NamedTuple):
    """One product by one tiling: the weights of several layers, and what it reads beside them."""

    shape: tuple[str, int, int, Format]
    tiling: Tiling
    weights: list[PackedWeight]
    x_MK: Tensor
    norm: Norm | None
    residual_MN: Tensor | None

    def calls(self) -> list[Callable[[], Tensor]]:
        return [
            partial(small_gemm, self.x_MK, weight, norm=self.norm, residual_MN=self.residual_MN)
            for weight in self.weights
        ]


def tilings(num_out: int, num_in: int) -> Iterator[Tiling]:
    """What is worth a try: columns, parts of K and warps of a program."""
    for columns, parts, warps in combinations((64, 128, 256), (1, 2, 4), (1, 2, 4)):
        num_steps = -(-num_in // columns)
        is_even = parts <= num_steps <= 10 and warps * 32 <= columns
        if is_even and (num_out > 16 or parts == 1):
            yield Tiling(block_n=16, block_k=columns, split_k=parts, num_warps=warps)


def _trials(subject: Subject, shape: tuple[str, int, int, Format]) -> Iterator[_Trial]:
    """The tiling that is taken first."""
    name, num_out, num_in, format = shape
    is_paired, has_residual = name == "gate|up", name in ("down", "out")
    halves = 2 if is_paired else 1
    device = subject.device
    parts = [codes_of(format, num_out // halves, num_in, device) for _ in range(halves)]
    norm = None if has_residual else Norm(torch.rand(num_in, device=device) + 0.5, 1e-6)
    x = subject.random(ROWS, num_in)
    residual = subject.random(ROWS, num_out) if has_residual else None
    chosen = choose_tiling(num_out, num_in, format)
    for tiling in dict.fromkeys((chosen, *tilings(num_out, num_in))):
        weight = pack(parts, paired=is_paired, tiling=tiling)
        yield _Trial(shape, tiling, [weight], x, norm, residual)


def launches(subject: Subject) -> Iterator[tuple[str, Callable[[], object]]]:
    """Every trial, to be compiled."""
    for shape in SHAPES:
        for trial in _trials(subject, shape):
            yield f"{shape[0]} by {trial.tiling}", trial.calls()[0]


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """As much as the time is enough for; a line a product that can go into a table of tilings."""
    for shape in SHAPES:
        name, num_out, num_in, format = shape
        found: list[tuple[float, Tiling]] = []
        expected: Tensor | None = None
        for trial in _trials(subject, shape):
            if subject.left_s < 4:
                figures.say(name, "not run to the end: time is up")
                break
            try:
                y = trial.calls()[0]()
                expected = y.float() if expected is None else expected
                error = float((y.float() - expected).norm() / expected.norm())
                assert error < 1e-2, f"{error:.1e} off the tiling that is taken"
                copies = [_copy(trial.weights[0]) for _ in range(COPIES)]
                found.append((timed(trial._replace(weights=copies).calls()), trial.tiling))
            # A tiling that does not compile, or does not fit, is none.
            except Exception as error:
                figures.say(f"{name} by {trial.tiling}", f"{type(error).__name__}: {error}"[:120])
        if not found:
            continue
        own, chosen = found[0]
        figures.say(f"{name} {num_out} x {num_in} {format}", f"{own:.2f} us by {_short(chosen)}")
        for rank, (us, tiling) in enumerate(sorted(found, key=lambda pair: pair[0])[:3], 1):
            if us < own:
                figures.say(f"    {name}, {rank}", f"{us:.2f} us by {_short(tiling)}")
        best = min(found, key=lambda pair: pair[0])[1]
        figures.say(f"    {name}, row", f"({num_out}, {num_in}, {format!r}): {best},")


def _copy(weight: PackedWeight) -> PackedWeight:
    return replace(weight, codes=weight.codes.clone(), block_scales=weight.block_scales.clone())


def _short(tiling: Tiling) -> str:
    return (
        f"{tiling.block_n} x {tiling.block_k}, {tiling.split_k} parts, {tiling.num_warps} warps, "
        f"{tiling.num_stages} stages"
    )


def timed(calls: list[Callable[[], Tensor]]) -> float:
    """Microseconds of one product."""
    if not calls[0]().is_cuda:
        started = time.perf_counter()
        calls[0]()
        return 1e6 * (time.perf_counter() - started)
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for call in calls * ROUNDS:
            call()
    times = []
    for _ in range(7):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(10):
            graph.replay()
        end.record()
        end.synchronize()
        times.append(start.elapsed_time(end))
    return 1e3 * statistics.median(times) / (10 * len(calls) * ROUNDS)
