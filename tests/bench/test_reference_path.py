"""The ladder of a model that has fused kernels, on a stand-in for them."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from ocria.bench import BenchOptions
from ocria.bench.bench_model import BenchModel
from ocria.bench.ladder import build_ladder
from ocria.bench.measured_target import MeasuredTarget
from ocria.bench.measuring import Measuring, figures_of
from ocria.bench.reference_path import ReferencePath, has_fused_path, reference_path
from ocria.bench.rungs import EngineRung
from ocria.models.base import Output, Window


class FusedModel(MeasuredTarget):
    """Rounds its logits a little otherwise while `fused` is set."""

    def __init__(self, model: BenchModel) -> None:
        super().__init__(model.target, {})
        self.fused: object | None = object()
        self.calls: list[bool] = []

    def verify(self, windows: Sequence[Window]) -> Output:
        output = super().verify(windows)
        self.calls.append(self.fused is not None)
        if self.fused is None:
            return output
        ripple_V = torch.linspace(-1e-3, 1e-3, self.vocab_size)
        return output._replace(logits_TV=output.logits_TV + ripple_V)


def test_a_model_without_fused_kernels_is_its_own_reference(model: BenchModel) -> None:
    assert not has_fused_path(model.target)
    assert reference_path(model.target) is model.target
    assert model.product is model.target


def test_fused_kernels_are_off_for_each_call_and_on_again(model: BenchModel) -> None:
    fused = FusedModel(model)
    path = reference_path(fused)
    assert isinstance(path, ReferencePath) and has_fused_path(fused)
    EngineRung("plain", replace(model, target=path)).run()
    assert fused.calls and not any(fused.calls)
    assert has_fused_path(fused)


def test_the_ladder_on_cuda_names_what_is_missing(model: BenchModel, options: BenchOptions) -> None:
    pretender = MeasuredTarget(model.target, {})
    pretender.device = torch.device("cuda")
    pretended = replace(model, target=pretender, product=pretender)
    rungs = build_ladder(pretended, options, lambda arithmetic: ())
    names = [rung.name for rung in rungs]
    assert names[:4] == ["plain", "graph", "fused", "fused-graph"]
    assert rungs[2].unavailable() == "the model takes its reference path here"


def test_speculation_on_the_fused_path_is_held_against_its_own_text(
    model: BenchModel, options: BenchOptions
) -> None:
    fused = FusedModel(model)
    both = replace(model, target=reference_path(fused), product=fused, product_bytes=1000)
    rungs = build_ladder(both, replace(options, rungs=("ngram", "auto")), lambda arithmetic: ())
    assert [rung.arithmetic for rung in rungs] == ["reference", "fused", "fused"]
    measuring = Measuring(both, rungs, lambda line: None)
    measuring.run(1)
    plain, ngram, auto = figures_of(both, measuring.measured, 1e9)
    assert [rung.status for rung in (plain, ngram, auto)] == ["ok"] * 3, (ngram.note, auto.note)
    assert "tokens decided otherwise" in ngram.note and auto.note == ""
    assert ngram.step_bytes is not None and ngram.step_bytes.weights == 1000
    assert any(fused.calls) and not all(fused.calls)
