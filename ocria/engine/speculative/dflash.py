"""Proposes a block of tokens at once, from the target's own hidden rows (models/drafter).

Shape legend: R rows, L tapped layers, H hidden size.
"""

from collections.abc import Sequence

from torch import Tensor

from ocria.engine.speculative.dflash_room import DraftRoom, DraftRooms
from ocria.models.base import Prompt


class DFlashDrafter:
    """Drafts one sequence with a DFlash model.

    Its context is every accepted row of the target, image rows included, as keys and values; a
    block's own rows are never kept. Positions count tokens, an image token as one.

    Args:
        rooms: of the model, shared between sequences.
    """

    def __init__(self, rooms: DraftRooms) -> None:
        self._rooms = rooms
        self._room: DraftRoom | None = None
        self._prompt_length = 0

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page; its rows arrive through `tap`."""
        self.end_page()
        self._room, self._prompt_length = self._rooms.take(), len(prompt.token_ids)

    def end_page(self) -> None:
        """Gives the page's memory back; there are no proposals until `prepare`."""
        if self._room is not None:
            self._rooms.give_back(self._room)
        self._room = None

    def tap(self, rows_RLH: Tensor) -> None:
        """Keeps accepted rows of the target, side by side in the order of its `tap_layers`.

        Whoever never asks for a proposal, as `auto` where another source does better, does not pay
        for what is made of them.
        """
        if self._room is not None:
            self._room.add(rows_RLH)

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """The block behind the last token; nothing if rows before it are missing."""
        room = self._room
        if not emitted or room is None:
            return ()
        if room.num_rows != self._prompt_length + len(emitted) - 1:
            return ()
        return room.propose(emitted[-1])[:most]

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Nothing: what was accepted comes as rows."""
