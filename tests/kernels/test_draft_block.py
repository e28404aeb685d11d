"""Convolutions, attention and context of a DFlash layer: Triton against the specification."""

import pytest
import torch
from torch import Tensor

from ocria.kernels.draft_block import DraftHeads, DraftSight, reference
from ocria.kernels.small_gemm import Norm

triton_impl = pytest.importorskip("ocria.kernels.draft_block.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
WIDTH = 32


def random(*shape: int, seed: int) -> Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator).to(DEVICE)


def heads(num_heads: int, num_kv_heads: int) -> DraftHeads:
    angles = torch.arange(600.0)[:, None] * 10_000.0 ** (-torch.arange(WIDTH // 2) / 16)
    gains = (1 + 0.1 * random(WIDTH, seed=seed) for seed in (1, 2))
    turn = (part.to(DEVICE) for part in (angles.cos(), angles.sin()))
    return DraftHeads(*gains, *turn, num_heads, num_kv_heads, 1e-6)


@pytest.mark.parametrize("num_back", [1, 3])
@pytest.mark.parametrize("has_norm", [True, False])
def test_mixed_rows(num_back: int, has_norm: bool) -> None:
    x, residual = (random(5, 48, seed=seed).bfloat16() for seed in (3, 4))
    coefficients = random(5, 2 * num_back * 6, seed=5)
    base = random(num_back, 48, seed=6)
    norm = Norm(1 + 0.1 * random(48, seed=7), 1e-6) if has_norm else None
    for first, added in ((0, None), (num_back * 6, residual)):
        found, expected = (
            part.mixed_rows(x, coefficients, base, first, norm=norm, residual_BH=added)
            for part in (triton_impl, reference)
        )
        torch.testing.assert_close(found.float(), expected.float(), rtol=1e-2, atol=1e-3)


def test_write_context() -> None:
    made = random(5, 3 * 2 * 2 * WIDTH, seed=8).bfloat16()
    gains, places = 1 + 0.1 * random(3, WIDTH, seed=9), torch.arange(7, 12, device=DEVICE)
    kept = [torch.zeros(2, 3, 2, 16, WIDTH, device=DEVICE).bfloat16() for _ in range(2)]
    for part, memory in zip((triton_impl, reference), kept, strict=True):
        part.write_context(made, memory, places, gains, heads(4, 2))
    torch.testing.assert_close(kept[0].float(), kept[1].float(), rtol=1e-2, atol=1e-3)
    assert not kept[0][..., :7, :].any() and kept[0][..., 7:12, :].any()


@pytest.mark.parametrize(
    ("length", "num_rows", "grouped", "window", "is_causal"),
    [(0, 16, (4, 2), 0, False), (300, 16, (4, 2), 0, False), (256, 5, (3, 1), 0, True),
     (511, 16, (2, 2), 40, False), (70, 16, (4, 2), 3, True)],
)  # fmt: skip
def test_attention(
    length: int, num_rows: int, grouped: tuple[int, int], window: int, is_causal: bool
) -> None:
    num_heads, num_kv_heads = grouped
    qkv = random(num_rows, (num_heads + 2 * num_kv_heads) * WIDTH, seed=10).bfloat16()
    kept = random(2, num_kv_heads, 512, WIDTH, seed=11).bfloat16()
    numbers = torch.tensor([max(0, length - 3), min(3, length), 9], device=DEVICE)
    found, expected = (
        part.draft_attention(
            qkv, kept, numbers, heads(num_heads, num_kv_heads), DraftSight(window, is_causal)
        )
        for part in (triton_impl, reference)
    )
    torch.testing.assert_close(found.float(), expected.float(), rtol=2e-2, atol=1e-2)
