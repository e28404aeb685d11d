"""An attention layer between its projections: Triton against the specification, caches included."""

import pytest
import torch
from torch import Tensor

from ocria.kernels.block_attention import AttentionWeights, RotaryTable, window
from ocria.kernels.sequence_table import Place, SlotMemory, sequence_table

triton_impl = pytest.importorskip("ocria.kernels.block_attention.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
KEY_BLOCK, CAPACITY = 64, 192


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(DEVICE)


def make_weights(heads: int, kv: int, width: int) -> AttentionWeights:
    gains = [1 + 0.2 * normal(width, seed=seed) for seed in (1, 2)]
    return AttentionWeights(*gains, heads, kv, width, 1e-6)


def make_rotary(half: int) -> RotaryTable:
    angles = torch.outer(torch.arange(256.0), 0.7 ** torch.arange(half)).to(DEVICE)
    return RotaryTable(angles.cos(), angles.sin())


def make_memory(weights: AttentionWeights, poison: float) -> SlotMemory:
    shape = (2, weights.num_kv_heads, CAPACITY, weights.head_dim)
    caches = [torch.full(shape, poison, dtype=torch.bfloat16, device=DEVICE) for _ in range(2)]
    unused = torch.zeros(1, device=DEVICE)
    return SlotMemory(*caches, *[unused] * 5)


def projected(weights: AttentionWeights, rows: int, seed: int) -> Tensor:
    columns = 2 * (weights.num_heads + weights.num_kv_heads) * weights.head_dim
    return normal(rows, columns, seed=seed).bfloat16()


def close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert torch.isfinite(found).all()
    difference = (found.double() - expected.double()).norm()
    assert float(difference) <= tolerance * float(expected.double().norm())


@pytest.mark.parametrize("shape", [(4, 2, 32, 8), (3, 1, 16, 8), (2, 2, 16, 4)], ids=str)
def test_equals_specification(shape: tuple[int, int, int, int]) -> None:
    weights, rotary = make_weights(*shape[:3]), make_rotary(shape[3])
    expected_memory, memory = make_memory(weights, 0.0), make_memory(weights, float("nan"))
    start = 0
    # Windows that end before, on and behind the blocks of keys.
    for rows in (61, 3, 1, 70):
        qkv = projected(weights, rows, seed=rows)
        results = []
        for impl, slot in ((window, expected_memory), (triton_impl, memory)):
            table = sequence_table([Place(slot, start, rows, rope_delta=-(start // 2))])
            results.append(impl.attention_pass(table, 1, qkv, rotary, weights, KEY_BLOCK))
        start += rows
        close(results[1], results[0], 6e-3)
    for name in ("keys_LJSD", "values_LJSD"):
        written, wanted = (getattr(slot, name)[1, :, :start] for slot in (memory, expected_memory))
        close(written, wanted, 4e-3)
    assert memory.keys_LJSD[0].isnan().all() and memory.keys_LJSD[1, :, start:].isnan().all()


def test_a_row_has_the_same_bits_in_every_window() -> None:
    weights, rotary = make_weights(4, 2, 16), make_rotary(8)
    qkv = projected(weights, 90, seed=4)
    whole = make_memory(weights, 0.0)
    place = Place(whole, 0, 90)
    expected = triton_impl.attention_pass(
        sequence_table([place]), 0, qkv, rotary, weights, KEY_BLOCK
    )
    slot, start = make_memory(weights, float("nan")), 0
    for rows, kept in ((17, 16), (1, 1), (32, 31), (20, 18), (24, 24)):
        table = sequence_table([Place(slot, start, rows)])
        part = qkv[start : start + rows].clone()
        part[kept:] = 5.0
        found = triton_impl.attention_pass(table, 0, part, rotary, weights, KEY_BLOCK)
        assert torch.equal(found[:kept], expected[start : start + kept])
        start += kept
    assert torch.equal(slot.keys_LJSD[0, :, :90], whole.keys_LJSD[0, :, :90])


def test_sequences_do_not_disturb_each_other() -> None:
    weights, rotary = make_weights(4, 2, 16), make_rotary(8)
    qkv = projected(weights, 24, seed=7)
    alone, together = ([make_memory(weights, 0.0) for _ in range(2)] for _ in range(2))
    spans = [(0, 5), (0, 19)]
    expected = [
        triton_impl.attention_pass(
            sequence_table([Place(slot, *span)]), 0, rows.contiguous(), rotary, weights, KEY_BLOCK
        )
        for slot, span, rows in zip(alone, spans, qkv.split([5, 19]), strict=True)
    ]
    table = sequence_table([Place(slot, *span) for slot, span in zip(together, spans, strict=True)])
    found = triton_impl.attention_pass(table, 0, qkv, rotary, weights, KEY_BLOCK)
    assert torch.equal(found, torch.cat(expected))
