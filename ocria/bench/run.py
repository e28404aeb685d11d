"""One benchmark from options to report."""

import torch

from ocria.bench.bench_model import BenchModel
from ocria.bench.ceilings import measure_ceilings
from ocria.bench.ladder import build_ladder
from ocria.bench.machine import describe
from ocria.bench.measuring import Measured, Measuring, Notify, figures_of
from ocria.bench.options import BenchOptions
from ocria.bench.page_set import find_inputs, read_page_set
from ocria.bench.reference_path import has_fused_path, reference_path
from ocria.bench.report import BenchReport
from ocria.bench.shapes import (
    GRID,
    NUM_PAGES,
    QUICK_GRID,
    made_up_pages,
    mixed_weight_bytes,
    random_target,
    shape_config,
)
from ocria.bench.stages import decode_stage, stage_figures, time_vision
from ocria.bench.traffic import Counter, stored_weight_bytes
from ocria.models.base import Target
from ocria.models.device import dtype_of, resolve_device
from ocria.models.finding import find_checkpoint
from ocria.models.qwen3_5.config import Qwen35Config
from ocria.models.registry import load

_DEFAULT_RUNG = "auto"
"""What `ocria parse` does when nobody says otherwise."""


def bench(options: BenchOptions, notify: Notify = lambda line: None) -> BenchReport:
    """Measures this machine.

    Args:
        options: see `BenchOptions`.
        notify: told what is being done.

    Raises:
        UsageError: a rung that does not exist.
        InputError: a document cannot be read, or there is nothing to read.
        DeviceError: the device is not there, or the model does not fit.
        WeightsError: the checkpoint cannot be loaded.
    """
    device = resolve_device(options.device)
    machine = describe(device, dtype_of(device))
    notify(f"{machine.device}, {machine.dtype}")
    model = open_bench_model(options, device)
    ceilings = measure_ceilings(device, model.target.dtype)
    measuring: Measuring
    rungs = build_ladder(model, options, lambda arithmetic: measuring.texts(arithmetic))
    measuring = Measuring(model, rungs, notify)
    notify("vision")
    vision_s = time_vision(model, 1 if options.quick else min(3, options.num_rounds))
    measuring.run(options.num_rounds)
    first, chosen = measuring.measured[0], _default_rung(measuring)
    stages = stage_figures(model, vision_s, first.runs, ceilings)
    return BenchReport(
        model=options.shape if model.loaded is None else model.loaded.info.name,
        digest=None if model.loaded is None else model.loaded.info.digest,
        accepted=options.tokens_a_pass if model.loaded is None else None,
        machine=machine,
        ceilings=ceilings,
        pages=tuple(page.name for page in model.pages),
        skipped=model.page_set.skipped,
        max_tokens=model.max_tokens,
        num_rounds=options.num_rounds,
        mean_length=model.mean_length,
        stages=(*stages, decode_stage(f"decode ({chosen.rung.name})", chosen.runs)),
        rungs=figures_of(model, measuring.measured, ceilings.copy_bytes_per_s.p50),
    )


def open_bench_model(options: BenchOptions, device: torch.device) -> BenchModel:
    """The model and the pages that the options name.

    Raises:
        as `bench`.
    """
    return _random(options, device) if not options.is_real else _real(options, device)


def _real(options: BenchOptions, device: torch.device) -> BenchModel:
    inputs = find_inputs(options.inputs)
    loaded = load(find_checkpoint(options.model), device=device, keep_plain=True)
    config = Qwen35Config.from_folder(loaded.folder)
    counter = _counter(loaded.target, config)
    # Fused kernels read weights as they are stored; the reference path keeps them in its dtype.
    stored = stored_weight_bytes(loaded.folder, config)
    return BenchModel(
        target=reference_path(loaded.target),
        product=loaded.target,
        product_bytes=stored if has_fused_path(loaded.target) else counter.weight_bytes(),
        loaded=loaded,
        counter=counter,
        page_set=read_page_set(inputs, loaded, first_only=options.quick),
        max_tokens=options.tokens_a_page,
        stop_ids=loaded.tokens.stop_ids,
        forbidden_ids=loaded.tokens.suppressed_ids,
    )


def _random(options: BenchOptions, device: torch.device) -> BenchModel:
    config = shape_config(options.shape)
    target = random_target(config, device, dtype_of(device))
    counter = _counter(target, config)
    is_fused = has_fused_path(target)
    pages, grid = (1, QUICK_GRID) if options.quick else (NUM_PAGES, GRID)
    return BenchModel(
        target=reference_path(target),
        product=target,
        product_bytes=mixed_weight_bytes(config) if is_fused else counter.weight_bytes(),
        loaded=None,
        counter=counter,
        page_set=made_up_pages(config, num_pages=pages, grid=grid),
        max_tokens=options.tokens_a_page,
        stop_ids=frozenset(),
        forbidden_ids=frozenset(),
    )


def _counter(target: Target, config: Qwen35Config) -> Counter:
    # The state pool keeps float32 keys and values on a CPU (ocria/engine/state.py).
    cache = torch.float32 if target.device.type == "cpu" else target.dtype
    return Counter(
        config=config, layout=target.layout, dtype=target.dtype, cache_bytes=cache.itemsize
    )


def _default_rung(measuring: Measuring) -> Measured:
    """The rung of a plain `ocria parse`, if it was run and is good."""
    good = (item for item in measuring.measured if item.fault is None)
    named = (item for item in good if item.rung.name == _DEFAULT_RUNG)
    return next(named, measuring.measured[0])
