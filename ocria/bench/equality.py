"""Whether a rung wrote what it had to: no speed is printed of one that did not.

Two tests. Rungs of one *arithmetic* (the same products, summed in the same order) must write the
same tokens, without exception. A rung of another arithmetic rounds otherwise, and where two tokens
tie it may take the other one; after that the texts part and cannot be laid side by side. So its
text is forced through the reference, token by token, and at every place the reference must have
found its token the best, or within `TIE_NATS` of the best.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor

from ocria.bench.figures import PageOutput
from ocria.bench.measured_target import ImageTokens, MeasuredTarget
from ocria.bench.page_set import BenchPage
from ocria.bench.scripted_drafter import ScriptedDrafter
from ocria.engine import Engine, EngineConfig, Request
from ocria.models.base import Output, Prompt, SequenceState, Target, Window

TIE_NATS = 0.5
"""Largest difference of log probabilities that counts as a tie. See benchmarks/speed/README.md."""


class Difference(NamedTuple):
    """First place where two rungs part: index of the page, index of the token, both from 0."""

    page: int
    token: int


class Agreement(NamedTuple):
    """How a text looks to another arithmetic.

    Attributes:
        num_places: tokens judged, the stop token included.
        num_ties: places where the reference would have written another token.
        worst_nats: largest log probability by which its own token was better.
        worst: where that was.
    """

    num_places: int
    num_ties: int
    worst_nats: float
    worst: Difference

    @property
    def is_equal(self) -> bool:
        return self.worst_nats <= TIE_NATS


def first_difference(
    expected: Sequence[PageOutput], found: Sequence[PageOutput]
) -> Difference | None:
    """Where the outputs of the same pages part first; None if they are the same."""
    for page, (want, have) in enumerate(zip(expected, found, strict=True)):
        if want == have:
            continue
        pairs = zip(want.token_ids, have.token_ids, strict=False)
        shorter = min(len(want.token_ids), len(have.token_ids))
        return Difference(page, next((i for i, (a, b) in enumerate(pairs) if a != b), shorter))
    return None


def judge(
    target: Target,
    config: EngineConfig,
    pages: Sequence[BenchPage],
    outputs: Sequence[PageOutput],
    images: ImageTokens,
) -> Agreement:
    """Forces the outputs through `target` and says how far it is from writing them itself."""
    agreement = Agreement(0, 0, 0.0, Difference(0, 0))
    for index, (page, output) in enumerate(zip(pages, outputs, strict=True)):
        margins = forced_margins(target, config, page, output, images)
        worst = int(margins.argmax()) if len(margins) else 0
        height = float(margins[worst]) if len(margins) else 0.0
        if height > agreement.worst_nats:
            agreement = agreement._replace(worst_nats=height, worst=Difference(index, worst))
        agreement = agreement._replace(
            num_places=agreement.num_places + len(margins),
            num_ties=agreement.num_ties + int((margins > 0).sum()),
        )
    return agreement


def forced_margins(
    target: Target,
    config: EngineConfig,
    page: BenchPage,
    output: PageOutput,
    images: ImageTokens,
) -> Tensor:
    """How much better the target's own choice was at each place of a page, in nats; 0 if equal."""
    stop = min(config.stop_ids, default=None) if output.finish == "eos" else None
    script = output.token_ids if stop is None else (*output.token_ids, stop)
    forcing = ForcingTarget(target, images, script, config)
    drafter = ScriptedDrafter(output.token_ids, None, target.vocab_size)
    request = Request(prompt=page.prompt, image=page.image, max_tokens=len(script), drafter=drafter)
    Engine(forcing, config).run(request)
    return torch.tensor(forcing.margins[: len(script)], dtype=torch.float64)


class ForcingTarget(MeasuredTarget):
    """Says what the script says, and notes what the model would rather have said."""

    def __init__(
        self, target: Target, images: ImageTokens, script: Sequence[int], config: EngineConfig
    ) -> None:
        super().__init__(target, images)
        self._script = tuple(script)
        self._forbidden = torch.tensor(sorted(config.forbidden_ids), device=target.device).long()
        self._stops = torch.tensor(sorted(config.stop_ids), device=target.device).long()
        self.margins: list[float] = []

    def prefill(self, state: SequenceState, prompt: Prompt, image_ND: Tensor | None) -> Output:
        """As the model, its last row forced."""
        output = super().prefill(state, prompt, image_ND)
        return output._replace(logits_TV=self._forced(output.logits_TV))

    def verify(self, windows: Sequence[Window]) -> Output:
        """As the model, every row forced."""
        output = super().verify(windows)
        return output._replace(logits_TV=self._forced(output.logits_TV))

    def _forced(self, logits_TV: Tensor) -> Tensor:
        # The drafter proposes the script, so every row of a window becomes real.
        logits_TV = logits_TV.float().index_fill(-1, self._forbidden, -torch.inf)
        for row_V in logits_TV:
            place = len(self.margins)
            if place >= len(self._script):
                break
            token, best = self._script[place], row_V.max()
            # A page may end with any of the stop tokens.
            is_stop = bool((self._stops == token).any())
            own = row_V[self._stops].max() if is_stop else row_V[token]
            self.margins.append(float(best - own))
            row_V[token] = best + 1
        return logits_TV
