"""Attention with an absolute split against PyTorch's own."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.kernels.block_attention import block_attention


def make_cache(length: int, capacity: int, kv_heads: int, width: int) -> tuple[Tensor, Tensor]:
    """Keys and values, poisoned behind `length` with large finite numbers."""
    generator = torch.Generator().manual_seed(length)
    keys = torch.randn(kv_heads, capacity, width, generator=generator)
    values = torch.randn(kv_heads, capacity, width, generator=generator)
    keys[:, length:] = 3e4
    values[:, length:] = -3e4
    return keys, values


@pytest.mark.parametrize("start", [0, 1, 62, 63, 64, 200])
@pytest.mark.parametrize("num_rows", [1, 3, 17, 65])
def test_equals_scaled_dot_product_attention(start: int, num_rows: int) -> None:
    length = start + num_rows
    keys, values = make_cache(length, 320, 2, 16)
    q = torch.randn(num_rows, 6, 16, generator=torch.Generator().manual_seed(1))
    out = block_attention(q, keys, values, start, key_block=64)

    visible = torch.arange(length) <= (torch.arange(num_rows) + start)[:, None]
    expected = F.scaled_dot_product_attention(
        q.transpose(0, 1)[None],
        keys[None, :, :length].repeat_interleave(3, 1),
        values[None, :, :length].repeat_interleave(3, 1),
        attn_mask=visible,
    )
    torch.testing.assert_close(out, expected[0].transpose(0, 1), rtol=1e-5, atol=1e-5)


def test_a_row_has_the_same_bits_in_every_window() -> None:
    keys, values = make_cache(150, 256, 2, 16)
    q = torch.randn(16, 4, 16, generator=torch.Generator().manual_seed(2))
    whole = block_attention(q, keys, values, 120, key_block=64)
    for shift in (1, 5, 9):
        moved = torch.roll(q, shift, 0)
        again = block_attention(moved, keys, values, 120 - shift, key_block=64)
        assert torch.equal(again[shift:], whole[: 16 - shift])
