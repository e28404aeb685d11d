"""A verify pass of a fixed size whose inputs lie on the device, so that it can be captured once.

Shape legend: M rows, B sequences.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from ocria.kernels.sequence_table import NUM_COLUMNS, Place, SequenceTable, host_rows
from ocria.models.base import WINDOW, Best, Output, Window
from ocria.models.qwen3_5.fused import FusedDecoder, named_slot, place_of


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
        device = embed.weight.device
        pinned = device.type == "cuda"
        # In one piece, that one copy takes; the table first, whose address kernels want aligned.
        table_size = num_sequences * NUM_COLUMNS
        self._host = torch.zeros(table_size + num_rows, dtype=torch.int64, pin_memory=pinned)
        self._given = self._host.to(device)
        self._host_rows_BF = self._host[:table_size].view(num_sequences, NUM_COLUMNS)
        self._host_ids_M, self._ids_M = self._host[table_size:], self._given[table_size:]
        self._copied = torch.cuda.Event() if pinned else None
        memory = named_slot(windows[0].state).memory
        self._table = SequenceTable(
            rows_BF=self._given[:table_size].view(num_sequences, NUM_COLUMNS),
            memory=(memory,) * num_sequences,
            max_rows=min(num_rows, WINDOW),
            total_rows=num_rows,
        )
        self.load(windows)

    @torch.inference_mode()
    def load(self, windows: Sequence[Window]) -> None:
        """Puts windows in place for the next pass on this stream."""
        # The host's buffer is read when the device comes to it.
        if self._copied is not None and not self._copied.query():
            self._copied.synchronize()
        ids = [token for window in windows for token in window.token_ids]
        self._host_ids_M[: len(ids)] = torch.tensor(ids)
        places = [
            place_of(state, state.length, len(window_ids), state.rope_delta)
            for state, window_ids in windows
        ]
        idle = Place(places[0].memory, 0, 0, addresses=places[0].addresses)
        places += [idle] * (self._host_rows_BF.shape[0] - len(places))
        self._host_rows_BF.copy_(host_rows(places))
        self._given.copy_(self._host, non_blocking=True)
        if self._copied is not None:
            self._copied.record()
        # Kernels go by the addresses alone, references by these.
        self._table = self._table._replace(memory=tuple(place.memory for place in places))

    @torch.inference_mode()
    def run(self) -> Output:
        """What all rows give; those behind the loaded windows mean nothing."""
        hidden_MD, taps = self._fused.run(
            self._embed(self._ids_M), self._table, self._fused.text_angles, False, self._tap_layers
        )
        best = Best(*self._fused.best(hidden_MD, self._forbidden_V))
        if self._with_logits:
            logits_MV = self._fused.logits(hidden_MD)
        else:
            logits_MV = hidden_MD.new_empty(0, len(self._forbidden_V), dtype=torch.float32)
        return Output(logits_MV, torch.stack(taps, 1) if taps else None, best)
