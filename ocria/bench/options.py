"""Every knob of a benchmark, checked once."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal, get_args

from ocria.errors import UsageError
from ocria.models.base import WINDOW
from ocria.options import DEFAULT_MODEL

ShapeName = Literal["shipped", "0.8b", "4b", "9b"]
SHAPES: tuple[str, ...] = get_args(ShapeName)

MOST_SHAPE_TOKENS = 64
"""Random weights soon write one token for ever; the engine cuts that off a few tokens later."""
DEFAULT_ACCEPTED = 4
BENCH_WINDOW = 16


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchOptions:
    """Options of one benchmark.

    Attributes:
        inputs: documents of the page set; none takes `examples/`.
        model: checkpoint name or folder.
        device: `auto`, `cpu`, `cuda` or `cuda:N`.
        shape: `shipped` reads the page set with the checkpoint; another one builds random weights
            of a published size and decodes made-up prompts.
        accepted: tokens that each pass of a random model is given to emit; they say nothing of
            acceptance themselves.
        rungs: names of the rungs to run beside the first; empty runs all.
        batch: sequences at once on the batching rung; None takes 8, or 4 when quick.
        max_tokens: limit for each page; None takes 512, or 64 when quick or for random weights.
        rounds: how often the whole ladder is run; None takes 5, or 3 when quick.
        quick: the first page of each document, and fewer tokens.
        transformers: also time greedy `generate` of transformers on the same weights.
    """

    inputs: tuple[Path, ...] = ()
    model: str = DEFAULT_MODEL
    device: str = "auto"
    shape: ShapeName = "shipped"
    accepted: int | None = None
    rungs: tuple[str, ...] = ()
    batch: int | None = None
    max_tokens: int | None = None
    rounds: int | None = None
    quick: bool = False
    transformers: bool = False

    def __post_init__(self) -> None:
        if self.shape not in SHAPES:
            raise UsageError(f"unknown shape: `{self.shape}`", hint=f"one of {', '.join(SHAPES)}")
        for flag, value, most in (
            ("--rounds", self.rounds, 1000),
            ("--max-tokens", self.max_tokens, 8192 if self.is_real else MOST_SHAPE_TOKENS),
            ("--batch", self.batch, 1024),
            ("--accepted", self.accepted, BENCH_WINDOW),
        ):
            if value is not None and not 1 <= value <= most:
                raise UsageError(f"{flag} must be 1 to {most} here, not {value}")
        if self.is_real and self.accepted is not None:
            raise UsageError(
                "--accepted is for random weights",
                hint="give a --shape, or leave it out: on pages, acceptance is measured",
            )
        if not self.is_real and self.inputs:
            raise UsageError("random weights read no documents", hint="leave out the files")
        assert BENCH_WINDOW <= WINDOW

    @property
    def is_real(self) -> bool:
        """Whether real weights read real pages."""
        return self.shape == "shipped"

    @property
    def tokens_a_page(self) -> int:
        """Most tokens to decode of each page."""
        if self.max_tokens is not None:
            return self.max_tokens
        return MOST_SHAPE_TOKENS if self.quick or not self.is_real else 512

    @property
    def num_rounds(self) -> int:
        """How often the whole ladder is run."""
        return self.rounds or (3 if self.quick else 5)

    @property
    def sequences_at_once(self) -> int:
        """Slots of the batching rung."""
        return self.batch or (4 if self.quick else 8)

    @property
    def tokens_a_pass(self) -> int:
        """What each pass of a random model is given to emit."""
        return self.accepted or DEFAULT_ACCEPTED
