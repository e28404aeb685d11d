"""End to end: the examples' greedy tokens with every drafter, through graphs and without them."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import torch
from subject import Figures, Subject

from ocria.bench.driver import emitted_by_steps
from ocria.bench.ladder import page_drafters
from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.page_set import BenchPage
from ocria.engine import Engine, EngineConfig, Request, Result
from ocria.errors import PageError
from ocria.models.base import Target
from ocria.options import DEFAULT_MAX_TOKENS, DrafterName
from ocria.pipeline.dflash import DFlashMaker
from ocria.pipeline.page_reader import image_settings, longest_page

_LEFT_FOR_SPEED_S = 40
ARMS: tuple[DrafterName, ...] = ("none", "ngram", "text-layer", "auto")


def check(subject: Subject, figures: Figures) -> None:
    """Holds every way of decoding against plain passes without a drafter."""
    pages = subject.examples
    # This target offers no static passes, so the graph runner takes plain ones.
    without = engine_of(subject, MeasuredTarget(subject.target, {}))
    with_graphs = engine_of(subject, subject.target)
    expected = decode(subject, without, "none", pages)
    tokens = [len(result.token_ids) for result in expected]
    figures.say("pages", ", ".join(f"{p.name}: {n}" for p, n in zip(pages, tokens, strict=True)))
    for name, engine in (("graph", with_graphs), ("plain", without)):
        for arm in ARMS:
            if (name, arm) == ("plain", "none"):
                continue
            if subject.left_s < (5 if name == "graph" else _LEFT_FOR_SPEED_S):
                figures.say(f"{name}, {arm}", "not run: time is up")
                continue
            results = decode(subject, engine, arm, pages)
            figures.say(f"{name}, {arm}", parted(results, expected))


def engine_of(
    subject: Subject, target: Target, num_slots: int = 1, max_tokens: int = DEFAULT_MAX_TOKENS
) -> Engine:
    """An engine with room for a page, the product's own if `max_tokens` is not given."""
    tokens, settings = subject.model.tokens, image_settings(subject.model)
    is_cuda = subject.device.type == "cuda"
    most = max_tokens if is_cuda else subject.size.max_tokens
    config = EngineConfig(
        stop_ids=tokens.stop_ids,
        forbidden_ids=tokens.suppressed_ids,
        max_positions=longest_page(tokens, settings, most),
        num_slots=num_slots,
    )
    return Engine(target, config)


def requests(
    subject: Subject,
    arm: DrafterName,
    pages: Sequence[BenchPage],
    dflash: DFlashMaker | None = None,
    *,
    num_pages: int = 1,
    max_tokens: int | None = None,
) -> Iterator[Request]:
    """The pages' requests with drafters as the pipeline makes them."""
    most = min(max_tokens or subject.size.max_tokens, subject.size.max_tokens)
    drafters = page_drafters(subject.model, arm, dflash, num_pages=num_pages)(pages)
    for page, drafter in zip(pages, drafters, strict=True):
        yield Request(
            prompt=page.prompt,
            image=page.image,
            max_tokens=most,
            drafter=drafter,
        )


def decode(
    subject: Subject,
    engine: Engine,
    arm: DrafterName,
    pages: Sequence[BenchPage],
    dflash: DFlashMaker | None = None,
    max_tokens: int | None = None,
) -> list[Result]:
    """Page after page."""
    asked = requests(subject, arm, pages, dflash, max_tokens=max_tokens)
    return [engine.run(request) for request in asked]


def decode_together(
    subject: Subject,
    engine: Engine,
    arm: DrafterName,
    pages: Sequence[BenchPage],
    dflash: DFlashMaker | None = None,
    max_tokens: int | None = None,
) -> list[Result]:
    """As many at once as the engine has slots."""
    slots = max(2, engine.num_slots)
    asked = list(requests(subject, arm, pages, dflash, num_pages=slots, max_tokens=max_tokens))
    tickets = [engine.submit(request) for request in asked]
    outcomes = dict(engine.stream())
    if subject.device.type == "cuda":
        torch.cuda.synchronize()
    results = []
    for ticket in tickets:
        outcome = outcomes[ticket]
        if isinstance(outcome, PageError):
            raise outcome
        results.append(outcome)
    return results


class Speed(NamedTuple):
    """Of decoding, vision and prefill taken off."""

    tokens_per_s: float
    tokens_per_pass: float
    pass_us: float


def speed_of(results: Sequence[Result]) -> Speed:
    """Of pages that were decoded one after the other."""
    emitted = sum(emitted_by_steps(result) for result in results)
    seconds = sum(result.decode_s for result in results)
    steps = sum(result.steps for result in results)
    return Speed(emitted / seconds, emitted / steps, 1e6 * seconds / steps)


def parted(found: Sequence[Result], expected: Sequence[Result]) -> str:
    """Equal, or how many tokens differ and where pages part first."""
    total, differing, places = 0, 0, []
    for page, (one, other) in enumerate(zip(found, expected, strict=True), 1):
        ours, theirs = one.token_ids, other.token_ids
        total += len(theirs)
        unequal = [
            n for n, pair in enumerate(zip(ours, theirs, strict=False)) if len(set(pair)) > 1
        ]
        differing += len(unequal) + abs(len(ours) - len(theirs))
        if ours != theirs or one.finish != other.finish:
            places.append(f"page {page} at {min([*unequal, len(ours), len(theirs)])}")
    off = max(
        (
            abs(a - b)
            for one, other in zip(found, expected, strict=True)
            for a, b in zip(one.logprobs, other.logprobs, strict=False)
        ),
        default=0.0,
    )
    drafted = speed_of(found).tokens_per_pass
    if not places:
        return (
            f"equal, {total} tokens; log probabilities {off:.1e} off, {drafted:.2f} tokens a pass"
        )
    return f"{differing} of {total} tokens differ; {', '.join(places)}; {drafted:.2f} tokens a pass"
