"""The state pool: owns the memory of all sequences, and the only way forward.

A slot is one sequence's memory. Attention keys and values are truncated by length, ring rows by
cursor; the recurrent checkpoint moves only over whole committed blocks at absolute positions.
"""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor

from ocria.engine.memory import is_out_of_memory, slot_shapes
from ocria.errors import DeviceError
from ocria.models.base import (
    FOLD_BLOCK,
    KEY_BLOCK,
    PREFILL_CHUNK,
    Fold,
    Prompt,
    SequenceState,
    Target,
)


class StatePool:
    """Slots for `num_slots` sequences of at most `max_positions` positions each."""

    def __init__(self, target: Target, *, num_slots: int, max_positions: int) -> None:
        self._target = target
        self.max_positions = -(-max_positions // KEY_BLOCK) * KEY_BLOCK
        self.resize(num_slots)

    def resize(self, num_slots: int) -> None:
        """Drops all slots, whatever they hold, and makes `num_slots` empty ones.

        Raises:
            DeviceError: not even these fit in memory.
        """
        self._slots: list[SequenceState] = []
        self._free: list[int] = []
        try:
            self._slots = self._allocate(num_slots)
        except (MemoryError, RuntimeError) as error:
            if not is_out_of_memory(error):
                raise
            raise DeviceError(
                f"not enough memory for {num_slots} pages of {self.max_positions} positions",
                hint="lower --max-tokens, or use a device with more memory",
            ) from error
        self._free = list(range(num_slots - 1, -1, -1))

    def _allocate(self, num_slots: int) -> list[SequenceState]:
        # One tensor a kind, [layers, slots, ...]: a kernel can find every slot from one address.
        shapes = slot_shapes(self._target, self.max_positions)
        whole: dict[str, Any] = {
            name: torch.zeros((layers, num_slots, *shape), dtype=dtype, device=self._target.device)
            for name, (layers, shape, dtype) in shapes.items()
        }
        return [
            SequenceState(**{name: tensor[:, slot] for name, tensor in whole.items()})
            for slot in range(num_slots)
        ]

    @property
    def num_slots(self) -> int:
        return len(self._slots)

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
        """Makes a prefilled chunk real; the prefill has folded its whole blocks itself."""
        assert state.length + num_rows <= self.max_positions, "committed past the end of the slot"
        state.length += num_rows

    def read(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Tensor:
        """Reads a whole prompt into an empty state; logits [V] after its last token."""
        while True:
            output = self._target.prefill(state, prompt, image_ND)
            unread = len(prompt.token_ids) - state.length
            self.commit_prompt(state, min(PREFILL_CHUNK, unread))
            if len(output.logits_TV):
                return output.logits_TV[-1]

    def commit(self, windows: Iterable[tuple[SequenceState, int]]) -> None:
        """Makes the first rows of each sequence's last window real and folds what is whole.

        The rest of a window is forgotten: later windows write over it.

        Args:
            windows: states, and how many rows of the window become real: at most `WINDOW`, so
                that at most one block of each becomes whole.
        """
        folds = []
        for state, num_rows in windows:
            block = state.length // FOLD_BLOCK
            state.length += num_rows
            assert state.length <= self.max_positions, "committed past the end of the slot"
            if (block + 1) * FOLD_BLOCK <= state.length:
                folds.append(Fold(state, block))
        if folds:
            self._target.fold(folds)
