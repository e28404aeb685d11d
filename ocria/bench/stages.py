"""Seconds a page of the stages before and beside decoding."""

from collections.abc import Sequence

import torch

from ocria.bench.bench_model import BenchModel
from ocria.bench.clock import Clock
from ocria.bench.figures import Ceilings, Quantiles, RungRun, StageFigures
from ocria.bench.traffic import vision_flops


def time_vision(model: BenchModel, repeats: int) -> tuple[float, ...]:
    """Seconds of every page in the vision tower, `repeats` times over; keeps the image tokens."""
    clock, seconds = Clock(model.target.device), []
    model.target.encode_image(model.pages[0].image)
    for _ in range(repeats):
        for page in model.pages:
            started = clock.now_s()
            tokens_ND = model.target.encode_image(page.image)
            seconds.append(clock.now_s() - started)
            model.images[id(page.image.values_PC)] = tokens_ND
    return tuple(seconds)


def stage_figures(
    model: BenchModel, vision_s: Sequence[float], runs: Sequence[RungRun], ceilings: Ceilings
) -> tuple[StageFigures, ...]:
    """All stages but decoding.

    Args:
        vision_s: from `time_vision`.
        runs: of the first rung, whose prefills are counted.
    """
    pages, peak = model.pages, ceilings.product_flops_per_s.p50
    prompts = [len(page.prompt.token_ids) for page in pages]
    vision = model.counter.config.vision
    vision_work = _mean([vision_flops(vision, len(page.image.values_PC)) for page in pages])
    prefill_work = _mean([model.counter.prefill_flops(length) for length in prompts])
    prefill_s = [run.prefill_s / len(run.outputs) for run in runs]
    stages = [] if model.loaded is None else _host_stages(model)
    for name, seconds, work in (
        ("vision", vision_s, vision_work),
        ("prefill", prefill_s, prefill_work),
    ):
        share = work / _mean(seconds) / peak
        stages.append(
            StageFigures(name=name, seconds=Quantiles.of(seconds), flops=work, peak_share=share)
        )
    return tuple(stages)


def decode_stage(name: str, runs: Sequence[RungRun]) -> StageFigures:
    """Decoding of the mean page by one rung, a value a round."""
    seconds = [run.decode_s / len(run.outputs) for run in runs]
    return StageFigures(name=name, seconds=Quantiles.of(seconds))


def _host_stages(model: BenchModel) -> list[StageFigures]:
    return [
        StageFigures(name="rasterize", seconds=Quantiles.of([p.rasterize_s for p in model.pages])),
        StageFigures(name="patches", seconds=Quantiles.of([p.patches_s for p in model.pages])),
    ]


def _mean(values: Sequence[float]) -> float:
    return float(torch.tensor(values, dtype=torch.float64).mean())
