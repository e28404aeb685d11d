"""What the engine sees of a model: token ids, patches and states, no architecture.

Shape legend
    T  window of new tokens (up to `WINDOW`), padded to whole row tiles inside the model
    N  image tokens, P patches (P = N * merge**2)
    D  hidden size, V vocabulary

Canonical arithmetic (docs/structure.md): a row's result never depends on what surrounds it.
Decoder products take rows in tiles of `ROW_TILE`, attention splits keys at multiples of
`KEY_BLOCK`, the recurrent state is folded at multiples of `FOLD_BLOCK`, prefill advances by
`PREFILL_CHUNK`; all are absolute positions in the sequence.
"""

from typing import NamedTuple, Protocol

import torch
from torch import Tensor

ROW_TILE = 16
KEY_BLOCK = 256
FOLD_BLOCK = 32
PREFILL_CHUNK = 256
WINDOW = 32


class ImagePatches(NamedTuple):
    """One page as the vision tower wants it.

    Attributes:
        values_PC: float32 [P, 768], normalised, ordered (channel, y, x) within a patch; patches
            ordered by 2x2 merge blocks (block row, block column, row, column within the block).
        grid_h: patch rows, a multiple of the merge size.
        grid_w: patch columns, likewise.
    """

    values_PC: Tensor
    grid_h: int
    grid_w: int


class StateLayout(NamedTuple):
    """Sizes of what one sequence keeps between passes."""

    num_attention_layers: int
    num_kv_heads: int
    head_dim: int
    num_delta_layers: int
    num_value_heads: int
    num_key_heads: int
    key_dim: int
    value_dim: int
    conv_channels: int
    conv_kernel: int
    max_positions: int


class Target(Protocol):
    """A model the engine can drive. `state` is the sequence's view into the state pool."""

    layout: StateLayout
    device: torch.device
    dtype: torch.dtype

    def encode_image(self, image: ImagePatches) -> Tensor:
        """Image tokens [N, D]."""
        ...

    def prefill(self, state: "SequenceState", prompt: "Prompt", image_ND: Tensor | None) -> Tensor:
        """Reads the whole prompt into `state` and commits it; logits [V] after its last token."""
        ...

    def verify(self, state: "SequenceState", token_ids_T: Tensor) -> Tensor:
        """Logits [T, V] after each of T tokens appended at the cursor; commits nothing."""
        ...


class Prompt(NamedTuple):
    """Prompt ids with the image's place in it.

    Attributes:
        token_ids: all ids, the image placeholder repeated once for each image token.
        image_start: index of the first placeholder, or -1 without an image.
        grid_h: merged grid rows of the image (image tokens = grid_h * grid_w).
        grid_w: merged grid columns.
    """

    token_ids: tuple[int, ...]
    image_start: int
    grid_h: int
    grid_w: int


class SequenceState(Protocol):
    """One sequence's memory: what a model reads and appends to. See ocria/engine/state.py."""

    length: int
    rope_delta: int
