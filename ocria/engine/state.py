"""The state pool: owns the memory of all sequences, and the only way forward.

A slot is one sequence's memory. Attention keys and values are truncated by length, ring rows by
cursor; the recurrent checkpoint moves only over whole committed blocks at absolute positions.
"""

import torch

from ocria.errors import DeviceError
from ocria.models.base import (
    FOLD_BLOCK,
    KEY_BLOCK,
    RING_ROWS,
    SequenceState,
    StateLayout,
    Target,
)


class StatePool:
    """Slots for `num_slots` sequences of at most `max_positions` positions each."""

    def __init__(self, target: Target, *, num_slots: int, max_positions: int) -> None:
        self._target = target
        self.max_positions = -(-max_positions // KEY_BLOCK) * KEY_BLOCK
        try:
            self._slots = [self._allocate(target.layout) for _ in range(num_slots)]
        except (torch.OutOfMemoryError, MemoryError, RuntimeError) as error:
            raise DeviceError(
                f"not enough memory for {num_slots} pages of {self.max_positions} positions",
                hint="lower --max-tokens, or use a device with more memory",
            ) from error
        self._free = list(range(num_slots))

    def _allocate(self, layout: StateLayout) -> SequenceState:
        device, dtype = self._target.device, self._target.dtype
        wide = torch.promote_types(dtype, torch.float32)
        # On the CPU, attention computes in float32: keeping exact float32 copies of rounded keys
        # saves a conversion of the whole cache at every step.
        cache = wide if device.type == "cpu" else dtype

        def zeros(*shape: int, of: torch.dtype) -> torch.Tensor:
            return torch.zeros(shape, dtype=of, device=device)

        attention, delta = layout.num_attention_layers, layout.num_delta_layers
        cached = (attention, layout.num_kv_heads, self.max_positions, layout.head_dim)
        ring = (delta, RING_ROWS)
        heads = layout.num_value_heads
        return SequenceState(
            keys_LJSD=zeros(*cached, of=cache),
            values_LJSD=zeros(*cached, of=cache),
            conv_in_LEX=zeros(*ring, layout.conv_channels, of=dtype),
            conv_out_LEX=zeros(*ring, layout.conv_channels, of=dtype),
            decay_LER=zeros(*ring, heads, of=wide),
            beta_LER=zeros(*ring, heads, of=wide),
            checkpoint_LRKW=zeros(delta, heads, layout.key_dim, layout.value_dim, of=wide),
        )

    @property
    def num_free(self) -> int:
        return len(self._free)

    def acquire(self) -> tuple[int, SequenceState]:
        """A free slot and its empty state."""
        slot = self._free.pop()
        state = self._slots[slot]
        state.length, state.rope_delta = 0, 0
        state.checkpoint_LRKW.zero_()
        return slot, state

    def release(self, slot: int) -> None:
        """Gives a slot back."""
        assert slot not in self._free, f"slot {slot} is free already"
        self._free.append(slot)

    def commit_prompt(self, state: SequenceState, num_rows: int) -> None:
        """Makes a prefilled prompt real; the prefill has folded its whole blocks itself."""
        assert state.length == 0, "a prompt is committed once"
        state.length = num_rows

    def commit(self, state: SequenceState, num_rows: int) -> None:
        """Makes the first `num_rows` rows of the last window real and folds what is whole.

        The rest of the window is forgotten: later windows write over it.
        """
        block = state.length // FOLD_BLOCK
        state.length += num_rows
        assert state.length <= self.max_positions, "committed past the end of the slot"
        while (block + 1) * FOLD_BLOCK <= state.length:
            self._target.fold(state, block)
            block += 1
