"""A target without weights: its logits are a fixed random function of the last few tokens."""

from collections.abc import Sequence

import torch
from torch import Tensor

from ocria.models.base import (
    PREFILL_CHUNK,
    Fold,
    ImagePatches,
    Output,
    Prompt,
    SequenceState,
    StateLayout,
    Window,
)

STOP = 1


class FakeTarget:
    """Keeps tokens where a model keeps keys, so that a stale or lost row changes what it says.

    `script`, if given, is what it writes greedily after any prompt, whatever comes before.
    """

    layout = StateLayout(1, 1, 1, 1, 1, 1, 1, 1, 4)
    device = torch.device("cpu")
    dtype = torch.float32

    def __init__(self, vocab_size: int = 50, script: list[int] | None = None) -> None:
        self.vocab_size = vocab_size
        self._script = script
        self._prompt_length = 0
        self.num_passes = 0
        self.folded: list[int] = []
        self.pass_sizes: list[list[int]] = []
        self.tap_layers: tuple[int, ...] = ()

    def encode_image(self, image: ImagePatches) -> Tensor:
        return torch.zeros(image.grid_h * image.grid_w // 4, 1)

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        self._prompt_length = len(prompt.token_ids)
        chunk = prompt.token_ids[state.length : state.length + PREFILL_CHUNK]
        logits_TV = self._append(state, chunk)
        is_last = state.length + len(chunk) == len(prompt.token_ids)
        return Output(logits_TV[-1:] if is_last else logits_TV[:0], self._taps(chunk))

    def verify(self, windows: Sequence[Window]) -> Output:
        self.num_passes += 1
        self.pass_sizes.append([len(token_ids) for _, token_ids in windows])
        logits_TV = torch.cat([self._append(*window) for window in windows])
        return Output(logits_TV, self._taps([i for _, ids in windows for i in ids]))

    def fold(self, folds: Sequence[Fold]) -> None:
        self.folded += [fold.block for fold in folds]

    def _taps(self, token_ids: Sequence[int]) -> Tensor | None:
        """As hidden rows, the tokens themselves."""
        if not self.tap_layers:
            return None
        return torch.tensor(token_ids).float().view(-1, 1, 1).repeat(1, len(self.tap_layers), 1)

    def _append(self, state: SequenceState, token_ids: Sequence[int]) -> Tensor:
        start, end = state.length, state.length + len(token_ids)
        state.keys_LJSD[0, 0, start:end, 0] = torch.tensor(token_ids, dtype=torch.float32)
        seen = state.keys_LJSD[0, 0, :end, 0].long().tolist()
        return torch.stack([self._logits(seen[: row + 1]) for row in range(start, end)])

    def _logits(self, history: list[int]) -> Tensor:
        if self._script is not None:
            place = max(0, len(history) - self._prompt_length)
            wanted = self._script[place] if place < len(self._script) else STOP
            return torch.nn.functional.one_hot(torch.tensor(wanted), self.vocab_size) * 20.0
        seed = hash((len(history), *history[-5:])) % (1 << 31)
        return torch.randn(self.vocab_size, generator=torch.Generator().manual_seed(seed)) * 3
