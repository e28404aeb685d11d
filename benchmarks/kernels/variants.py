"""Ways to launch the products of a pass, in turn: as they are, two in one launch, overlapping."""

from contextlib import ExitStack
from typing import NamedTuple

import torch
from documents import decode, decode_together, engine_of, parted, speed_of
from launches import fill
from published import replayed_us
from real import MAX_TOKENS
from stream import shown, stream_pages
from subject import Figures, Subject, text_of

from ocria.bench.measured_target import MeasuredTarget
from ocria.engine.graphs import Captured, GraphRunner
from ocria.engine.state import StatePool
from ocria.kernels.triton_mode import overlapping
from ocria.models.base import SequenceState, Window

_STATES, _REPLAYS = 6, 40


class Variant(NamedTuple):
    """How products are launched."""

    name: str
    joins: bool
    overlaps: bool

    def chosen(self, subject: Subject) -> ExitStack:
        """For captures and launches inside."""
        stack, fused = ExitStack(), subject.fused
        before, fused.joins_products = fused.joins_products, self.joins
        stack.callback(setattr, fused, "joins_products", before)
        stack.enter_context(overlapping(self.overlaps))
        return stack


VARIANTS = (
    Variant("one by one", False, False),
    Variant("two in one", True, False),
    Variant("overlapping", False, True),
    Variant("two in one, overlapping", True, True),
)


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Bits of many replays against the first way's; then passes and pages in turn."""
    position = subject.size.position
    pool = StatePool(subject.target, num_slots=1, max_positions=position + 512)
    _, state = pool.acquire()
    ways: dict[tuple[str, int], Captured] = {}
    _fill(state, position, seed=0)
    for variant in VARIANTS:
        for rows in (1, 16):
            runner = GraphRunner(subject.target, subject.forbidden_ids)
            with variant.chosen(subject):
                runner.verify([Window(state, text_of(rows, 1))])
            (captured,) = runner._captured.values()
            assert captured is not None, "the target has static passes"
            ways[variant.name, rows] = captured
    equal = {name: 0 for name, _, _ in VARIANTS}
    total = 0
    for seed in range(_STATES if subject.device.type == "cuda" else 1):
        _fill(state, position - 5 * seed, seed)
        for rows in (1, 16):
            expected = None
            for variant in VARIANTS:
                captured = ways[variant.name, rows]
                captured.static.load([Window(state, text_of(rows, seed))])
                for _ in range(_REPLAYS if subject.device.type == "cuda" else 1):
                    captured.replay()
                    logits = captured.output.logits_TV
                    expected = logits.clone() if expected is None else expected
                    equal[variant.name] += int(torch.equal(logits, expected))
            total += _REPLAYS if subject.device.type == "cuda" else 1
    for name, count in equal.items():
        figures.say(f"{name}, beside one by one", f"{count} of {total} passes have equal bits")
    spent: dict[tuple[str, int], list[float]] = {}
    for _ in range(3 * subject.size.rounds):
        for key, captured in ways.items():
            spent.setdefault(key, []).append(replayed_us(subject, captured.replay, 20))
    for (name, rows), values in spent.items():
        if equal[name] != total:
            figures.say(f"pass of {rows} rows, {name}", "no speed: other bits")
            continue
        pairs = zip(values, spent[VARIANTS[0].name, rows], strict=True)
        figures.say(
            f"pass of {rows} rows with logits, {name}",
            f"{shown(values)} us, {shown([a / b for a, b in pairs], 3)} of one by one",
        )
    if subject.left_s > 15:
        _pages(subject, figures)


def _fill(state: SequenceState, position: int, seed: int) -> None:
    """Noise, the same for the same seed."""
    torch.manual_seed(seed)
    fill(state, position)


def _pages(subject: Subject, figures: Figures) -> None:
    """Real pages with each way against plain passes, tokens a second."""
    pages = stream_pages(subject)
    without = engine_of(subject, MeasuredTarget(subject.target, {}), len(pages), MAX_TOKENS)
    expected = decode_together(subject, without, "none", pages, None, MAX_TOKENS)
    engines = {v: engine_of(subject, subject.target, 1, MAX_TOKENS) for v in VARIANTS}
    speeds: dict[Variant, list[float]] = {variant: [] for variant in VARIANTS}
    for round_number in range(1 + min(3, subject.size.rounds)):
        for variant, engine in engines.items():
            with variant.chosen(subject):
                found = decode(subject, engine, "text-layer", pages, None, MAX_TOKENS)
            verdict = parted(found, expected)
            if not round_number or not verdict.startswith("equal"):
                figures.say(f"pages, text-layer, {variant.name}", verdict)
            else:
                speeds[variant].append(speed_of(found).tokens_per_s)
    for variant, values in speeds.items():
        if values:
            figures.say(f"pages, text-layer, {variant.name}, tokens/s", shown(values))
