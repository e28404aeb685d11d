"""Steps the engine as the product does, and notes what each step took."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from ocria.bench.clock import Clock
from ocria.bench.figures import PageOutput, RungRun
from ocria.bench.measured_target import MeasuredTarget
from ocria.engine import Engine, Request, Result
from ocria.errors import PageError


@dataclass(slots=True)
class _Steps:
    """What was noted of the steps so far."""

    decode_s: float = 0.0
    step_s: list[float] = field(default_factory=list)


def drive(engine: Engine, target: MeasuredTarget, requests: Sequence[Request]) -> RungRun:
    """Decodes requests together, to the end.

    A step is one call of `Engine.step`: drafting, the pass over the target, judging, committing.
    Vision and prefill that fall into a step are taken off it, and such a step is no sample.

    Raises:
        PageError: a page could not be decoded.
    """
    clock = Clock(target.device)
    passes, windows, rows = target.num_passes, target.num_windows, target.num_rows
    apart = target.apart_s
    steps, results = _Steps(), dict[int, Result]()
    tickets = [engine.submit(request) for request in requests]
    while len(results) < len(tickets):
        results |= _step(engine, target, clock, steps)
    ordered = [results[ticket] for ticket in tickets]
    return RungRun(
        outputs=tuple(PageOutput(token_ids=r.token_ids, finish=r.finish) for r in ordered),
        num_tokens=sum(emitted_by_steps(result) for result in ordered),
        num_steps=target.num_passes - passes,
        num_windows=target.num_windows - windows,
        num_rows=target.num_rows - rows,
        decode_s=steps.decode_s,
        step_s=tuple(steps.step_s),
        prefill_s=target.apart_s - apart,
    )


def emitted_by_steps(result: Result) -> int:
    """Tokens that passes after the prefill emitted, a loop's cut-off repeats included."""
    return sum(emitted * count for emitted, count in enumerate(result.accepted))


def joined(runs: Sequence[RungRun]) -> RungRun:
    """Several runs, page after page, as one."""
    return RungRun(
        outputs=tuple(output for run in runs for output in run.outputs),
        num_tokens=sum(run.num_tokens for run in runs),
        num_steps=sum(run.num_steps for run in runs),
        num_windows=sum(run.num_windows for run in runs),
        num_rows=sum(run.num_rows for run in runs),
        decode_s=sum(run.decode_s for run in runs),
        step_s=tuple(seconds for run in runs for seconds in run.step_s),
        prefill_s=sum(run.prefill_s for run in runs),
    )


def _step(engine: Engine, target: MeasuredTarget, clock: Clock, steps: _Steps) -> dict[int, Result]:
    passes, prefills, apart = target.num_passes, target.num_prefills, target.apart_s
    started = clock.now_s()
    finished = engine.step()
    spent = clock.now_s() - started - (target.apart_s - apart)
    if target.num_passes > passes:
        steps.decode_s += spent
        if target.num_prefills == prefills:
            steps.step_s.append(spent)
    results = {}
    for ticket, outcome in finished:
        if isinstance(outcome, PageError):
            raise outcome
        results[ticket] = outcome
    return results
