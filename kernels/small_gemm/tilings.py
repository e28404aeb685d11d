"""Named tables of tilings, to be held against `choose_tiling` by `benchmarks/kernels`."""

from types import MappingProxyType

from .layout import Tiling, TilingTable

SPLIT_SUMS: TilingTable = MappingProxyType(
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
"""The quickest of the shipped model's products, each timed alone on an H200.

Not taken: whole passes by them have not been held against each other on a GPU.
"""
