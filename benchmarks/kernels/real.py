"""Real pages: their greedy tokens with drafters, alone and in company, against plain passes."""

import time
from collections.abc import Callable, Sequence

import torch
from documents import decode, decode_together, engine_of, parted
from subject import Figures, Subject

from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.page_set import BenchPage
from ocria.engine import Result
from ocria.options import DrafterName
from ocria.pipeline.dflash import dflash_maker

MAX_TOKENS = 400
_PLAIN_SLOTS = 32
_TOGETHER: tuple[tuple[int, DrafterName], ...] = (
    (8, "dflash"),
    (8, "text-layer"),
    (8, "none"),
    (64, "none"),
    (8, "auto"),
    (64, "auto"),
)
_ALONE: tuple[DrafterName, ...] = ("none", "auto", "dflash", "text-layer")


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Plain passes once; then graphs, every way of decoding against them."""
    pages = subject.real_pages
    is_cuda = subject.device.type == "cuda"
    figures.say("pages", f"{len(pages)}, {sum(bool(p.layer) for p in pages)} with a text layer")
    figures.say("images encoded twice", _encode(subject, pages))
    # This target offers no static passes, so the graph runner takes plain ones.
    plain = MeasuredTarget(subject.target, {})
    slots = _PLAIN_SLOTS if is_cuda else 2
    expected = _timed(
        figures,
        f"plain passes, {slots} side by side",
        pages,
        lambda: decode_together(
            subject, engine_of(subject, plain, slots, MAX_TOKENS), "none", pages, None, MAX_TOKENS
        ),
    )
    maker = dflash_maker(subject.model)
    alone = pages[: subject.size.num_alone]
    engine = engine_of(subject, subject.target, 1, MAX_TOKENS)
    for arm in _ALONE:
        _against(
            subject,
            figures,
            f"graphs, alone, {arm}",
            expected[: len(alone)],
            alone,
            lambda arm=arm: decode(subject, engine, arm, alone, maker, MAX_TOKENS),
        )
    for num_slots, arm in _TOGETHER:
        engine = engine_of(subject, subject.target, num_slots if is_cuda else 2, MAX_TOKENS)
        _against(
            subject,
            figures,
            f"graphs, {num_slots} side by side, {arm}",
            expected,
            pages,
            lambda arm=arm, engine=engine: decode_together(
                subject, engine, arm, pages, maker, MAX_TOKENS
            ),
        )
    subject.target.tap_layers = ()
    del subject.target.encode_image


def _encode(subject: Subject, pages: Sequence[BenchPage]) -> str:
    """Keeps each page's image tokens: all ways read the same ones. Some are made twice."""
    make = subject.target.encode_image
    kept = {id(page.image.values_PC): make(page.image) for page in pages}
    again = pages[:8]
    equal = sum(
        torch.equal(make(page.image), kept[id(page.image.values_PC)]) for page in reversed(again)
    )
    subject.target.encode_image = lambda image: kept[id(image.values_PC)]  # type: ignore[method-assign]
    return f"{equal} of {len(again)} equal"


def _against(
    subject: Subject,
    figures: Figures,
    name: str,
    expected: Sequence[Result],
    pages: Sequence[BenchPage],
    work: Callable[[], list[Result]],
) -> None:
    if subject.left_s < 15:
        figures.say(name, "not run: time is up")
        return
    try:
        found = _timed(figures, name, pages, work)
        figures.say(f"{name}, beside plain passes", parted(found, expected))
    except Exception as error:
        figures.say(name, f"{type(error).__name__}: {error}"[:300])
    subject.target.tap_layers = ()


def _timed(
    figures: Figures, name: str, pages: Sequence[BenchPage], work: Callable[[], list[Result]]
) -> list[Result]:
    started = time.perf_counter()
    results = work()
    spent = time.perf_counter() - started
    emitted = sum(len(result.token_ids) for result in results)
    figures.say(
        name,
        f"{emitted} tokens of {len(pages)} pages in {spent:.1f} s, captures and prefill included",
    )
    return results
