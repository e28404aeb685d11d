"""Proposes a few tokens with the checkpoint's own MTP head (models/qwen3_5/mtp.py).

Shape legend: T rows, D hidden size.
"""

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from ocria.models.base import PREFILL_CHUNK, Prompt
from ocria.models.qwen3_5.decoder import prompt_positions
from ocria.models.qwen3_5.mtp import MtpCache, MtpHead, MtpHost

NUM_DRAFTS = 4
"""Tokens of a proposal. The head was trained for one and feeds itself for the rest."""


class MtpDrafter:
    """Drafts one sequence.

    The head sees every accepted row with the token that followed it; rows of its own drafts are
    forgotten after the proposal. The target must tap its last layer alone. An image row's token is
    the placeholder: the image's own rows are in the hidden rows.

    Args:
        head: loaded for this target, shared between sequences.
        host: the target.
        forbidden_ids: tokens that are never proposed.
        num_drafts: most tokens of a proposal.
    """

    def __init__(
        self,
        head: MtpHead,
        host: MtpHost,
        *,
        forbidden_ids: Collection[int] = (),
        num_drafts: int = NUM_DRAFTS,
    ) -> None:
        assert num_drafts >= 1, "a proposal holds at least one token"
        self._head, self._host, self._num_drafts = head, host, num_drafts
        self._forbidden = torch.tensor(sorted(forbidden_ids), dtype=torch.long, device=host.device)
        self._cache = MtpCache()
        self._pending: list[Tensor] = []
        self._prompt: tuple[int, ...] = ()
        self._num_tapped = 0

    def prepare(self, prompt: Prompt) -> None:
        """Begins a page; its rows arrive through `tap`."""
        self._prompt, self._num_tapped = prompt.token_ids, 0
        self._cache.length = 0
        self._pending.clear()
        length = len(prompt.token_ids)
        positions = prompt_positions(length, prompt.image_start, prompt.grid_h, prompt.grid_w)
        self._positions_3T = positions
        self._next_position = int(positions.max()) + 1 if length else 0

    @torch.inference_mode()
    def tap(self, rows_TLD: Tensor) -> None:
        """Keeps accepted rows of the target's last layer until a proposal is asked for."""
        assert rows_TLD.shape[1] == 1, "the target taps its last layer alone"
        self._pending.append(rows_TLD[:, 0].clone())
        self._num_tapped += len(rows_TLD)

    @torch.inference_mode()
    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        """Tokens behind the last one; nothing if rows before it are missing."""
        num_rows = len(self._prompt) + len(emitted) - 1
        if not emitted or most < 1 or self._num_tapped != num_rows or not self._pending:
            return ()
        hidden_1D = self._catch_up(emitted)
        drafts: list[int] = []
        for step in range(min(most, self._num_drafts)):
            logits_1V = self._host.head(hidden_1D).index_fill(-1, self._forbidden, -torch.inf)
            drafts.append(int(logits_1V.argmax()))
            if step + 1 < min(most, self._num_drafts):
                hidden_1D = self._rows(drafts[-1:], hidden_1D, self._cache.length)
                self._cache.length += 1
        self._cache.length = num_rows
        return drafts

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None:
        """Nothing: what was accepted comes as rows."""

    def _catch_up(self, emitted: Sequence[int]) -> Tensor:
        """Runs the head over the rows that came since the last proposal; its last output [1, D]."""
        rows_TD = self._head.final_norm(torch.cat(self._pending))
        self._pending.clear()
        first = self._cache.length
        following = (*self._prompt, *emitted)[first + 1 : first + 1 + len(rows_TD)]
        out_TD = rows_TD
        for start in range(0, len(rows_TD), PREFILL_CHUNK):
            chunk = slice(start, start + PREFILL_CHUNK)
            out_TD = self._rows(following[chunk], rows_TD[chunk], first + start)
            self._cache.length = first + start + len(out_TD)
        return out_TD[-1:]

    def _rows(self, tokens: Sequence[int], hidden_TD: Tensor, first: int) -> Tensor:
        ids_T = torch.tensor(tokens, device=self._host.device)
        positions_3T = self._positions(first, len(tokens)).to(self._host.device)
        return self._head(self._host.embed(ids_T), hidden_TD, positions_3T, self._cache)

    def _positions(self, first: int, count: int) -> Tensor:
        """Rotary positions [3, T] of rows `first` and on: the target's own."""
        behind = torch.arange(first + count) - len(self._prompt) + self._next_position
        known = self._positions_3T
        if first + count <= known.shape[1]:
            return known[:, first : first + count]
        later_3T = behind[known.shape[1] :].expand(3, -1)
        return torch.cat([known, later_3T], 1)[:, first : first + count]
