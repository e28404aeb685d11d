"""Tilings that measuring has found or is to judge, where `choose_tiling` has a rule."""

from collections.abc import Iterable
from types import MappingProxyType

from .layout import Format, Tiling, TilingTable

MEASURED: TilingTable = MappingProxyType(
    {
        (512, 1280, "nvfp4"): Tiling(block_n=16, block_k=128, split_k=4, num_warps=2),
        (512, 512, "nvfp4"): Tiling(block_n=16, block_k=128, split_k=4, num_warps=2),
        (2560, 512, "nvfp4"): Tiling(block_n=16, block_k=64, split_k=4, num_warps=1),
        (1280, 512, "nvfp4"): Tiling(block_n=16, block_k=64, split_k=4, num_warps=1),
        # Programs of one size and whole sums, so that one launch can make both.
        (2048, 512, "nvfp4"): Tiling(block_n=16, block_k=128, num_warps=2),
        (8, 512, "bf16"): Tiling(block_n=16, block_k=256, num_warps=2),
    }
)
"""The shipped model's products, each the quickest alone on an H200; sums are split among programs.

Whole passes by them take 0.68 (a row) and 0.66 (16 rows) of what they take by the rule, with rows
that are equal whatever stands beside them (`benchmarks/kernels`, tables).
"""


def streamed(shapes: Iterable[tuple[int, int]]) -> TilingTable:
    """Tilings that stream, for NVFP4 and FP8 weights from memory; (outputs, inputs) each.

    Not taken: no GPU has run it. `benchmarks/kernels`, section `wide`, holds it beside the rule.
    """
    formats: tuple[Format, ...] = ("nvfp4", "fp8")
    return {(*shape, format): _streamed(*shape, format) for shape in shapes for format in formats}


def _streamed(num_out: int, num_in: int, format: Format) -> Tiling:
    """Nine programs a multiprocessor of an H200, all of them there at once."""
    block_k = 256 if format == "nvfp4" else 128
    while block_k > 64 and block_k // 2 >= num_in:
        block_k //= 2
    num_steps = -(-num_in // block_k)
    split_k = max(1, min(num_steps // 2, 9 * 132 // -(-num_out // 16)))
    split_k = -(-num_steps // -(-num_steps // split_k))
    return Tiling(block_n=16, block_k=block_k, split_k=split_k, num_warps=1, streams=True)
