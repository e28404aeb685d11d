"""Runs the ladder round by round, drops what differs, and makes figures of the rest."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import torch

from ocria.bench.bench_model import BenchModel
from ocria.bench.equality import Agreement, Difference, first_difference, judge
from ocria.bench.figures import PageOutput, Quantiles, RungFigures, RungRun
from ocria.bench.rungs import REFERENCE, Rung
from ocria.errors import OcriaError

Notify = Callable[[str], None]


@dataclass(slots=True)
class Measured:
    """A rung and what became of it.

    Attributes:
        runs: one a round, until it differed.
        fault: why it is out; None while it is good.
        differs: whether the fault is what it wrote.
        note: how its equality was judged.
    """

    rung: Rung
    runs: list[RungRun] = field(default_factory=list)
    fault: str | None = None
    differs: bool = False
    note: str = ""

    def drop(self, fault: str, *, differs: bool) -> None:
        """Takes the rung out; its runs are forgotten, so that no speed can be made of them."""
        self.fault, self.differs = fault, differs
        self.runs.clear()


class Measuring:
    """One run of a ladder over one page set.

    Rungs take turns within each round, so that a machine that slows down slows all of them. Every
    run of every round is held against the first run of the first rung that shares its arithmetic;
    the first rung of another arithmetic is judged by the reference.
    """

    def __init__(self, model: BenchModel, rungs: Sequence[Rung], notify: Notify) -> None:
        self._model = model
        self._notify = notify
        self._written: dict[str, tuple[PageOutput, ...]] = {}
        self.measured = [Measured(rung) for rung in rungs]

    def texts(self, arithmetic: str) -> tuple[PageOutput, ...]:
        """What an arithmetic wrote first, or the reference where that has not run."""
        return self._written.get(arithmetic, self._written[REFERENCE])

    def run(self, num_rounds: int) -> None:
        """Warms up, then measures every rung once a round.

        Raises:
            OcriaError: the first rung cannot run.
        """
        for item in self.measured:
            why = item.rung.unavailable()
            if why is not None:
                item.drop(why, differs=False)
        for number in range(1, num_rounds + 1):
            for item in self.measured:
                if item.fault is None:
                    self._notify(f"round {number} of {num_rounds}: {item.rung.name}")
                    self._attempt(item, number)

    def _attempt(self, item: Measured, number: int) -> None:
        try:
            if number == 1:
                item.rung.warm_up()
            run = item.rung.run()
        except (OcriaError, torch.OutOfMemoryError) as error:
            if item is self.measured[0]:
                raise
            item.drop(f"stopped: {error}", differs=False)
            return
        fault = self._fault(item, run.outputs)
        if fault is not None:
            item.drop(fault, differs=True)
            return
        item.runs.append(run)

    def _fault(self, item: Measured, outputs: tuple[PageOutput, ...]) -> str | None:
        arithmetic = item.rung.arithmetic
        expected = self._written.get(arithmetic)
        if expected is not None:
            difference = first_difference(expected, outputs)
            return None if difference is None else self._differs(difference)
        self._written[arithmetic] = outputs
        if arithmetic == REFERENCE:
            return None
        model = self._model
        agreement = judge(model.target, model.engine_config(), model.pages, outputs, model.images)
        item.note = _judgement(agreement)
        return None if agreement.is_equal else f"{self._differs(agreement.worst)}: {item.note}"

    def _differs(self, difference: Difference) -> str:
        name = self._model.pages[difference.page].name
        return f"differs at {name} token {difference.token + 1}"


def figures_of(
    model: BenchModel, measured: Sequence[Measured], copy_rate: float
) -> tuple[RungFigures, ...]:
    """What is printed of each rung; speeds only of those that wrote what they had to."""
    figures: list[RungFigures] = []
    for item in measured:
        found = _rung_figures(model, item, copy_rate)
        first = figures[0].tokens_per_s if figures else found.tokens_per_s
        if found.tokens_per_s is not None and first is not None and first.p50 > 0:
            found = replace(found, speedup=found.tokens_per_s.p50 / first.p50)
        figures.append(found)
    return tuple(figures)


def _rung_figures(model: BenchModel, item: Measured, copy_rate: float) -> RungFigures:
    name = item.rung.name
    if item.fault is not None:
        status = "differs" if item.differs else "unavailable"
        return RungFigures(name=name, status=status, note=item.fault)  # type: ignore[arg-type]
    runs = item.runs
    num_steps = sum(run.num_steps for run in runs)
    step_s = [seconds for run in runs for seconds in run.step_s]
    if not step_s:
        return RungFigures(name=name, status="unavailable", note="no step without a prefill in it")
    rows = sum(run.num_rows for run in runs) / num_steps
    sequences = sum(run.num_windows for run in runs) / num_steps
    step_bytes = model.counter.step_bytes(item.rung.weight_bytes, model.mean_length, sequences)
    step_ms = Quantiles.of([1e3 * seconds for seconds in step_s])
    return RungFigures(
        name=name,
        status="ok",
        note=item.note,
        tokens_per_s=Quantiles.of([run.tokens_per_s for run in runs]),
        step_ms=step_ms,
        tokens_per_step=sum(run.num_tokens for run in runs) / num_steps,
        rows_per_step=rows,
        step_bytes=step_bytes,
        step_flops=model.counter.step_flops(rows, model.mean_length),
        copy_share=step_bytes.total / (step_ms.p50 / 1e3) / copy_rate,
        launches=item.rung.launches(),
    )


def _judgement(agreement: Agreement) -> str:
    return (
        f"other arithmetic: {agreement.num_ties} of {agreement.num_places} tokens decided "
        f"otherwise, by {agreement.worst_nats:.3f} nats at most"
    )
