"""What goes into the engine and what comes out."""

from dataclasses import dataclass, field
from typing import Literal

from torch import Tensor

from ocria.engine.loop_guard import LoopGuard
from ocria.engine.speculative import Drafter, Sampling, TapDrafter
from ocria.errors import PageError
from ocria.models.base import ImagePatches, Prompt, SequenceState

Finish = Literal["eos", "length", "loop"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One page to read.

    Attributes:
        prompt: prompt ids with room for the image tokens.
        image: the page's patches, or None for a prompt of text alone.
        max_tokens: most tokens to emit; reaching it finishes with `length`.
        drafter: source of speculative proposals, this page's own; None to decode plainly.
        sampling: how to draw tokens; None takes the most probable ones.
        not_first: tokens that may not open the output.
    """

    prompt: Prompt
    image: ImagePatches | None
    max_tokens: int
    drafter: Drafter | None = None
    sampling: Sampling | None = None
    not_first: frozenset[int] = frozenset()


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What became of a request.

    Attributes:
        token_ids: emitted ids, without the stop token and without a loop's repeats.
        logprobs: natural log of each emitted token's probability.
        finish: `eos`, `length` (token limit), or `loop` (a repeating tail was cut off).
        steps: target passes after the prefill.
        accepted: accepted[n] counts the passes that emitted n tokens.
        vision_s: seconds in the vision tower; likewise `prefill_s`.
        decode_s: seconds of verify passes, a pass of several pages shared equally.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Finish
    steps: int
    accepted: tuple[int, ...]
    vision_s: float
    prefill_s: float
    decode_s: float


Outcome = Result | PageError
"""A page that could not be decoded has an error for a result; the others go on."""


@dataclass(slots=True)
class Running:
    """A request being decoded. The last of `token_ids` is chosen but not yet in the state.

    `tapping` is its drafter, if that wants the target's rows.
    """

    ticket: int
    request: Request
    slot: int
    state: SequenceState
    image_ND: Tensor | None = None
    guard: LoopGuard = field(default_factory=LoopGuard)
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    steps: int = 0
    vision_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    finish: Finish | None = None
    error: PageError | None = None
    tapping: TapDrafter | None = field(init=False)

    def __post_init__(self) -> None:
        drafter = self.request.drafter
        self.tapping = drafter if isinstance(drafter, TapDrafter) else None

    @property
    def is_read(self) -> bool:
        """Whether the whole prompt is in the state."""
        return self.state.length >= len(self.request.prompt.token_ids)

    @property
    def is_done(self) -> bool:
        return self.finish is not None or self.error is not None

    def outcome(self) -> Outcome:
        """What to hand back of a request that is done."""
        if self.error is not None:
            return self.error
        assert self.finish is not None, "only finished requests leave"
        histogram = [0] * (max(self.accepted, default=0) + 1)
        for emitted in self.accepted:
            histogram[emitted] += 1
        return Result(
            token_ids=tuple(self.token_ids),
            logprobs=tuple(self.logprobs),
            finish=self.finish,
            steps=self.steps,
            accepted=tuple(histogram),
            vision_s=self.vision_s,
            prefill_s=self.prefill_s,
            decode_s=self.decode_s,
        )
