"""One decoder layer at a time over whole passages, with a look at what its products read.

Shape legend: T rows of a passage, D hidden size, K inputs of a product.
"""

from collections.abc import Iterable, Mapping, Sequence

import torch
from torch import Tensor, nn

from ocria.calibration.passages import Passage
from ocria.engine.state import StatePool
from ocria.models.base import PREFILL_CHUNK
from ocria.models.layers.rope import Rotary
from ocria.models.layers.span import Pass, Span
from ocria.models.qwen3_5.decoder import prompt_positions
from ocria.models.qwen3_5.model import Qwen35


class LayerRunner:
    """Moves the rows of all passages through a model's layers, in chunks as a prefill does.

    Args:
        target: its weights are used as they are at each call.
        passages: at least one.
    """

    def __init__(self, target: Qwen35, passages: Sequence[Passage]) -> None:
        self._target, self._passages = target, passages
        self._decoder = target.model.language_model
        longest = max(passage.num_rows for passage in passages)
        self._pool = StatePool(target, num_slots=1, max_positions=longest + PREFILL_CHUNK)
        self._rotary = [
            self._decoder.rotary(_positions(passage).to(target.device)) for passage in passages
        ]

    @torch.inference_mode()
    def embed(self) -> list[Tensor]:
        """Rows [T, D] that enter the first layer, by passage."""
        rows = []
        for passage in self._passages:
            prompt = passage.prompt
            ids = torch.tensor((*prompt.token_ids, *passage.token_ids), device=self._target.device)
            x_TD = self._decoder.embed_tokens(ids)
            end = prompt.image_start + passage.image_ND.shape[0]
            x_TD[prompt.image_start : end] = passage.image_ND.to(x_TD)
            rows.append(x_TD)
        return rows

    @torch.inference_mode()
    def run(
        self, layer: int, rows: Sequence[Tensor], watched: Iterable[str] = ()
    ) -> tuple[list[Tensor], Mapping[str, list[Tensor]]]:
        """Passes rows through a layer.

        Args:
            layer: index of the layer.
            rows: [T, D] by passage.
            watched: full names of modules of this layer.

        Returns:
            Rows [T, D] by passage, and by watched name what the module read, [T, K] by passage.
        """
        seen: dict[str, list[Tensor]] = {name: [] for name in watched}
        chunks: dict[str, list[Tensor]] = {name: [] for name in seen}
        hooks = [_watch(self._target.get_submodule(name), chunks[name]) for name in seen]
        try:
            after = []
            for x_TD, rotary in zip(rows, self._rotary, strict=True):
                after.append(self._run_one(layer, x_TD, rotary))
                for name, found in chunks.items():
                    seen[name].append(torch.cat(found))
                    found.clear()
        finally:
            for hook in hooks:
                hook.remove()
        return after, seen

    def _run_one(self, layer: int, x_TD: Tensor, rotary: Rotary) -> Tensor:
        slot, state = self._pool.acquire()
        after = []
        for start in range(0, x_TD.shape[0], PREFILL_CHUNK):
            rows = slice(start, start + PREFILL_CHUNK)
            angles = Rotary(rotary.cos_TF[rows], rotary.sin_TF[rows])
            span = Span(state, start, min(PREFILL_CHUNK, x_TD.shape[0] - start))
            chunk = Pass((span,), angles, prefill=True)
            after.append(self._decoder.layers[layer](x_TD[rows], chunk))
        self._pool.release(slot)
        return torch.cat(after)


def _positions(passage: Passage) -> Tensor:
    prompt = passage.prompt
    return prompt_positions(passage.num_rows, prompt.image_start, prompt.grid_h, prompt.grid_w)


def _watch(module: nn.Module, found: list[Tensor]) -> torch.utils.hooks.RemovableHandle:
    def keep(_: nn.Module, inputs: tuple[Tensor, ...]) -> None:
        found.append(inputs[0].to("cpu", copy=True))

    return module.register_forward_pre_hook(keep)
