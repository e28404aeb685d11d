"""Greedy `generate` of transformers on the same weights and pages: what most people run today."""

import warnings
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import torch
from torch import Tensor

from ocria.bench.bench_model import BenchModel
from ocria.bench.clock import Clock
from ocria.bench.figures import LaunchCounts, PageOutput, RungRun
from ocria.bench.page_set import BenchPage
from ocria.engine.loop_guard import LoopGuard
from ocria.errors import WeightsError
from ocria.models.qwen3_5.config import read_config
from ocria.models.qwen3_5.names import canonical_name
from ocria.models.registry import LoadedModel
from ocria.quantization.layouts import read_quantization
from ocria.quantization.source import QuantizedSource
from ocria.weights import CheckpointReader


class TransformersRung:
    """Reads page by page with the library's own model, in eager mode, in the model's dtype."""

    name = "transformers"
    arithmetic = "transformers"

    def __init__(self, model: BenchModel, loaded: LoadedModel) -> None:
        self._model = model
        self._loaded = loaded
        self._clock = Clock(model.target.device)
        self._theirs: Any = None
        self.weight_bytes = model.counter.weight_bytes()

    def unavailable(self) -> str | None:
        """It runs wherever it was made."""
        return None

    def run(self) -> RungRun:
        """Decodes the whole page set."""
        outputs, decode_s, prefill_s = [], 0.0, 0.0
        steps: list[float] = []
        for page in self._model.pages:
            output, moments = self._read(page, self._model.max_tokens)
            outputs.append(output)
            prefill_s += moments[1] - moments[0]
            decode_s += moments[-1] - moments[1]
            steps += [after - before for before, after in pairwise(moments[1:])]
        return RungRun(
            outputs=tuple(outputs),
            num_tokens=len(steps),
            num_steps=len(steps),
            num_windows=len(steps),
            num_rows=len(steps),
            decode_s=decode_s,
            step_s=tuple(steps),
            prefill_s=prefill_s,
        )

    def warm_up(self) -> None:
        """Loads the model and decodes a few tokens of the first page."""
        self._read(self._model.pages[0], min(8, self._model.max_tokens))

    def launches(self) -> LaunchCounts | None:
        """Not counted."""
        return None

    def _read(self, page: BenchPage, max_tokens: int) -> tuple[PageOutput, list[float]]:
        """A page's text, and the moments before the prefill and at the choice of each token."""
        if self._theirs is None:
            self._theirs = _load(self._model, self._loaded)
        device = self._model.target.device
        ids = torch.tensor([page.prompt.token_ids], device=device)
        moments = _Moments(self._clock)
        with torch.inference_mode(), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            moments.note()
            written = self._theirs.generate(
                input_ids=ids,
                attention_mask=torch.ones_like(ids),
                pixel_values=_doubled(page.image.values_PC).to(device, self._model.target.dtype),
                image_grid_thw=torch.tensor([[1, page.image.grid_h, page.image.grid_w]]).to(device),
                mm_token_type_ids=(ids == self._loaded.tokens.prompt.image_id).int(),
                max_new_tokens=max_tokens,
                do_sample=False,
                eos_token_id=sorted(self._model.stop_ids),
                suppress_tokens=sorted(self._model.forbidden_ids),
                stopping_criteria=[moments],
            )
        return _output(written[0, ids.shape[1] :].tolist(), self._model.stop_ids), moments.seconds


class _Moments:
    """A stopping criterion that never stops: it is called after each token."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self.seconds: list[float] = []

    def note(self) -> None:
        self.seconds.append(self._clock.now_s())

    def __call__(self, input_ids: Tensor, scores: Any, **named: Any) -> Tensor:
        self.note()
        return torch.zeros(len(input_ids), dtype=torch.bool, device=input_ids.device)


def _load(model: BenchModel, loaded: LoadedModel) -> Any:
    import transformers

    raw = read_config(loaded.folder)
    source = QuantizedSource(
        CheckpointReader(loaded.folder), read_quantization(loaded.folder, raw), canonical_name
    )
    dtype = model.target.dtype
    sizes = {key: value for key, value in raw.items() if key != "quantization_config"}
    theirs: Any = transformers.Qwen3_5ForConditionalGeneration(transformers.Qwen3_5Config(**sizes))
    theirs = theirs.to(dtype).eval()
    weights = {name: source.read(name, dtype) for name in source.names()}
    lacking, _ = theirs.load_state_dict(weights, strict=False)
    if set(lacking) - {"lm_head.weight"}:
        raise WeightsError(f"transformers wants other tensors too: {', '.join(lacking[:5])}")
    theirs.tie_weights()
    theirs.generation_config = transformers.GenerationConfig(pad_token_id=0)
    return theirs.to(model.target.device)


def _output(token_ids: Sequence[int], stop_ids: frozenset[int]) -> PageOutput:
    """A text as the engine would hand it over: without the stop token, a loop cut off."""
    guard = LoopGuard()
    for index, token in enumerate(token_ids):
        if token in stop_ids:
            return PageOutput(token_ids=tuple(token_ids[:index]), finish="eos")
        loop = guard.observe([token])
        if loop is not None:
            return PageOutput(token_ids=tuple(token_ids[: loop.start]), finish="loop")
    return PageOutput(token_ids=tuple(token_ids), finish="length")


def _doubled(values_PC: Tensor) -> Tensor:
    """Patches as a video tower wants them: each frame twice, [P, 3 * 2 * 256]."""
    num_patches, width = values_PC.shape
    frames = values_PC.view(num_patches, 3, 1, width // 3)
    return frames.expand(-1, -1, 2, -1).reshape(num_patches, 2 * width)
