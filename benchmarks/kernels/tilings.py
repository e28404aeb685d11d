"""Tilings of the shipped model's products, timed one beside the other: where should programs lie?

    PYTHONPATH=. python3 benchmarks/kernels/tilings.py [--seconds S] [--device cuda|cpu]

A line a product: the tiling that `choose_tiling` takes, then those that are quicker. Times are of
16 rows in a graph, weights of nine layers read round and round, from the L2 as in a pass.
"""

import argparse
import statistics
import time
from collections.abc import Iterator
from functools import partial
from itertools import product as combinations

import torch
from launches import codes_of

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
COPIES, ROUNDS = 9, 4


def tilings(num_out: int, num_in: int) -> Iterator[Tiling]:
    """What is worth a try: rows, columns, parts of K and warps of a program."""
    for rows, columns, parts, warps in combinations((16, 32), (64, 128, 256), (1, 2, 4), (1, 2, 4)):
        if parts <= -(-num_in // columns) and rows <= max(16, num_out) and warps * 16 <= columns:
            yield Tiling(block_n=rows, block_k=columns, split_k=parts, num_warps=warps)


@torch.inference_mode()
def main() -> None:
    """Prints as much as the time is enough for."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=240.0)
    parser.add_argument("--device", default="cuda", help="cpu: to find mistakes of the script")
    asked = parser.parse_args()
    until, device = time.monotonic() + asked.seconds, torch.device(asked.device)
    for name, num_out, num_in, format in SHAPES:
        is_paired, has_residual = name == "gate|up", name in ("down", "out")
        halves = 2 if is_paired else 1
        parts = [codes_of(format, num_out // halves, num_in, device) for _ in range(halves)]
        norm = None if has_residual else Norm(torch.rand(num_in, device=device) + 0.5, 1e-6)
        x = torch.randn(16, num_in, device=device).bfloat16()
        residual = torch.randn(16, num_out, device=device).bfloat16() if has_residual else None
        chosen, found = choose_tiling(num_out, num_in, format), []
        for tiling in (chosen, *tilings(num_out, num_in)):
            if time.monotonic() > until:
                break
            weights = [pack(parts, paired=is_paired, tiling=tiling) for _ in range(COPIES)]
            try:
                found.append((timed(weights, x, norm, residual), tiling))
            # A tiling that does not compile, or does not fit, is none.
            except Exception as error:
                print(f"    {tiling}: {type(error).__name__}: {error}"[:200], flush=True)
        if not found:
            break
        own = found[0][0]
        better = sorted((us, str(tiling)) for us, tiling in found[1:] if us < own)[:4]
        print(f"{name} {num_out} x {num_in} {format}: {own:.2f} us by {chosen}", flush=True)
        for us, tiling in better:
            print(f"    {us:.2f} us by {tiling}", flush=True)


def timed(
    weights: list[PackedWeight],
    x_MK: torch.Tensor,
    norm: Norm | None,
    residual_MN: torch.Tensor | None,
) -> float:
    """Microseconds of one product."""
    calls = [
        partial(small_gemm, x_MK, weight, norm=norm, residual_MN=residual_MN) for weight in weights
    ]
    if x_MK.device.type != "cuda":
        started = time.perf_counter()
        calls[0]()
        return 1e6 * (time.perf_counter() - started)
    # Compiles, and makes the scratch memory of split sums.
    calls[0]()
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


if __name__ == "__main__":
    main()
