"""Which rows of a pass belong to which sequence, and where that sequence's memory lies.

Shape legend
    B  sequences of a pass, M rows of a pass, L layers of a kind, J key-value heads, S positions
    D  head width, E ring rows, X convolution channels, R value heads, K key width, W value width

The table lies on the device, so a captured graph reads new positions, and even other slots, at each
replay. Memory is named by address: slots need not be neighbours.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

FIRST_ROW, NUM_ROWS, START, ROPE_DELTA, KEPT = range(5)
"""Columns: first row in the pass, rows, position of the first one, what is added to a position to
get the rotary one, and rows that are committed (read by the fold alone)."""
KEYS, VALUES, CONV_IN, CONV_OUT, DECAY, BETA, CHECKPOINT = range(5, 12)
"""Columns with addresses."""
NUM_COLUMNS = 12
BLOCK = 32
"""Rows of a fold block."""
RING = 2 * BLOCK


class SlotMemory(NamedTuple):
    """One sequence's memory; fields as in `ocria.models.base.SequenceState`."""

    keys_LJSD: Tensor
    values_LJSD: Tensor
    conv_in_LEX: Tensor
    conv_out_LEX: Tensor
    decay_LER: Tensor
    beta_LER: Tensor
    checkpoint_LRKW: Tensor


class SequenceTable(NamedTuple):
    """The sequences of a pass.

    Attributes:
        rows_BF: int64 [B, `NUM_COLUMNS`] on the device of the memory.
        memory: in the same order; all of one shape and stride.
        max_rows: no sequence has more rows than this.
        total_rows: rows of all sequences together.
    """

    rows_BF: Tensor
    memory: tuple[SlotMemory, ...]
    max_rows: int
    total_rows: int

    @property
    def num_sequences(self) -> int:
        return len(self.memory)


class Place(NamedTuple):
    """One sequence's part of a pass, before it is put on the device.

    `addresses` are those of `memory`, from whoever has them at hand.
    """

    memory: SlotMemory
    start: int
    num_rows: int
    rope_delta: int = 0
    kept: int = 0
    addresses: tuple[int, ...] | None = None


def addresses_of(memory: SlotMemory) -> tuple[int, ...]:
    """Of its tensors, in the order of the columns."""
    return tuple(tensor.data_ptr() for tensor in memory)


def host_rows(places: Sequence[Place]) -> Tensor:
    """The table's numbers, int64 [B, `NUM_COLUMNS`] on the CPU."""
    lines, first = [], 0
    for place in places:
        numbers = (first, place.num_rows, place.start, place.rope_delta, place.kept)
        lines.append(numbers + (place.addresses or addresses_of(place.memory)))
        first += place.num_rows
    return torch.tensor(lines, dtype=torch.int64)


def sequence_table(places: Sequence[Place]) -> SequenceTable:
    """Puts the sequences of a pass on their device."""
    device = places[0].memory.checkpoint_LRKW.device
    return SequenceTable(
        rows_BF=host_rows(places).to(device, non_blocking=True),
        memory=tuple(place.memory for place in places),
        max_rows=max(place.num_rows for place in places),
        total_rows=sum(place.num_rows for place in places),
    )
