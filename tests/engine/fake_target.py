"""A target without weights: its logits are a fixed random function of the last few tokens."""

import torch
from torch import Tensor

from ocria.models.base import ImagePatches, Prompt, SequenceState, StateLayout

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

    def encode_image(self, image: ImagePatches) -> Tensor:
        return torch.zeros(image.grid_h * image.grid_w // 4, 1)

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Tensor:
        self._prompt_length = len(prompt.token_ids)
        return self._append(state, 0, list(prompt.token_ids))[-1]

    def verify(self, state: SequenceState, token_ids: list[int]) -> Tensor:
        self.num_passes += 1
        return self._append(state, state.length, token_ids)

    def fold(self, state: SequenceState, block: int) -> None:
        self.folded.append(block)

    def _append(self, state: SequenceState, start: int, token_ids: list[int]) -> Tensor:
        end = start + len(token_ids)
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
