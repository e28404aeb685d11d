"""What DFlash keeps of a sequence, and a proposal as one program over that memory.

The program has the same launches on the same memory each time: on CUDA it is captured once and
replayed, so that a proposal is one launch from the host and one wait for its tokens. A room serves
sequence after sequence, since a capture costs as much as many proposals.

Shape legend
    R  rows that wait, at most `ROW_TILE`, X their tapped values side by side, L tapped layers
    B  rows of a block, K = B - 1 places to propose, S positions of the context
    E  draft layers, J key-value heads, D channels of a head, H hidden size
"""

from collections.abc import Callable, Collection

import torch
from torch import Tensor

from ocria.engine import graphs
from ocria.models.base import KEY_BLOCK, ROW_TILE
from ocria.models.drafter import DFlash, DraftHost
from ocria.models.drafter.fused import FusedDraft, can_fuse_draft
from ocria.models.drafter.layers import LayerContext

_FIRST_CAPACITY = 2048


class DraftRoom:
    """Memory of one sequence: keys and values of accepted rows, and rows that wait to become such.

    Args:
        model: loaded for this target, shared between rooms.
        fused: the same by fused kernels; None to run the modules.
        host: the target.
        forbidden_ids: tokens that are never proposed.
        block_size: rows of a block.
    """

    def __init__(
        self,
        model: DFlash,
        fused: FusedDraft | None,
        host: DraftHost,
        forbidden_ids: Collection[int],
        block_size: int,
    ) -> None:
        config, device = model.config, host.device
        self._model, self._fused, self._host = model, fused, host
        forbidden_V = torch.zeros(host.vocab_size, dtype=torch.uint8)
        forbidden_V[sorted(forbidden_ids)] = 1
        self._forbidden_V = forbidden_V.to(device)
        self._masks = torch.full((block_size - 1,), config.mask_token_id, device=device)
        width = len(config.target_layer_ids) * config.hidden_size
        self._waiting_RX = torch.zeros(ROW_TILE, width, dtype=host.dtype, device=device)
        self._steps_R = torch.arange(ROW_TILE, device=device)
        # Length of the context, rows that wait, last token.
        self._host_numbers = torch.zeros(3, dtype=torch.int64, pin_memory=device.type == "cuda")
        self._numbers = self._host_numbers.to(device)
        self._numbers_to_write = self._host_numbers.numpy()
        shape = (2, len(config.layers), config.num_key_value_heads, 0, config.head_dim)
        self._kept_2EJSD = torch.zeros(shape, dtype=host.dtype, device=device)
        self._length = self._num_waiting = self._num_spilt = 0
        self._spilt: list[Tensor] = []
        self._recorded: tuple[Tensor, Callable[[], None]] | None = None
        self._grow(_FIRST_CAPACITY)

    def restart(self) -> None:
        """Forgets the sequence."""
        self._length = self._num_waiting = self._num_spilt = 0
        self._spilt.clear()

    @property
    def num_rows(self) -> int:
        """Accepted rows that came."""
        return self._length + self._num_waiting + self._num_spilt

    @torch.inference_mode()
    def add(self, rows_RLH: Tensor) -> None:
        """Keeps accepted rows; keys and values are made of them when a proposal is asked for.

        Few rows, as a pass gives them, become part of the proposal's program.
        """
        end = self._num_waiting + len(rows_RLH)
        if self._spilt or end > ROW_TILE:
            self._spilt.append(rows_RLH.flatten(1).clone())
            self._num_spilt += len(rows_RLH)
        else:
            self._waiting_RX[self._num_waiting : end] = rows_RLH.flatten(1)
            self._num_waiting = end

    @torch.inference_mode()
    def propose(self, last: int) -> list[int]:
        """K tokens to follow the sequence, whose last token is `last`."""
        if self.num_rows + ROW_TILE > self._capacity:
            self._grow(self.num_rows + ROW_TILE)
        if self._spilt:
            self._inject_spilt()
        # The copy of the call before has run: its tokens were waited for.
        self._numbers_to_write[:] = self._length, self._num_waiting, last
        self._numbers.copy_(self._host_numbers, non_blocking=True)
        self._length, self._num_waiting = self.num_rows, 0
        if not graphs.can_record(self._host.device):
            return list(self._run(-(-self._length // KEY_BLOCK) * KEY_BLOCK).tolist())
        if self._recorded is None:
            self._recorded = graphs.record(lambda: self._run(self._capacity))
        chosen_K, replay = self._recorded
        replay()
        return list(chosen_K.tolist())

    def _run(self, reach: int) -> Tensor:
        """The proposal [K] by what lies in memory; blocks look at `reach` positions."""
        start, count, last_1 = self._numbers[0], self._numbers[1], self._numbers[2:]
        # Rows behind those that wait are written too, and written again before they are seen.
        self._write(self._waiting_RX, start + self._steps_R)
        embedded_BH = self._host.embed(torch.cat([last_1, self._masks]))
        if self._fused is not None:
            hidden_KH = self._fused.hidden(embedded_BH, self._kept_2EJSD, self._numbers)[1:]
            logits_KV = self._host.head(hidden_KH)
            return self._fused.choose(hidden_KH, logits_KV, self._forbidden_V, last_1)
        seen_2E1JSD = self._kept_2EJSD[:, :, None, :, :reach]
        hidden_KH = self._model(
            embedded_BH[None, None],
            (start + count).view(1, 1),
            [LayerContext(*pair) for pair in seen_2E1JSD.unbind(1)],
            self._positions_S[None, :reach],
        )[0, 0, 1:]
        logits_KV = self._host.head(hidden_KH).masked_fill(self._forbidden_V.bool(), -torch.inf)
        chosen = self._model.choose(hidden_KH[None, None], logits_KV[None, None], last_1[None])
        return chosen[0, 0]

    def _write(self, rows_RX: Tensor, positions_R: Tensor) -> None:
        """Makes keys and values of rows and puts them in their places."""
        if self._fused is not None:
            self._fused.write(rows_RX, self._kept_2EJSD, positions_R)
            return
        made = self._model.context(rows_RX[None], positions_R[None])
        both = (torch.cat([part[kind] for part in made]) for kind in (0, 1))
        self._kept_2EJSD.index_copy_(3, positions_R, torch.stack(list(both)))

    def _inject_spilt(self) -> None:
        rows_RX = torch.cat([self._waiting_RX[: self._num_waiting], *self._spilt])
        end = self.num_rows
        self._write(rows_RX, self._positions_S[self._length : end])
        self._length, self._num_waiting, self._num_spilt = end, 0, 0
        self._spilt.clear()

    def _grow(self, length: int) -> None:
        """Room for so many positions; captured launches hold the memory that was."""
        self._capacity = 1 << (length - 1).bit_length()
        shape = (*self._kept_2EJSD.shape[:3], self._capacity, self._kept_2EJSD.shape[4])
        grown = self._kept_2EJSD.new_zeros(shape)
        grown[..., : self._length, :] = self._kept_2EJSD[..., : self._length, :]
        self._kept_2EJSD = grown
        self._positions_S = torch.arange(self._capacity, device=grown.device)
        self._recorded = None


class DraftRooms:
    """Rooms of one drafter, used again when a sequence is over.

    Args:
        model: loaded for this target.
        host: the target.
        forbidden_ids: tokens that are never proposed.
        block_size: rows of a block; None takes what the model was trained with.
    """

    def __init__(
        self,
        model: DFlash,
        host: DraftHost,
        *,
        forbidden_ids: Collection[int] = (),
        block_size: int | None = None,
    ) -> None:
        size = block_size or model.config.block_size
        assert size >= 2, "a block holds the last token and at least one proposal"
        is_fused = can_fuse_draft(model.config, host.device, host.dtype)
        fused = FusedDraft(model) if is_fused else None
        self._make = lambda: DraftRoom(model, fused, host, forbidden_ids, size)
        self._free: list[DraftRoom] = []

    def take(self) -> DraftRoom:
        """An empty room."""
        room = self._free.pop() if self._free else self._make()
        room.restart()
        return room

    def give_back(self, room: DraftRoom) -> None:
        """Nobody uses this room any more."""
        self._free.append(room)
