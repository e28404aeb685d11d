"""What the engine sees of a model: token ids, patches and states, no architecture.

Shape legend
    T  rows of a window, prompt or pass, N image tokens, P patches, D hidden size, V vocabulary
    L  layers of a kind, J key-value heads, S positions, E ring rows
    R  value heads, H key heads, K key width, W value width, X convolution channels

Canonical arithmetic (docs/structure.md): a row's result never depends on what stands beside it,
of its own sequence or of another. Decoder products take rows in tiles of `ROW_TILE`; attention
splits keys at multiples of `KEY_BLOCK`; the recurrent state is folded at multiples of `FOLD_BLOCK`;
prefill advances by `PREFILL_CHUNK`. All four are counted from the first position of the sequence.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import torch
from torch import Tensor

ROW_TILE = 16
KEY_BLOCK = 256
FOLD_BLOCK = 32
PREFILL_CHUNK = 256
WINDOW = 32
"""Most rows one verify pass may take: it crosses at most one fold boundary."""
RING_ROWS = 2 * FOLD_BLOCK
"""The block being filled, and the next one that a window may reach into."""


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


class Prompt(NamedTuple):
    """Prompt ids with the image's place in them.

    Attributes:
        token_ids: all ids, the image placeholder repeated once for each image token.
        image_start: index of the first placeholder; -1 without an image.
        grid_h: rows of the merged grid (image tokens = grid_h * grid_w).
        grid_w: columns of the merged grid.
    """

    token_ids: tuple[int, ...]
    image_start: int = -1
    grid_h: int = 0
    grid_w: int = 0


class StateLayout(NamedTuple):
    """Sizes of what one sequence keeps between passes."""

    num_attention_layers: int
    num_kv_heads: int
    head_dim: int
    num_delta_layers: int
    num_key_heads: int
    num_value_heads: int
    key_dim: int
    value_dim: int
    conv_kernel: int

    @property
    def num_layers(self) -> int:
        return self.num_attention_layers + self.num_delta_layers

    @property
    def conv_channels(self) -> int:
        return 2 * self.num_key_heads * self.key_dim + self.num_value_heads * self.value_dim


@dataclass(slots=True)
class SequenceState:
    """One sequence's memory: views into the state pool's slot, and two numbers.

    Rows at positions below `length` are committed. Rows behind it may hold a rejected window and
    are never read before they are written again. Nothing but `StatePool.commit` moves `length`.

    Attributes:
        keys_LJSD: rotated keys of the attention layers, by position; likewise `values_LJSD`.
        conv_in_LEX: inputs of the delta layers' convolution, row = position % `RING_ROWS`.
        conv_out_LEX: its outputs q|k|v before normalisation, likewise.
        decay_LER: log decays, float32 or wider, likewise; `beta_LER` too.
        checkpoint_LRKW: recurrent states before position `length` // `FOLD_BLOCK` * `FOLD_BLOCK`.
        length: committed positions.
        rope_delta: added to a position to get its rotary position (negative after an image).
        named: the same memory as a model's kernels name it, once they have.
    """

    keys_LJSD: Tensor
    values_LJSD: Tensor
    conv_in_LEX: Tensor
    conv_out_LEX: Tensor
    decay_LER: Tensor
    beta_LER: Tensor
    checkpoint_LRKW: Tensor
    length: int = 0
    rope_delta: int = 0
    named: object = None


class Window(NamedTuple):
    """Tokens to run at the cursor of one sequence, at most `WINDOW` of them."""

    state: SequenceState
    token_ids: Sequence[int]


class Chunk(NamedTuple):
    """The next `PREFILL_CHUNK` rows of a prompt, or what is left: those at the state's cursor.

    Attributes:
        state: of the sequence.
        prompt: the whole of it.
        image_ND: its image tokens; None without an image.
    """

    state: SequenceState
    prompt: Prompt
    image_ND: Tensor | None

    @property
    def end(self) -> int:
        """Position behind the last row."""
        return min(self.state.length + PREFILL_CHUNK, len(self.prompt.token_ids))

    @property
    def num_rows(self) -> int:
        return self.end - self.state.length

    @property
    def is_last(self) -> bool:
        """Whether the prompt ends with it."""
        return self.end == len(self.prompt.token_ids)

    def image_rows(self, num_image: int) -> tuple[slice, slice]:
        """Which of `num_image` image tokens stand in the chunk, and which of its rows they take."""
        start, image_start = self.state.length, self.prompt.image_start
        first = min(max(image_start, start), self.end)
        last = max(min(image_start + num_image, self.end), first)
        return slice(first - image_start, last - image_start), slice(first - start, last - start)


class Fold(NamedTuple):
    """One whole block of one sequence, to be folded into its checkpoint."""

    state: SequenceState
    block: int


class Best(NamedTuple):
    """What greedy decoding wants of the logits.

    Attributes:
        token_T: int64, the most probable id of each row that is not forbidden.
        logprob_T: natural log of its probability among those.
    """

    token_T: Tensor
    logprob_T: Tensor


class Output(NamedTuple):
    """What a pass gives.

    Attributes:
        logits_TV: after each row of a verify pass; of a prefill, [1, V] after the prompt's last
            token and [0, V] before that chunk. [0, V] of a pass that was asked for `best` alone.
        taps_TLD: residual stream of every row after each of the target's `tap_layers`; None if
            there are none.
        best: of each row, where the target chooses without giving logits.
    """

    logits_TV: Tensor
    taps_TLD: Tensor | None
    best: Best | None = None


class Target(Protocol):
    """A model the engine can drive.

    `tap_layers` are decoder layers, counted from 0, whose hidden rows a drafter wants to see: set
    it before the first pass.
    """

    tap_layers: tuple[int, ...]
    layout: StateLayout
    vocab_size: int
    device: torch.device
    dtype: torch.dtype

    def encode_image(self, image: ImagePatches) -> Tensor:
        """Image tokens [N, D]."""
        ...

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        """Reads the prompt's next `PREFILL_CHUNK` rows, those at the state's cursor.

        The rows are written but not committed: the caller commits them.
        """
        ...

    def verify(self, windows: Sequence[Window]) -> Output:
        """One pass over windows of different sequences, row behind row; commits nothing."""
        ...

    def fold(self, folds: Sequence[Fold]) -> None:
        """Folds ring rows of whole blocks, all of them committed, into the checkpoints."""
        ...
