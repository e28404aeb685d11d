"""The mixer over windows of several sequences: Triton against the specification, with states."""

import pytest
import torch
from torch import Tensor

from ocria.kernels.gated_delta import DeltaWeights, window
from ocria.kernels.sequence_table import Place, SequenceTable, SlotMemory, sequence_table

triton_impl = pytest.importorskip("ocria.kernels.gated_delta.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
LAYERS, KEY_HEADS, VALUE_HEADS, K, W = 2, 1, 2, 16, 32
CHANNELS = 2 * KEY_HEADS * K + VALUE_HEADS * W


def normal(*shape: int, seed: int) -> Tensor:
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def make_weights(layer: int) -> DeltaWeights:
    return DeltaWeights(
        taps_XT=(normal(4, CHANNELS, seed=layer) * 0.5).bfloat16().to(DEVICE).mT,
        A_log_R=(0.3 * normal(VALUE_HEADS, seed=layer + 10)).to(DEVICE),
        dt_bias_R=normal(VALUE_HEADS, seed=layer + 20).to(DEVICE),
        num_key_heads=KEY_HEADS,
        key_dim=K,
        value_dim=W,
    )


WEIGHTS = [make_weights(layer) for layer in range(LAYERS)]


def make_memory(poison: float) -> SlotMemory:
    """An empty slot; what was never written holds `poison`."""

    def filled(*shape: int, dtype: torch.dtype = torch.bfloat16) -> Tensor:
        return torch.full(shape, poison, dtype=dtype, device=DEVICE)

    return SlotMemory(
        keys_LJSD=filled(1, 1, 256, 16),
        values_LJSD=filled(1, 1, 256, 16),
        conv_in_LEX=filled(LAYERS, 64, CHANNELS),
        conv_out_LEX=filled(LAYERS, 64, CHANNELS),
        decay_LER=filled(LAYERS, 64, VALUE_HEADS, dtype=torch.float32),
        beta_LER=filled(LAYERS, 64, VALUE_HEADS, dtype=torch.float32),
        checkpoint_LRKW=torch.zeros(LAYERS, VALUE_HEADS, K, W, device=DEVICE),
    )


class Inputs:
    """Projection outputs by position for both layers, wider than the kernel reads."""

    def __init__(self, num_rows: int, seed: int) -> None:
        wide = normal(LAYERS, num_rows, CHANNELS + 32, seed=seed)
        self.qkvz = wide.bfloat16().to(DEVICE)
        self.ba = normal(LAYERS, num_rows, 2 * VALUE_HEADS, seed=seed + 1).to(DEVICE)


def run(impl, table: SequenceTable, rows: list[tuple[Inputs, slice]], *, prefill: bool) -> Tensor:
    outputs = []
    for layer, weights in enumerate(WEIGHTS):
        qkvz = torch.cat([inputs.qkvz[layer, part] for inputs, part in rows])
        ba = torch.cat([inputs.ba[layer, part] for inputs, part in rows])
        outputs.append(impl.delta_pass(table, layer, qkvz, ba, weights, prefill=prefill))
    return torch.stack(outputs)


def prefill(impl, memory: SlotMemory, inputs: Inputs, length: int) -> Tensor:
    outputs = []
    for start in range(0, length, 128):
        place = Place(memory, start, min(128, length - start))
        part = slice(start, start + place.num_rows)
        outputs.append(run(impl, sequence_table([place]), [(inputs, part)], prefill=True))
    return torch.cat(outputs, 1)


def step(impl, memory: SlotMemory, inputs: Inputs, start: int, rows: int, kept: int) -> Tensor:
    """A window whose rows behind `kept` are rejected, then the fold."""
    table = sequence_table([Place(memory, start, rows, kept=kept)])
    out = run(impl, table, [(inputs, slice(start, start + rows))], prefill=False)
    impl.delta_fold(table, WEIGHTS[0])
    return out[:, :kept]


def close(found: Tensor, expected: Tensor, tolerance: float) -> None:
    assert torch.isfinite(found).all()
    assert float((found.double() - expected.double()).norm()) <= tolerance * float(
        expected.double().norm()
    )


@pytest.mark.parametrize("length", [5, 66, 160])
def test_prefill_equals_specification(length: int) -> None:
    inputs, memories = Inputs(length, seed=length), (make_memory(0.0), make_memory(float("nan")))
    expected = prefill(window, memories[0], inputs, length)
    found = prefill(triton_impl, memories[1], inputs, length)
    close(found, expected, 4e-3)
    close(memories[1].checkpoint_LRKW, memories[0].checkpoint_LRKW, 1e-3)
    written = torch.arange(max(0, length - 64), length) % 64
    for name in ("conv_in_LEX", "conv_out_LEX", "decay_LER", "beta_LER"):
        pair = (getattr(memory, name)[:, written] for memory in reversed(memories))
        close(*pair, 4e-3)


def test_windows_equal_specification_and_single_rows() -> None:
    inputs = Inputs(140, seed=3)
    memories = [make_memory(0.0), make_memory(float("nan")), make_memory(float("nan"))]
    impls = (window, triton_impl, triton_impl)
    for impl, memory in zip(impls, memories, strict=True):
        prefill(impl, memory, inputs, 37)
    # Windows that end before, on and behind block boundaries, with rejected rows.
    cuts = [(7, 3), (32, 24), (3, 1), (32, 31)]
    start, outputs = 37, ([], [], [])
    for rows, kept in cuts:
        outputs[0].append(step(window, memories[0], inputs, start, rows, kept))
        outputs[1].append(step(triton_impl, memories[1], inputs, start, rows, kept))
        for place in range(start, start + kept):
            outputs[2].append(step(triton_impl, memories[2], inputs, place, 1, 1))
        start += kept
    expected, found, single = (torch.cat(parts, 1) for parts in outputs)
    close(found, expected, 4e-3)
    close(memories[1].checkpoint_LRKW, memories[0].checkpoint_LRKW, 1e-3)
    assert torch.equal(found, single)
    assert torch.equal(memories[1].checkpoint_LRKW, memories[2].checkpoint_LRKW)


def test_sequences_do_not_disturb_each_other() -> None:
    alone, together = ([make_memory(0.0) for _ in range(2)] for _ in range(2))
    inputs = [Inputs(64, seed=seed) for seed in (5, 6)]
    spans = [(0, 9), (0, 20)]
    expected = [
        step(triton_impl, memory, one, *span, span[1])
        for memory, one, span in zip(alone, inputs, spans, strict=True)
    ]
    places = [
        Place(memory, start, rows, kept=rows)
        for memory, (start, rows) in zip(together, spans, strict=True)
    ]
    parts = [(one, slice(0, rows)) for one, (_, rows) in zip(inputs, spans, strict=True)]
    found = run(triton_impl, sequence_table(places), parts, prefill=False)
    assert torch.equal(found, torch.cat(expected, 1))


def test_nearly_identical_keys_do_not_overflow() -> None:
    # Blank paper: neighbouring rows are alike, and beta is near one.
    inputs = Inputs(64, seed=9)
    inputs.qkvz[:] = inputs.qkvz[:, :1] * (1 + 1e-2 * normal(64, 1, seed=1).to(DEVICE))
    inputs.ba[..., :VALUE_HEADS] = 6.0
    inputs.ba[..., VALUE_HEADS:] = -8.0
    expected_memory, memory = make_memory(0.0), make_memory(0.0)
    expected = prefill(window, expected_memory, inputs, 64)
    close(prefill(triton_impl, memory, inputs, 64), expected, 1e-2)
