"""No speed of a rung that wrote something else."""

from collections.abc import Sequence
from dataclasses import replace

import pytest
import torch

from ocria.bench.bench_model import BenchModel
from ocria.bench.equality import TIE_NATS, Difference, first_difference, forced_margins, judge
from ocria.bench.figures import PageOutput, RungRun
from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.measuring import Measuring, figures_of
from ocria.bench.rungs import EngineRung
from ocria.models.base import Output, Window


def output(*ids: int, finish: str = "length") -> PageOutput:
    return PageOutput(token_ids=ids, finish=finish)


@pytest.mark.parametrize(
    ("found", "expected"),
    [
        ((output(1, 2), output(3)), None),
        ((output(1, 9), output(3)), Difference(0, 1)),
        ((output(1, 2), output(3, 4)), Difference(1, 1)),
        ((output(1, 2), output()), Difference(1, 0)),
        ((output(1, 2, finish="eos"), output(3)), Difference(0, 2)),
    ],
    ids=["same", "token", "longer", "shorter", "end"],
)
def test_first_difference(found: Sequence[PageOutput], expected: Difference | None) -> None:
    assert first_difference((output(1, 2), output(3)), found) == expected


class Wrong(MeasuredTarget):
    """Rows of a window with company come out otherwise: what a split that follows M would do."""

    def verify(self, windows: Sequence[Window]) -> Output:
        result = super().verify(windows)
        if len(result.logits_TV) == 1:
            return result
        return result._replace(logits_TV=result.logits_TV.roll(1, -1))


class Proposing:
    """Proposes something at every step, so that all windows have company."""

    def prepare(self, prompt: object) -> None: ...

    def propose(self, emitted: Sequence[int], most: int) -> Sequence[int]:
        return [7]

    def observe(self, emitted: Sequence[int], num_accepted: int) -> None: ...


def test_a_rung_that_differs_has_no_speed(model: BenchModel) -> None:
    wrong = replace(model, target=Wrong(model.target, {}))
    rungs = [
        EngineRung("plain", model),
        EngineRung("wrong", wrong, lambda pages: iter([Proposing()] * len(pages))),
        EngineRung("right", model, lambda pages: iter([Proposing()] * len(pages))),
    ]
    said: list[str] = []
    measuring = Measuring(model, rungs, said.append)
    measuring.run(2)
    plain, differing, right = figures_of(model, measuring.measured, 1e9)
    assert differing.status == "differs"
    assert differing.note == "differs at a.tif page 1 token 2"
    assert differing.tokens_per_s is differing.step_ms is differing.speedup is None
    assert plain.status == right.status == "ok"
    # It is not run again in the second round.
    assert [line for line in said if "wrong" in line] == ["round 1 of 2: wrong"]


class Unsteady(EngineRung):
    """Writes something else the second time."""

    times = 0

    def run(self) -> RungRun:
        run = super().run()
        self.times += 1
        changed = replace(run.outputs[-1], token_ids=run.outputs[-1].token_ids[:-1])
        return replace(run, outputs=(*run.outputs[:-1], changed)) if self.times > 1 else run


def test_a_later_round_that_differs_takes_the_speed_away(model: BenchModel) -> None:
    measuring = Measuring(
        model, [EngineRung("plain", model), Unsteady("x", model)], lambda line: None
    )
    measuring.run(3)
    _, found = figures_of(model, measuring.measured, 1e9)
    assert found.status == "differs" and found.tokens_per_s is None
    assert found.note.startswith("differs at b.png page 1 token ")


def test_the_reference_agrees_with_itself(model: BenchModel) -> None:
    outputs = EngineRung("plain", model).run().outputs
    agreement = judge(model.target, model.engine_config(), model.pages, outputs, model.images)
    assert agreement.is_equal and agreement.num_ties == 0
    assert agreement.num_places == sum(len(output.token_ids) for output in outputs)


def test_another_token_is_found_where_it_is(model: BenchModel) -> None:
    outputs = list(EngineRung("plain", model).run().outputs)
    ids = list(outputs[1].token_ids)
    ids[5] = next(token for token in range(10, 20) if token != ids[5])
    outputs[1] = replace(outputs[1], token_ids=tuple(ids))
    agreement = judge(model.target, model.engine_config(), model.pages, outputs, model.images)
    assert agreement.num_ties >= 1 and agreement.worst_nats > TIE_NATS
    assert not agreement.is_equal
    margins = forced_margins(
        model.target, model.engine_config(), model.pages[1], outputs[1], model.images
    )
    assert torch.count_nonzero(margins[:5]) == 0 and margins[5] > 0


def test_an_end_that_the_reference_does_not_see_is_judged(model: BenchModel) -> None:
    first = EngineRung("plain", model).run().outputs[0]
    early = replace(first, token_ids=first.token_ids[:6], finish="eos")
    margins = forced_margins(
        model.target, model.engine_config(), model.pages[0], early, model.images
    )
    assert len(margins) == 7
    assert torch.count_nonzero(margins[:6]) == 0 and margins[6] > TIE_NATS


class Other(EngineRung):
    """The same passes under another arithmetic's name."""

    def __init__(self, model: BenchModel, *, spoilt: bool) -> None:
        super().__init__("other", model, arithmetic="other")
        self._spoilt = spoilt

    def run(self) -> RungRun:
        run = super().run()
        if not self._spoilt:
            return run
        first = run.outputs[0]
        changed = replace(first, token_ids=(*first.token_ids[:-1], 5))
        return replace(run, outputs=(changed, *run.outputs[1:]))


@pytest.mark.parametrize("spoilt", [False, True])
def test_another_arithmetic_is_judged_by_the_reference(model: BenchModel, spoilt: bool) -> None:
    rungs = [EngineRung("plain", model), Other(model, spoilt=spoilt)]
    measuring = Measuring(model, rungs, lambda line: None)
    measuring.run(1)
    _, other = figures_of(model, measuring.measured, 1e9)
    assert other.status == ("differs" if spoilt else "ok")
    assert "tokens decided otherwise" in other.note
    assert (other.tokens_per_s is None) == spoilt
