"""Counts what the host asks of a CUDA device in a step, with torch's profiler."""

from collections.abc import Iterable, Mapping

import torch

from ocria.bench.figures import LaunchCounts
from ocria.bench.measured_target import MeasuredTarget
from ocria.engine import Engine, Request

NUM_STEPS = 8
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize", "cudaMemcpy")
_LAUNCHES = (
    "cudaLaunchKernel",
    "cudaLaunchKernelExC",
    "cuLaunchKernel",
    "cuLaunchKernelEx",
    "cudaGraphLaunch",
    "cudaMemcpyAsync",
    "cudaMemsetAsync",
)


def count_launches(engine: Engine, target: MeasuredTarget, request: Request) -> LaunchCounts | None:
    """Profiles `NUM_STEPS` decoding steps of a request; None without CUDA or a step to profile.

    The request must be long enough; what it emits is thrown away.
    """
    if target.device.type != "cuda":
        return None
    engine.submit(request)
    while target.num_passes == 0:
        engine.step()
    torch.cuda.synchronize(target.device)
    activities = [torch.profiler.ProfilerActivity.CPU, torch.profiler.ProfilerActivity.CUDA]
    before = target.num_passes
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        for _ in range(NUM_STEPS):
            if engine.step():
                break
    steps = target.num_passes - before
    engine.close()
    counts = {event.key: event.count for event in profile.key_averages()}
    return per_step(counts, steps) if steps else None


def per_step(counts: Mapping[str, int], steps: int) -> LaunchCounts:
    """Runtime calls by name as launches and waits a step."""
    return LaunchCounts(
        launches=_sum(counts, _LAUNCHES) / steps, synchronisations=_sum(counts, _WAITS) / steps
    )


def _sum(counts: Mapping[str, int], names: Iterable[str]) -> int:
    return sum(counts.get(name, 0) for name in names)
