"""Pages that a model has read, and forcing what it wrote through a model again.

Shape legend
    P  rows of a prompt, T  places where a token was chosen: after the prompt, after each token
    D  hidden size, V  vocabulary
"""

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.engine import Engine, EngineConfig, Request
from ocria.engine.state import StatePool
from ocria.models.base import PREFILL_CHUNK, WINDOW, ImagePatches, Prompt
from ocria.models.layers.rope import Rotary
from ocria.models.layers.span import Pass, Span
from ocria.models.qwen3_5.decoder import prompt_positions
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import LoadedModel


class Passage(NamedTuple):
    """A page and what a model wrote.

    Attributes:
        prompt: ids around and for the image tokens.
        image_ND: the vision tower's image tokens.
        token_ids: what was written, without the stop token.
    """

    prompt: Prompt
    image_ND: Tensor
    token_ids: tuple[int, ...]

    @property
    def num_rows(self) -> int:
        """Rows of the prompt and the tokens together."""
        return len(self.prompt.token_ids) + len(self.token_ids)


def read_passages(
    model: LoadedModel, images: Iterable[ImagePatches], *, merge: int, max_tokens: int
) -> Iterator[Passage]:
    """Has `model` read pages greedily, at most `max_tokens` tokens of each."""
    target = model.target
    for image in images:
        prompt = model.tokens.prompt.fill(image.grid_h // merge, image.grid_w // merge)
        config = EngineConfig(
            stop_ids=model.tokens.stop_ids,
            forbidden_ids=model.tokens.suppressed_ids,
            max_positions=len(prompt.token_ids) + max_tokens + WINDOW,
        )
        request = Request(prompt=prompt, image=image, max_tokens=max_tokens)
        result = Engine(target, config).run(request)
        yield Passage(prompt, target.encode_image(image), result.token_ids)


class Forcing:
    """Runs passages through a model as one long prefill each.

    A row's bits do not depend on what stands beside it, so this computes what decoding would, at
    the price of a prefill.
    """

    def __init__(self, target: Qwen35, max_rows: int) -> None:
        self._target = target
        self._pool = StatePool(target, num_slots=1, max_positions=max_rows + PREFILL_CHUNK)

    @torch.inference_mode()
    def hidden(self, passage: Passage, at_chunk: Callable[[int], None] | None = None) -> Tensor:
        """Normed hidden rows [T, D] of the places where a token was chosen.

        `at_chunk` hears the first position of each chunk before it runs.
        """
        target, prompt = self._target, passage.prompt
        ids = (*prompt.token_ids, *passage.token_ids)
        decoder = target.model.language_model
        x_TD = decoder.embed_tokens(torch.tensor(ids, device=target.device))
        end = prompt.image_start + passage.image_ND.shape[0]
        x_TD[prompt.image_start : end] = passage.image_ND.to(x_TD)
        positions = prompt_positions(len(ids), prompt.image_start, prompt.grid_h, prompt.grid_w)
        rotary = decoder.rotary(positions.to(target.device))
        slot, state = self._pool.acquire()
        hidden = []
        for start in range(0, len(ids), PREFILL_CHUNK):
            if at_chunk is not None:
                at_chunk(start)
            rows = slice(start, start + PREFILL_CHUNK)
            angles = Rotary(rotary.cos_TF[rows], rotary.sin_TF[rows])
            num_rows = min(PREFILL_CHUNK, len(ids) - start)
            span = Span(state, start, num_rows)
            hidden.append(decoder(x_TD[rows], Pass((span,), angles, prefill=True)))
        self._pool.release(slot)
        return torch.cat(hidden)[len(prompt.token_ids) - 1 :]

    @torch.inference_mode()
    def logits(self, passage: Passage) -> Tensor:
        """Logits [T, V]."""
        return self._target.lm_head(self.hidden(passage))
