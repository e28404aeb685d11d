"""Tilings that measuring has found, where `choose_tiling` has a rule."""

from types import MappingProxyType

from .layout import Tiling, TilingTable

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
