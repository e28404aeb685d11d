"""Tables of tilings beside the one that is taken: equality first, then time, then adopt or not.

One table serves every number of rows, so a table is judged as a whole: rows of random windows
against single rows, products of few rows against those of many, replays of one pass against each
other (split sums are added by whichever program comes last), pages by graphs against plain passes.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import cast

import rows
import torch
from documents import decode, decode_together, engine_of, parted, speed_of
from launches import fill, products
from published import replayed_us
from real import MAX_TOKENS
from references import exact, relative_error
from stream import shown, stream_pages
from subject import Figures, Subject, text_of

from ocria.bench.measured_target import MeasuredTarget
from ocria.engine.graphs import Captured, GraphRunner
from ocria.engine.state import StatePool
from ocria.kernels.small_gemm import BY_RULE, TilingTable
from ocria.models.base import Window
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.fused import FusedDecoder
from ocria.models.qwen3_5.model import Qwen35, fused_decoder
from ocria.models.qwen3_5.names import FLOAT32_NAMES
from ocria.models.registry import open_checkpoint
from ocria.weights import assign

CANDIDATES: dict[str, TilingTable] = {"by rule": BY_RULE}
_STATES, _REPLAYS, _PASS_ROWS, _MANY_ROWS = 6, 40, (1, 16), 300
_ERROR = 5e-3
_PASS, _PREFILL = 0.97, 1.05
"""A candidate's passes take at most this share of those by the table that is taken; its prefill."""


@dataclass
class _Judgement:
    """What speaks against a candidate."""

    figures: Figures
    name: str
    reasons: list[str] = field(default_factory=list)

    def say(self, name: str, value: object, holds: bool = True) -> None:
        """One figure, and whether it lets the candidate pass."""
        self.figures.say(f"{self.name}, {name}", value)
        if not holds:
            self.reasons.append(name)


class _Rows:
    """Takes the verdicts of the rows section."""

    def __init__(self, judgement: _Judgement) -> None:
        self._judgement = judgement

    def say(self, name: str, value: object) -> None:
        holds = name == "graphs captured" or str(value).startswith("0 of ")
        self._judgement.say(f"rows, {name}", value, holds and "differ in" not in str(value))


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Each candidate in turn."""
    for name, tilings in CANDIDATES.items():
        judgement, candidate = _Judgement(figures, name), decoder(subject, tilings)
        with running(subject, candidate):
            _products(subject, judgement)
            rows.check(subject, cast(Figures, _Rows(judgement)))
        _passes(subject, candidate, judgement)
        _pages(subject, candidate, judgement)
        verdict = f"do not adopt: {'; '.join(judgement.reasons)}" if judgement.reasons else "adopt"
        figures.say(name, verdict)


def decoder(subject: Subject, tilings: TilingTable) -> FusedDecoder:
    """The model's decoder by a table."""
    folder = subject.model.folder
    source = open_checkpoint(folder, device=subject.device).source
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_folder(folder))
    assign(model, source, dtype=subject.target.dtype, float32_names=FLOAT32_NAMES)
    return fused_decoder(model, source.read_packed, tilings)


@contextmanager
def running(subject: Subject, candidate: FusedDecoder) -> Iterator[None]:
    """Passes and captures inside take this decoder."""
    before, subject.target.fused = subject.target.fused, candidate
    try:
        yield
    finally:
        subject.target.fused = before


def _products(subject: Subject, judgement: _Judgement) -> None:
    """Against float64, and rows of few against rows of many."""
    unequal = total = 0
    errors: dict[str, float] = {}
    for number, product in enumerate(products(subject)):
        x = subject.random(_MANY_ROWS, product.weight.num_in, seed=number)
        residual = subject.random(_MANY_ROWS, product.weight.num_out, seed=100 + number)
        whole = product(x, residual)
        error = relative_error(whole, exact(product, x, residual if product.has_residual else None))
        errors[product.name] = max(error, errors.get(product.name, 0.0))
        for first, last in ((0, 1), (3, 19), (16, 36), (150, 278)):
            few = product(x[first:last].contiguous(), residual[first:last].contiguous())
            unequal += int((few != whole[first:last]).any(1).sum())
            total += last - first
    worst = max(errors, key=lambda name: errors[name])
    judgement.say("largest error", f"{errors[worst]:.1e}, {worst}", errors[worst] < _ERROR)
    # Dry runs multiply by the matrix library, whose rows depend on their number.
    is_equal = not unequal or subject.device.type != "cuda"
    judgement.say(
        f"rows of few beside those of {_MANY_ROWS}", f"{unequal} of {total} differ", is_equal
    )


def _passes(subject: Subject, candidate: FusedDecoder, judgement: _Judgement) -> None:
    """Replays of captured passes: bits, then microseconds in turn with the table that is taken."""
    is_cuda, position = subject.device.type == "cuda", subject.size.position
    pool = StatePool(subject.target, num_slots=1, max_positions=position + 512)
    _, state = pool.acquire()
    fill(state, position)
    ways: dict[tuple[bool, int], Captured] = {}
    for is_candidate, fused in ((False, subject.fused), (True, candidate)):
        for num_rows in _PASS_ROWS:
            runner = GraphRunner(subject.target, subject.forbidden_ids)
            with running(subject, fused):
                runner.verify([Window(state, text_of(num_rows, 1))])
            (captured,) = runner._captured.values()
            assert captured is not None, "the target has static passes"
            ways[is_candidate, num_rows] = captured
    equal = total = 0
    for seed in range(_STATES if is_cuda else 1):
        torch.manual_seed(seed)
        fill(state, position - 5 * seed)
        for num_rows in _PASS_ROWS:
            captured = ways[True, num_rows]
            captured.static.load([Window(state, text_of(num_rows, seed))])
            captured.replay()
            first = captured.output.logits_TV.clone()
            for _ in range(_REPLAYS if is_cuda else 1):
                captured.replay()
                equal += int(torch.equal(captured.output.logits_TV, first))
                total += 1
    judgement.say("replays", f"{equal} of {total} have equal bits", equal == total)
    _in_turn(
        subject,
        judgement,
        {
            f"pass of {num_rows} rows with logits": (
                ways[False, num_rows].replay,
                ways[True, num_rows].replay,
            )
            for num_rows in _PASS_ROWS
        },
        20,
        _PASS,
    )


def _pages(subject: Subject, candidate: FusedDecoder, judgement: _Judgement) -> None:
    """Pages by graphs against plain passes of the same table; tokens a second of both tables."""
    pages = stream_pages(subject)
    speeds: dict[bool, list[float]] = {False: [], True: []}
    prefills: dict[bool, Callable[[], object]] = {}
    arms = []
    for is_candidate, fused in ((False, subject.fused), (True, candidate)):
        with running(subject, fused):
            plain = engine_of(subject, MeasuredTarget(subject.target, {}), len(pages), MAX_TOKENS)
            expected = decode_together(subject, plain, "none", pages, None, MAX_TOKENS)
        engine = engine_of(subject, subject.target, 1, MAX_TOKENS)
        arms.append((is_candidate, fused, engine, expected))
        prefills[is_candidate] = _prefill(subject, fused, pages[0])
    verdicts: list[str] = []
    for round_number in range(1 + min(3, subject.size.rounds)):
        for is_candidate, fused, engine, expected in arms:
            with running(subject, fused):
                found = decode(subject, engine, "text-layer", pages, None, MAX_TOKENS)
            if is_candidate:
                verdicts.append(parted(found, expected))
            if round_number:
                speeds[is_candidate].append(speed_of(found).tokens_per_s)
    is_equal = all(verdict.startswith("equal") for verdict in verdicts)
    judgement.say("pages, text-layer, beside plain passes", verdicts[-1], is_equal)
    for is_candidate, values in speeds.items():
        table = judgement.name if is_candidate else "taken"
        judgement.say(f"pages, text-layer, tokens/s, {table}", shown(values))
    judgement.say("pages beside those of the table taken", parted(arms[1][3], arms[0][3]))
    _in_turn(subject, judgement, {"prefill": (prefills[False], prefills[True])}, 1, _PREFILL)


def _prefill(subject: Subject, fused: FusedDecoder, page) -> Callable[[], object]:  # type: ignore[no-untyped-def]
    num_rows = len(page.prompt.token_ids)
    pool = StatePool(subject.target, num_slots=1, max_positions=num_rows + 32)
    image_ND = subject.target.encode_image(page.image)

    def read() -> None:
        slot, state = pool.acquire()
        with running(subject, fused):
            pool.read(state, page.prompt, image_ND)
        pool.release(slot)

    return read


def _in_turn(
    subject: Subject,
    judgement: _Judgement,
    works: dict[str, tuple[Callable[[], object], Callable[[], object]]],
    times: int,
    most: float,
) -> None:
    """Microseconds of the table taken and of the candidate, and their ratio."""
    for name, (taken, candidate) in works.items():
        taken(), candidate()
        spent = [
            (replayed_us(subject, taken, times), replayed_us(subject, candidate, times))
            for _ in range(3 * subject.size.rounds)
        ]
        ratios = sorted(ours / theirs for theirs, ours in spent)
        judgement.say(
            name,
            f"{shown([ours for _, ours in spent])} us, {shown(ratios, 3)} of the table taken",
            ratios[len(ratios) // 2] <= most,
        )
