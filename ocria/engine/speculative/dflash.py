"""Proposes a block of tokens at once, from the target's own hidden rows (models/drafter).

Shape legend
    R  rows of a pass, L tapped layers, X their values side by side, H hidden size
    B  rows of a block, K = B - 1 places to propose, S context rows, V vocabulary
    J  key-value heads, D channels of a head, E draft layers
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from ocria.models.base import KEY_BLOCK, Prompt
from ocria.models.drafter import DFlash, DraftHost
from ocria.models.drafter.layers import LayerContext


class DFlashDrafter:
    """Drafts one sequence with a DFlash model.

    Its context is every accepted row of the target, image rows included, as keys and values; a
    block's own rows are never kept. Positions count tokens, an image token as one.

    Args:
        model: loaded for this target, shared between sequences.
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
        config = model.config
        self._model, self._host = model, host
        self._size = block_size or config.block_size
        assert self._size >= 2, "a block holds the last token and at least one proposal"
        self._forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=host.device)
        self._masks = [config.mask_token_id] * (self._size - 1)
        self._prompt_length = self._length = self._num_tapped = 0
        self._pending: list[Tensor] = []
        # Keys, then values, of all draft layers; grown as the page grows.
        shape = (2, len(config.layers), config.num_key_value_heads, 0, config.head_dim)
        self._kept_2EJSD = torch.zeros(shape, dtype=host.dtype, device=host.device)

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page; its rows arrive through `tap`."""
        self._prompt_length, self._length, self._num_tapped = len(prompt.token_ids), 0, 0
        self._pending.clear()

    @torch.inference_mode()
    def tap(self, rows_RLH: Tensor) -> None:
        """Keeps accepted rows of the target, side by side in the order of its `tap_layers`.

        Keys and values are made of them when a proposal is asked for: whoever never asks, as
        `auto` where another source does better, does not pay for them.
        """
        self._pending.append(rows_RLH.flatten(1).clone())
        self._num_tapped += len(rows_RLH)

    @torch.inference_mode()
    def _inject(self) -> None:
        """Makes the context's keys and values of the rows that came since the last proposal."""
        rows_RX = torch.cat(self._pending)
        self._pending.clear()
        start, self._length = self._length, self._num_tapped
        self._reserve(self._length)
        positions_1R = torch.arange(start, self._length, device=rows_RX.device)[None]
        made = self._model.context(rows_RX[None], positions_1R)
        for layer, (keys, values) in enumerate(made):
            self._kept_2EJSD[0, layer, :, start : self._length] = keys[0]
            self._kept_2EJSD[1, layer, :, start : self._length] = values[0]

    @torch.inference_mode()
    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """The block behind the last token; nothing if rows before it are missing."""
        if not emitted or self._num_tapped != self._prompt_length + len(emitted) - 1:
            return ()
        if self._pending:
            self._inject()
        hidden_KH, logits_KV = self._draft(emitted[-1])
        anchor_id = torch.tensor([[emitted[-1]]], device=self._host.device)
        path = self._model.choose(hidden_KH[None, None], logits_KV[None, None], anchor_id)
        chosen: list[int] = path[0, 0].tolist()
        return chosen[:most]

    def _draft(self, last: int) -> tuple[Tensor, Tensor]:
        """Hidden rows [K, H] and logits [K, V] of the K places behind the last token."""
        device = self._host.device
        ids_B = torch.tensor([last, *self._masks], device=device)
        hidden = self._model(
            self._host.embed(ids_B)[None, None],
            torch.tensor([[self._length]], device=device),
            [LayerContext(*pair) for pair in self._context()],
            torch.arange(self._length, device=device)[None],
        )[0, 0, 1:]
        return hidden, self._host.head(hidden).index_fill(-1, self._forbidden, -torch.inf)

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Nothing: what was accepted comes as rows."""

    def _context(self) -> list[tuple[Tensor, Tensor]]:
        kept = self._kept_2EJSD[:, :, None, :, : self._length]
        return list(zip(kept[0], kept[1], strict=True))

    def _reserve(self, length: int) -> None:
        room = self._kept_2EJSD.shape[3]
        if length > room:
            grown = max(length, room + room // 2)
            grown = -(-grown // KEY_BLOCK) * KEY_BLOCK
            bigger = self._kept_2EJSD.new_zeros(
                (*self._kept_2EJSD.shape[:3], grown, self._kept_2EJSD.shape[4])
            )
            bigger[..., :room, :] = self._kept_2EJSD
            self._kept_2EJSD = bigger
