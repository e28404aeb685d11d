"""The two rates that no version exceeds: a large copy and a large product, in this run."""

import re
from collections.abc import Callable
from pathlib import Path

import torch

from ocria.bench.clock import Clock
from ocria.bench.figures import Ceilings, Quantiles

_COPY_BYTES = {"cpu": 1 << 28, "cuda": 1 << 30}
_PRODUCT_SIDE = {"cpu": 2048, "cuda": 8192}
_REPEATS = 7
_CPU_CACHES = Path("/sys/devices/system/cpu/cpu0/cache")


def measure_ceilings(device: torch.device, dtype: torch.dtype) -> Ceilings:
    """Measures both rates, after one call of each to warm up."""
    kind = device.type
    return Ceilings(
        copy_bytes_per_s=copy_rate(device, _COPY_BYTES[kind]),
        product_flops_per_s=product_rate(device, dtype, _PRODUCT_SIDE[kind]),
        cache_bytes=cache_bytes(device),
    )


def copy_rate(device: torch.device, num_bytes: int) -> Quantiles:
    """Bytes read and written a second by a copy of `num_bytes`, well past every cache."""
    # Random bytes: some memory systems are quicker on zeros.
    source = torch.randint(256, (num_bytes,), dtype=torch.uint8, device=device)
    sink = torch.empty_like(source)
    return _rate(device, lambda: sink.copy_(source), 2 * num_bytes)


def product_rate(device: torch.device, dtype: torch.dtype, side: int) -> Quantiles:
    """Operations a second of a square product of `side`."""
    generator = torch.Generator(device).manual_seed(0)
    a, b = (
        torch.randn(side, side, generator=generator, device=device, dtype=dtype) for _ in range(2)
    )
    return _rate(device, lambda: a @ b, 2 * side**3)


def cache_bytes(device: torch.device) -> int:
    """Size of the last-level cache; 0 where it is not told."""
    if device.type == "cuda":
        return int(torch.cuda.get_device_properties(device).L2_cache_size)
    sizes = [
        int(size[1]) << {"K": 10, "M": 20}.get(size[2], 0)
        for path in _CPU_CACHES.glob("index*/size")
        if (size := re.fullmatch(r"(\d+)([KM]?)", path.read_text().strip()))
    ]
    return max(sizes, default=0)


def _rate(device: torch.device, work: Callable[[], object], amount: int) -> Quantiles:
    clock, rates = Clock(device), []
    work()
    for _ in range(_REPEATS):
        started = clock.now_s()
        work()
        rates.append(amount / (clock.now_s() - started))
    return Quantiles.of(rates)
