"""A verify pass of a fixed size whose inputs lie on the device, so that it can be captured once.

Shape legend: M rows, B sequences.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ocria.models.base import WINDOW, Best, Output, Window
from ocria.models.qwen3_5.fused import FusedDecoder, place_of
from ocria.models.qwen3_5.given import Given


class StaticPass:
    """Room for `num_rows` rows of `num_sequences` sequences; fewer leave rows that nobody reads.

    Args:
        fused: the decoder.
        embed: the embedding.
        windows: the first to be run; slots of later ones must lie in the same pool.
        num_rows: M.
        num_sequences: B.
        tap_layers: as the target's.
        forbidden_V: uint8 [V], ones for ids that `best` never chooses.
        with_logits: give logits beside `best`.
    """

    def __init__(
        self,
        fused: FusedDecoder,
        embed: torch.nn.Embedding,
        windows: Sequence[Window],
        *,
        num_rows: int,
        num_sequences: int,
        tap_layers: tuple[int, ...],
        forbidden_V: Tensor,
        with_logits: bool,
    ) -> None:
        self._fused, self._embed, self._tap_layers = fused, embed, tap_layers
        self._forbidden_V, self._with_logits = forbidden_V, with_logits
        self._given = Given(
            place_of(windows[0].state, 0, 0),
            num_sequences=num_sequences,
            num_numbers=num_rows,
            max_rows=min(num_rows, WINDOW),
            total_rows=num_rows,
            device=embed.weight.device,
        )
        self.load(windows)

    @torch.inference_mode()
    def load(self, windows: Sequence[Window]) -> None:
        """Puts windows in place for the next pass on this stream."""
        self._given.wait()
        ids = [token for window in windows for token in window.token_ids]
        self._given.host_numbers[: len(ids)] = torch.tensor(ids)
        self._given.put(
            [
                place_of(state, state.length, len(window_ids), state.rope_delta)
                for state, window_ids in windows
            ]
        )

    @torch.inference_mode()
    def run(self) -> Output:
        """What all rows give; those behind the loaded windows mean nothing."""
        hidden_MD, taps = self._fused.run(
            self._embed(self._given.numbers),
            self._given.table,
            self._fused.text_angles,
            False,
            self._tap_layers,
        )
        best = Best(*self._fused.best(hidden_MD, self._forbidden_V))
        if self._with_logits:
            logits_MV = self._fused.logits(hidden_MD)
        else:
            logits_MV = hidden_MD.new_empty(0, len(self._forbidden_V), dtype=torch.float32)
        return Output(logits_MV, torch.stack(taps, 1) if taps else None, best)
