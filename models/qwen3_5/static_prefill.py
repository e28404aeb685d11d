"""Chunks of several prompts in one pass whose inputs lie on the device: it can be captured once.

The launches of a chunk cost a host more time than a GPU, and one prompt's delta rule keeps few
multiprocessors busy. So prompts are read side by side, a chunk of each in a pass.

Shape legend: M rows, B sequences, D hidden size, N image tokens.
"""

from collections.abc import Sequence

import torch

from ocria.kernels.block_attention import RotaryTable
from ocria.kernels.sequence_table import FIRST_ROW, NUM_ROWS
from ocria.models.base import PREFILL_CHUNK, Chunk, Output, SequenceState
from ocria.models.qwen3_5.decoder import Decoder, prompt_positions, rope_delta
from ocria.models.qwen3_5.fused import FusedDecoder, chunk_angles, place_of
from ocria.models.qwen3_5.given import Given

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
        self._given = Given(
            place_of(state, 0, 0),
            num_sequences=num_sequences,
            num_numbers=_NUM_LINES * num_rows,
            max_rows=PREFILL_CHUNK,
            total_rows=num_rows,
            device=device,
        )
        self._host_lines = self._given.host_numbers.view(_NUM_LINES, num_rows)
        self._lines = self._given.numbers.view(_NUM_LINES, num_rows)
        self._image_MD = embedding.new_zeros(num_rows, embedding.shape[1])

    @torch.inference_mode()
    def load(self, chunks: Sequence[Chunk]) -> None:
        """Puts the chunks in place for the next pass on this stream, row behind row."""
        self._given.wait()
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
        self._given.put(places)

    @torch.inference_mode()
    def run(self) -> Output:
        """Logits [B, V] after each chunk's last row, and taps of all rows."""
        embedded_MD = self._plain.embed_tokens(self._lines[_IDS])
        x_MD = torch.where(self._lines[_IS_IMAGE, :, None] > 0, self._image_MD, embedded_MD)
        table = self._given.table
        hidden_MD, taps = self._fused.run(x_MD, table, self._rotary(), True, self._tap_layers)
        last_B = table.rows_BF[:, FIRST_ROW] + table.rows_BF[:, NUM_ROWS] - 1
        last_BD = hidden_MD[last_B.clamp(min=0)]
        return Output(self._fused.logits(last_BD), torch.stack(taps, 1) if taps else None)

    def _rotary(self) -> RotaryTable:
        return chunk_angles(self._plain.rotary(self._lines[_POSITIONS:]))
