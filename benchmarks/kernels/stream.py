"""One stream of real pages with text layers: tokens a second beside bf16 weights, beside
`transformers`; what the host does in a step; prefill and vision as shares of the peak."""

import statistics
import time
from collections.abc import Callable, Sequence
from functools import partial
from types import SimpleNamespace
from typing import NamedTuple, cast

import torch
from documents import decode, decode_together, engine_of, parted, requests, speed_of
from real import MAX_TOKENS
from subject import Figures, Subject, run_parts

from ocria.bench.bench_model import BenchModel
from ocria.bench.equality import judge
from ocria.bench.figures import Quantiles
from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.page_set import BenchPage
from ocria.bench.traffic import Counter, vision_flops
from ocria.bench.transformers_rung import TransformersRung
from ocria.engine import Engine, EngineConfig, Result
from ocria.engine.graphs import GraphRunner
from ocria.engine.state import StatePool
from ocria.models.base import WINDOW, Chunk, Target
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.qwen3_5.names import FLOAT32_NAMES
from ocria.models.registry import open_checkpoint
from ocria.options import DrafterName
from ocria.pipeline.dflash import DFlashMaker, dflash_maker
from ocria.weights import assign

PEAK_FLOPS = 989e12
"""bfloat16 products of an H200 without sparsity, by its data sheet."""
_LEAST_LINES = 20
_THEIR_PAGES, _THEIR_TOKENS = 2, 200
_PROFILED_STEPS = 16
_LAUNCHES = ("cudaLaunchKernel", "cudaLaunchKernelExC", "cuLaunchKernel", "cuLaunchKernelEx")
_COPIES = ("cudaMemcpyAsync", "cudaMemsetAsync", "cudaMemcpy")
_WAITS = ("cudaStreamSynchronize", "cudaDeviceSynchronize", "cudaEventSynchronize")


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """In the order of importance."""
    pages = stream_pages(subject)
    maker = dflash_maker(subject.model)
    figures.say("pages", ", ".join(page.name for page in pages))
    parts = (
        (40, lambda: _ladder(subject, figures, pages, maker)),
        (8, lambda: _host(subject, figures, pages[0], maker)),
        (5, lambda: _shares(subject, figures, pages)),
        (25, lambda: _transformers(subject, figures, pages[:_THEIR_PAGES], maker)),
    )
    run_parts(subject, figures, parts)


def shown(values: Sequence[float], digits: int = 0) -> str:
    """Median and the quantiles of 20 and 80 %."""
    found = Quantiles.of(values)
    return f"{found.p50:.{digits}f} ({found.p20:.{digits}f} to {found.p80:.{digits}f})"


def stream_pages(subject: Subject) -> list[BenchPage]:
    """Those with a text layer of some length, one a document."""
    if subject.device.type != "cuda":
        return list(subject.real_pages[:1])
    found: dict[int, BenchPage] = {}
    for page in subject.real_pages:
        if page.layer is not None and len(page.layer.lines) >= _LEAST_LINES:
            found.setdefault(page.document, page)
    step = max(1, len(found) // subject.size.num_stream)
    return list(found.values())[::step][: subject.size.num_stream]


class _Arm(NamedTuple):
    """A way of decoding that is timed in turn with the others."""

    name: str
    engine: Engine
    drafter: DrafterName
    dflash: DFlashMaker | None
    expected: list[Result]
    tokens_per_s: list[float]
    verdicts: list[str]


def _ladder(
    subject: Subject, figures: Figures, pages: Sequence[BenchPage], maker: DFlashMaker | None
) -> None:
    wide = _bfloat16_target(subject)
    arms = []
    for name, target in (("bf16 weights", cast(Target, wide)), ("stored weights", subject.target)):
        without = engine_of(subject, MeasuredTarget(target, {}), len(pages), MAX_TOKENS)
        expected = decode_together(subject, without, "none", pages, None, MAX_TOKENS)
        engine = engine_of(subject, target, 1, MAX_TOKENS)
        drafters: tuple[DrafterName, ...] = ("none", "text-layer", "dflash", "auto")
        for drafter in drafters if target is subject.target else drafters[:1]:
            arms.append(_Arm(f"{name}, {drafter}", engine, drafter, maker, expected, [], []))
    for round_number in range(1 + subject.size.rounds):
        for arm in arms:
            # Taps are another graph: only the arms that hand them over pay for them.
            subject.target.tap_layers = ()
            found = decode(subject, arm.engine, arm.drafter, pages, arm.dflash, MAX_TOKENS)
            arm.verdicts.append(parted(found, arm.expected))
            if round_number:
                arm.tokens_per_s.append(speed_of(found).tokens_per_s)
    equal = [all(verdict.startswith("equal") for verdict in arm.verdicts) for arm in arms]
    for arm, is_equal in zip(arms, equal, strict=True):
        figures.say(f"{arm.name}, beside plain passes", arm.verdicts[-1])
        if not is_equal:
            figures.say(arm.name, "no speed: other tokens than plain passes")
            continue
        figures.say(f"{arm.name}, tokens/s", shown(arm.tokens_per_s))
        if equal[0]:
            pairs = zip(arm.tokens_per_s, arms[0].tokens_per_s, strict=True)
            figures.say(f"{arm.name}, of bf16 weights", shown([a / b for a, b in pairs], 2))


def _bfloat16_target(subject: Subject) -> Qwen35:
    """The shipped weights as bfloat16."""
    folder = subject.model.folder
    source = open_checkpoint(folder, device=subject.device).source
    with torch.device("meta"):
        model = Qwen35(Qwen35Config.from_folder(folder))
    assign(model, source, dtype=subject.target.dtype, float32_names=FLOAT32_NAMES)
    model.prepare(subject.target.dtype, subject.device)
    return model


def _host(subject: Subject, figures: Figures, page: BenchPage, maker: DFlashMaker | None) -> None:
    """Runtime calls of a step by torch's profiler."""
    arms: tuple[DrafterName, ...] = ("none", "text-layer", "dflash", "auto")
    for arm in arms:
        subject.target.tap_layers = ()
        engine = engine_of(subject, subject.target, 1, MAX_TOKENS)
        request = next(requests(subject, arm, [page], maker, max_tokens=MAX_TOKENS))
        figures.say(f"host, a step, {arm}", profiled(subject, engine, request))
        engine.close()


def profiled(subject: Subject, engine: Engine, request) -> str:  # type: ignore[no-untyped-def]
    """Launches, graphs, copies and waits a step, and kernels on the device."""
    engine.submit(request)
    # The prefill, and the capture of every size that steps may ask for.
    for _ in range(25 if subject.device.type == "cuda" else 1):
        engine.step()
    if not engine.num_requests:
        return "the page was over before a step could be profiled"
    activities = [torch.profiler.ProfilerActivity.CPU]
    if subject.device.type == "cuda":
        torch.cuda.synchronize()
        activities.append(torch.profiler.ProfilerActivity.CUDA)
    steps = 0
    with torch.profiler.profile(activities=activities, acc_events=True) as profile:
        while steps < _PROFILED_STEPS and engine.num_requests:
            engine.step()
            steps += 1
    counts = {event.key: event.count for event in profile.key_averages()}
    on_device = sum(
        event.count for event in profile.key_averages() if str(event.device_type).endswith("CUDA")
    )

    def a_step(names: Sequence[str]) -> str:
        return f"{sum(counts.get(name, 0) for name in names) / steps:.1f}"

    waits = ", ".join(f"{name} {a_step([name])}" for name in _WAITS if counts.get(name))
    return (
        f"graphs {a_step(['cudaGraphLaunch'])}, other launches {a_step(_LAUNCHES)}, copies "
        f"{a_step(_COPIES)}, waits {a_step(_WAITS)} ({waits}), on the device "
        f"{on_device / steps:.1f}; {steps} steps"
    )


def _shares(subject: Subject, figures: Figures, pages: Sequence[BenchPage]) -> None:
    page = max(pages, key=lambda page: len(page.prompt.token_ids))
    say_shares(figures, subject.target, page, subject.size.rounds)


def say_shares(figures: Figures, target: Qwen35, page: BenchPage, rounds: int) -> None:
    """Vision and prefill of a page, as the engine runs them, and of several pages' prompts side by
    side: milliseconds and operations, as a share of the peak."""
    counter = Counter(config=target.config, layout=target.layout, dtype=target.dtype, cache_bytes=2)
    num_rows, num_patches = len(page.prompt.token_ids), len(page.image.values_PC)
    runner = GraphRunner(target)
    together = runner.chunks_at_once
    pool = StatePool(target, num_slots=together, max_positions=num_rows + WINDOW)
    image = page.image._replace(values_PC=page.image.values_PC.to(target.device, target.dtype))
    # A shape is captured when it comes again.
    image_ND = [runner.encode_image(image) for _ in range(2)][-1]

    def prefill(count: int) -> None:
        slots = [pool.acquire() for _ in range(count)]
        while slots[0][1].length < num_rows:
            chunks = [Chunk(state, page.prompt, image_ND) for _, state in slots]
            runner.prefill(chunks)
            lengths = [chunk.num_rows for chunk in chunks]
            for (_, state), length in zip(slots, lengths, strict=True):
                pool.commit_prompt(state, length)
        for slot, _ in slots:
            pool.release(slot)

    works: tuple[tuple[str, Callable[[], object], float], ...] = (
        (
            f"vision of {num_patches} patches",
            lambda: runner.encode_image(image),
            vision_flops(target.config.vision, num_patches),
        ),
        (f"prefill of {num_rows} rows", partial(prefill, 1), counter.prefill_flops(num_rows)),
        (
            f"prefill of {num_rows} rows, {together} pages",
            partial(prefill, together),
            together * counter.prefill_flops(num_rows),
        ),
    )
    for name, work, flops in works:
        work()
        spent = [_seconds(target.device, work) for _ in range(max(3, 2 * rounds))]
        share = 100 * flops / statistics.median(spent) / PEAK_FLOPS
        figures.say(
            name,
            f"{shown([1e3 * s for s in spent], 2)} ms, {flops / 1e9:.1f} GFLOP, "
            f"{share:.2f} % of {PEAK_FLOPS / 1e12:.0f} TFLOP/s",
        )


def _seconds(device: torch.device, work: Callable[[], object]) -> float:
    if device.type == "cuda":
        torch.cuda.synchronize()
    started = time.perf_counter()
    work()
    if device.type == "cuda":
        torch.cuda.synchronize()
    return time.perf_counter() - started


def _transformers(
    subject: Subject, figures: Figures, pages: Sequence[BenchPage], maker: DFlashMaker | None
) -> None:
    """Eager `generate` on the same pages, weights and machine, page by page in turn with `auto`."""
    most = min(_THEIR_TOKENS, subject.size.max_tokens)
    tokens = subject.model.tokens
    engine = engine_of(subject, subject.target, 1, MAX_TOKENS)
    ours: list[float] = []
    theirs: list[float] = []
    outputs = []
    for page in pages:
        model = SimpleNamespace(
            target=subject.target,
            pages=(page,),
            max_tokens=most,
            stop_ids=tokens.stop_ids,
            forbidden_ids=tokens.suppressed_ids,
            counter=SimpleNamespace(weight_bytes=lambda: 0),
        )
        if not outputs:
            rung = TransformersRung(cast(BenchModel, model), subject.model)
            rung.warm_up()
            decode(subject, engine, "auto", [page], maker, most)
        rung._model = cast(BenchModel, model)
        run = rung.run()
        outputs += run.outputs
        theirs.append(run.num_tokens / run.decode_s)
        found = decode(subject, engine, "auto", [page], maker, most)
        ours.append(speed_of(found).tokens_per_s)
    longest = max(len(page.prompt.token_ids) for page in pages)
    config = EngineConfig(
        stop_ids=tokens.stop_ids,
        forbidden_ids=tokens.suppressed_ids,
        max_positions=longest + most + 1 + WINDOW,
    )
    subject.target.tap_layers = ()
    agreement = judge(subject.target, config, pages, outputs, {})
    figures.say(
        "transformers, its text forced through ours",
        f"{agreement.num_ties} of {agreement.num_places} places decided otherwise, by "
        f"{agreement.worst_nats:.3f} nats at most",
    )
    if not agreement.is_equal:
        figures.say("transformers", "no speed: its text is not one that ours ties with")
        return
    figures.say("transformers, eager, tokens/s", shown(theirs, 1))
    figures.say("auto on the same pages, tokens/s", shown(ours))
    pairs = zip(ours, theirs, strict=True)
    figures.say("auto, of transformers", shown([a / b for a, b in pairs], 1))
