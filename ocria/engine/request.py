"""What goes into the engine and what comes out."""

from dataclasses import dataclass, field
from typing import Literal

from ocria.engine.speculative import Drafter
from ocria.models.base import ImagePatches, Prompt, SequenceState

Finish = Literal["eos", "length", "loop"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Request:
    """One page to read.

    Attributes:
        prompt: prompt ids with room for the image tokens.
        image: the page's patches, or None for a prompt of text alone.
        max_tokens: most tokens to emit; reaching it finishes with `length`.
        drafter: source of speculative proposals, or None to decode plainly.
    """

    prompt: Prompt
    image: ImagePatches | None
    max_tokens: int
    drafter: Drafter | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Result:
    """What became of a request.

    Attributes:
        token_ids: emitted ids, without the stop token and without a loop's repeats.
        logprobs: natural log of each emitted token's probability.
        finish: `eos`, `length` (token limit), or `loop` (a repeating tail was cut off).
        steps: target passes after the prefill.
        accepted: accepted[n] counts the passes that emitted n tokens.
        vision_s: seconds in the vision tower; likewise `prefill_s`, `decode_s`.
    """

    token_ids: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish: Finish
    steps: int
    accepted: tuple[int, ...]
    vision_s: float
    prefill_s: float
    decode_s: float


@dataclass(slots=True)
class Running:
    """A request being decoded. The last of `token_ids` is chosen but not yet in the state."""

    request: Request
    slot: int
    state: SequenceState
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    accepted: list[int] = field(default_factory=list)
    steps: int = 0
    vision_s: float = 0.0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    finish: Finish | None = None
