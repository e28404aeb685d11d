"""Chunks of several prompts in one pass whose inputs lie on the device: it can be captured once.

The launches of a chunk cost a host more time than a GPU, and one prompt's delta rule keeps few
multiprocessors busy. So prompts are read side by side, a chunk of each in a pass.

Shape legend: M rows, B sequences, D hidden size, N image tokens.
"""

from collections.abc import Sequence

import torch

from ocria.kernels.block_attention import RotaryTable
from ocria.kernels.sequence_table import NUM_COLUMNS, Place, SequenceTable, host_rows
from ocria.models.base import PREFILL_CHUNK, Chunk, Output, SequenceState
from ocria.models.qwen3_5.decoder import Decoder, prompt_positions, rope_delta
from ocria.models.qwen3_5.fused import FusedDecoder, chunk_angles, place_of

_IDS, _IS_IMAGE, _POSITIONS = 0, 1, 2
_NUM_LINES = 5
"""Of what the host gives for each row: its id, whether an image token takes its place, and three
rotary positions."""


class StaticPrefill:
    """Room for one chunk each of `num_sequences` prompts; all are idle until `load`.

    Args:
        fused: the decoder.
        plain: its embedding and angles.
        state: a slot of the pool in which all prompts lie.
        num_sequences: B; `load` wants as many chunks.
        tap_layers: as the target's.
    """

    def __init__(
        self,
        fused: FusedDecoder,
        plain: Decoder,
        state: SequenceState,
        *,
        num_sequences: int,
        tap_layers: tuple[int, ...],
    ) -> None:
        self._fused, self._plain, self._tap_layers = fused, plain, tap_layers
        embedding = plain.embed_tokens.weight
        device, num_rows = embedding.device, num_sequences * PREFILL_CHUNK
        pinned = device.type == "cuda"
        # In one piece, that one copy takes; the table first, whose address kernels want aligned.
        table_size = num_sequences * NUM_COLUMNS
        size = table_size + _NUM_LINES * num_rows
        self._host = torch.zeros(size, dtype=torch.int64, pin_memory=pinned)
        self._given = self._host.to(device)
        self._host_rows_BF = self._host[:table_size].view(num_sequences, NUM_COLUMNS)
        self._host_lines = self._host[table_size:].view(_NUM_LINES, num_rows)
        self._lines = self._given[table_size:].view(_NUM_LINES, num_rows)
        self._image_MD = embedding.new_zeros(num_rows, embedding.shape[1])
        self._copied = torch.cuda.Event() if pinned else None
        idle = place_of(state, 0, 0)
        self._table = SequenceTable(
            rows_BF=self._given[:table_size].view(num_sequences, NUM_COLUMNS),
            memory=(idle.memory,) * num_sequences,
            max_rows=PREFILL_CHUNK,
            total_rows=num_rows,
        )
        self._put([idle] * num_sequences)

    @torch.inference_mode()
    def load(self, chunks: Sequence[Chunk]) -> None:
        """Puts the chunks in place for the next pass on this stream, row behind row."""
        # The host's buffer is read when the device comes to it.
        if self._copied is not None and not self._copied.query():
            self._copied.synchronize()
        places, first = [], 0
        for chunk in chunks:
            state, prompt, image_ND = chunk
            start, end = state.length, chunk.end
            rows = slice(first, first + end - start)
            positions_3S = prompt_positions(
                len(prompt.token_ids), prompt.image_start, prompt.grid_h, prompt.grid_w
            )
            state.rope_delta = rope_delta(prompt)
            self._host_lines[_IDS, rows] = torch.tensor(prompt.token_ids[start:end])
            self._host_lines[_POSITIONS:, rows] = positions_3S[:, start:end]
            self._host_lines[_IS_IMAGE, rows] = 0
            if image_ND is not None:
                taken, where = chunk.image_rows(len(image_ND))
                put = slice(first + where.start, first + where.stop)
                self._host_lines[_IS_IMAGE, put] = 1
                self._image_MD[put] = image_ND[taken].to(self._image_MD.dtype)
            # A pass brings the angles of its own rows.
            places.append(place_of(state, start, end - start, first - start))
            first = rows.stop
        self._put(places)

    def _put(self, places: Sequence[Place]) -> None:
        self._host_rows_BF.copy_(host_rows(places))
        self._given.copy_(self._host, non_blocking=True)
        if self._copied is not None:
            self._copied.record()
        # Kernels go by the addresses alone, references by these.
        self._table = self._table._replace(memory=tuple(place.memory for place in places))

    @torch.inference_mode()
    def run(self) -> Output:
        """Logits [B, V] after each chunk's last row, and taps of all rows."""
        embedded_MD = self._plain.embed_tokens(self._lines[_IDS])
        x_MD = torch.where(self._lines[_IS_IMAGE, :, None] > 0, self._image_MD, embedded_MD)
        hidden_MD, taps = self._fused.run(x_MD, self._table, self._rotary(), True, self._tap_layers)
        first_B, count_B = self._table.rows_BF[:, 0], self._table.rows_BF[:, 1]
        last_BD = hidden_MD[(first_B + count_B - 1).clamp(min=0)]
        return Output(self._fused.logits(last_BD), torch.stack(taps, 1) if taps else None)

    def _rotary(self) -> RotaryTable:
        return chunk_angles(self._plain.rotary(self._lines[_POSITIONS:]))
