"""The frozen target: one teacher-forced pass gives taps and what it would write at every place.

Shape legend: P pages, S sequence rows (vision start, image, vision end, text), T text tokens,
X tapped values of a row, H hidden size, V vocabulary.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.models.recipes.nano.layout import Folder, load_reader
from ocria.models.recipes.nano.model import Reader, decoder_angles
from ocria.models.recipes.nano.rounding import round_in_place
from ocria.models.recipes.nano.vocabulary import (
    COORDINATES,
    FIRST_MARKUP,
    IMAGE,
    LAST_USED,
    MARKUP,
    MASK,
    PAD,
    VIDEO,
    VISION_END,
    VISION_START,
)

FIRST_COORDINATE = FIRST_MARKUP + MARKUP.index("<|0|>")
# Rows whose logits are held at once.
_HEAD_ROWS = 32_768


@dataclass(frozen=True, kw_only=True)
class Reading:
    """What the target made of a batch of pages.

    Attributes:
        taps_PSX: hidden states of all rows but the last token's, image rows included.
        ids_PT: the text that was forced, eos-ended, padded with `PAD`.
        greedy_PT: what the target would have written at each place, given what stands before it.
        text_start: sequence position of the first text token.
    """

    taps_PSX: Tensor
    ids_PT: Tensor
    greedy_PT: Tensor
    text_start: int


class FrozenTarget:
    """A trained reader that is only read from.

    Args:
        folder: a checkpoint, quantised or not.
        taps: decoder layers whose output is kept.
        device: where it runs.
        rounded: round its weights as they ship (for an unquantised folder).
        dtype: None takes bfloat16 (under autocast) on a GPU and float32 on a CPU.
    """

    def __init__(
        self,
        folder: Path,
        taps: tuple[int, ...],
        device: torch.device,
        *,
        rounded: bool = False,
        dtype: torch.dtype | None = None,
    ) -> None:
        self.reader: Reader = load_reader(Folder(path=folder)).to(device).eval()
        if rounded:
            round_in_place(self.reader)
        self.reader.requires_grad_(False)
        self.taps, self.device = taps, device
        self.dtype = dtype or (torch.bfloat16 if device.type == "cuda" else torch.float32)
        g = self.reader.g
        self.vocab_size, self.hidden_size, self.num_layers = g.rows, g.width, g.layers
        assert all(0 <= layer < g.layers for layer in taps), f"taps {taps} of {g.layers} layers"
        unused = range(LAST_USED + 1, g.rows)
        never = [PAD, IMAGE, VIDEO, MASK, VISION_START, VISION_END, *unused]
        self.forbidden = torch.tensor([i for i in never if i < g.rows], device=device)

    def precision(self) -> torch.autocast:
        """The run's arithmetic, to be entered."""
        enabled = self.dtype == torch.bfloat16
        return torch.autocast(self.device.type, torch.bfloat16, enabled=enabled)

    def embed(self, ids: Tensor) -> Tensor:
        """Embedding rows [..., H] in the run's dtype."""
        return F.embedding(ids, self.reader.embed_tokens.weight).to(self.dtype)

    def head(self, hidden: Tensor) -> Tensor:
        """Logits [..., V] in float32; what may never be written is at minus infinity."""
        logits = F.linear(hidden, self.reader.embed_tokens.weight.to(hidden.dtype)).float()
        return logits.index_fill(-1, self.forbidden, -torch.inf)

    @torch.no_grad()
    def read(self, pixels: Tensor, ids_PT: Tensor, *, own_corners: int = 1) -> Reading:
        """Reads pages [P, height, width] uint8 with the text forced.

        Block corners are hard to tell to the unit, and a target that writes them sees its own:
        `own_corners` times, each corner of the text is replaced by the target's.
        """
        with self.precision():
            image = self.reader.visual((pixels.float() - 127.5) / 127.5)
            grid = (pixels.shape[1] // 32, pixels.shape[2] // 32)
            for _ in range(own_corners):
                _, greedy_PT = self._decode(image, grid, ids_PT, ())
                corner = _is_coordinate(ids_PT) & _is_coordinate(greedy_PT)
                ids_PT = torch.where(corner, greedy_PT, ids_PT)
            taps, greedy_PT = self._decode(image, grid, ids_PT, self.taps)
        return Reading(
            taps_PSX=torch.cat(taps, -1).to(self.dtype),
            ids_PT=ids_PT,
            greedy_PT=greedy_PT,
            text_start=2 + grid[0] * grid[1],
        )

    def _decode(
        self, image: Tensor, grid: tuple[int, int], ids_PT: Tensor, wanted: tuple[int, ...]
    ) -> tuple[list[Tensor], Tensor]:
        """Hidden states after the wanted layers, in their order, and the greedy tokens [P, T]."""
        reader = self.reader
        x = reader.sequence(image, ids_PT[:, :-1])
        angles = decoder_angles(reader.g, *grid, ids_PT.shape[1] - 1, x.device)
        cos, sin = (angle.to(x.dtype) for angle in angles)
        kept: dict[int, Tensor] = {}
        for index, layer in enumerate(reader.layers):
            x = layer(x, cos, sin)
            if index in wanted:
                kept[index] = x
        hidden = reader.norm(x[:, 1 + grid[0] * grid[1] :]).flatten(0, 1)
        best = [self.head(rows).argmax(-1) for rows in hidden.split(_HEAD_ROWS)]
        return [kept[index] for index in wanted], torch.cat(best).view(ids_PT.shape)


def _is_coordinate(ids: Tensor) -> Tensor:
    return (ids >= FIRST_COORDINATE) & (ids < FIRST_COORDINATE + COORDINATES)
