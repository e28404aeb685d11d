"""Speed: steps as graphs, whole pages, pages side by side, and single kernels."""

import math
import statistics
import time
from collections.abc import Callable
from functools import partial
from itertools import cycle, islice

import torch
from documents import ARMS, decode, decode_together, engine_of, parted, speed_of
from launches import Mixers, Product, fill, products
from subject import Figures, Subject, text_of

from ocria.engine import Result
from ocria.engine.graphs import GraphRunner
from ocria.engine.state import StatePool
from ocria.models.base import Window
from ocria.pipeline.page_reader import image_settings, longest_page

L2_BYTES = 200 << 20
"""More than three times the L2 of an H200: what is read round and round comes from memory."""


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """In the order of importance: what time is left for is run."""
    parts: tuple[tuple[float, Callable[[Subject, Figures], None]], ...] = (
        (3, steps),
        (4, kernels),
        (3, narrow),
        (8, pages),
        (10, side_by_side),
    )
    for needed_s, part in parts:
        if subject.left_s < needed_s:
            figures.say(part.__name__, "not run: time is up")
            continue
        try:
            part(subject, figures)
        except (RuntimeError, AssertionError, ValueError) as error:
            figures.say(part.__name__, f"{type(error).__name__}: {error}"[:300])


def steps(subject: Subject, figures: Figures) -> None:
    """A captured pass at one position, for a page's room of two sizes."""
    position = subject.size.position
    product = longest_page(subject.model.tokens, image_settings(subject.model), 8192)
    for capacity in (position + 512, product):
        pool = StatePool(subject.target, num_slots=8, max_positions=capacity)
        states = [pool.acquire()[1] for _ in range(8)]
        for state in states:
            fill(state, position)
        for num_pages, rows in ((1, 1), (1, 4), (1, 8), (1, 16), (8, 1), (8, 16)):
            runner = GraphRunner(subject.target, subject.forbidden_ids)
            windows = [Window(state, text_of(rows, 1)) for state in states[:num_pages]]
            runner.verify(windows, with_logits=False)
            (captured,) = runner._captured.values()
            assert captured is not None, "the target has static passes"
            replayed = timed_us(subject, captured.replay)

            def step(runner: GraphRunner = runner, windows: list[Window] = windows) -> None:
                best = runner.verify(windows, with_logits=False).best
                assert best is not None
                best.token_T.tolist()

            name = f"{num_pages} x {rows} rows at {position} of {capacity}"
            whole = timed_us(subject, step)
            figures.say(f"pass of {name}", f"{replayed:.0f} us, host to host {whole:.0f}")


def kernels(subject: Subject, figures: Figures) -> None:
    """Launches of the shipped model's mixers and head."""
    for name, call in Mixers(subject, subject.size.position).launches():
        figures.say(name, f"{launched_us(subject, [call]):.1f} us")


def narrow(subject: Subject, figures: Figures) -> None:
    """Products of a pass of the shipped model, those of all layers one after the other."""
    alike: dict[str, list[Product]] = {}
    for product in products(subject):
        alike.setdefault(product.name, []).append(product)
    for name, found in alike.items():
        x = subject.random(16, found[0].weight.num_in)
        residual = subject.random(16, found[0].weight.num_out) if found[0].has_residual else None
        calls = [partial(product, x, residual) for product in found]
        figures.say(name, f"{launched_us(subject, calls):.1f} us, {len(found)} in a pass")


def pages(subject: Subject, figures: Figures) -> None:
    """The examples one after the other; speeds of arms that wrote the same."""
    engine, examples = engine_of(subject, subject.target), subject.examples
    expected: list[Result] = []
    for arm in ARMS:
        if subject.left_s < 6:
            figures.say(f"examples, {arm}", "not run: time is up")
            continue
        decode(subject, engine, arm, examples)
        started = time.perf_counter()
        results = decode(subject, engine, arm, examples)
        spent = time.perf_counter() - started
        expected = expected or results
        verdict = parted(results, expected)
        speed = speed_of(results)
        shown = (
            f"{speed.tokens_per_s:.0f} tokens/s, {speed.tokens_per_pass:.2f} tokens a pass, "
            f"{speed.pass_us:.0f} us a pass, {len(examples) / spent:.2f} pages/s with vision"
        )
        figures.say(f"examples, {arm}", shown if verdict.startswith("equal") else verdict)


def side_by_side(subject: Subject, figures: Figures) -> None:
    """Pages that are read together, as often as it takes to fill the slots."""
    alone = decode(subject, engine_of(subject, subject.target), "none", subject.examples)
    for num_slots in subject.size.batches:
        engine = engine_of(subject, subject.target, num_slots)
        asked = list(islice(cycle(subject.examples), max(16, num_slots)))
        expected = list(islice(cycle(alone), len(asked)))
        for arm in ("none", "auto"):
            if subject.left_s < 8:
                figures.say(f"{num_slots} side by side, {arm}", "not run: time is up")
                continue
            started = time.perf_counter()
            decode_together(subject, engine, arm, asked)
            first = time.perf_counter() - started
            shown = f"{len(asked) / first:.2f} pages/s with captures"
            if subject.left_s > 1.2 * first + 2:
                started = time.perf_counter()
                results = decode_together(subject, engine, arm, asked)
                spent = time.perf_counter() - started
                emitted = sum(len(result.token_ids) for result in results)
                shown = (
                    f"{len(asked) / spent:.2f} pages/s, {emitted / spent:.0f} tokens/s with vision "
                    f"and prefill ({shown}); beside pages alone {parted(results, expected)}"
                )
            figures.say(f"{num_slots} side by side, {arm}", shown)


def timed_us(subject: Subject, work: Callable[[], object], *, times: int = 30) -> float:
    """Microseconds of a call, the median of five groups."""
    if subject.device.type != "cuda":
        started = time.perf_counter()
        work()
        return 1e6 * (time.perf_counter() - started)
    for _ in range(5):
        work()
    groups = []
    for _ in range(5):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        start.record()
        for _ in range(times):
            work()
        end.record()
        end.synchronize()
        groups.append(1e3 * start.elapsed_time(end) / times)
    return statistics.median(groups)


def launched_us(subject: Subject, calls: list[Callable[[], object]]) -> float:
    """Microseconds of one of the calls, captured behind each other: the host is not in it."""
    rounds = max(1, math.ceil(subject.size.repeats / len(calls)))
    if subject.device.type != "cuda":
        return timed_us(subject, calls[0])
    for call in calls:
        call()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        for _ in range(rounds):
            for call in calls:
                call()
    return timed_us(subject, graph.replay) / (rounds * len(calls))
