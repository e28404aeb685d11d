"""Strict assignment: nothing missing, nothing of another shape, nothing dropped in silence."""

from collections.abc import Iterable

import pytest
import torch
from torch import Tensor, nn

from ocria.errors import WeightsError
from ocria.weights import assign


class DictSource:
    def __init__(self, tensors: dict[str, Tensor]) -> None:
        self.tensors = tensors

    def names(self) -> Iterable[str]:
        return self.tensors

    def shape(self, name: str) -> tuple[int, ...]:
        return tuple(self.tensors[name].shape)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        return self.tensors[name].to(dtype)


class Small(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.inner = nn.Linear(2, 3)
        self.A_log = nn.Parameter(torch.empty(4))
        self.register_buffer("steps", torch.empty(2))
        self.register_buffer("cache", torch.empty(9), persistent=False)


def tensors() -> dict[str, Tensor]:
    return {
        "inner.weight": torch.randn(3, 2),
        "inner.bias": torch.randn(3),
        "A_log": torch.randn(4),
        "steps": torch.tensor([1.0, 2.0]),
    }


def on_meta() -> Small:
    with torch.device("meta"):
        return Small()


def test_every_tensor_is_placed_in_its_dtype() -> None:
    module, given = on_meta(), tensors()
    report = assign(
        module, DictSource(given), dtype=torch.bfloat16, float32_names=frozenset({"A_log"})
    )
    assert report.num_tensors == 4 and report.unexpected == ()
    assert torch.equal(module.inner.weight, given["inner.weight"].bfloat16())
    assert module.A_log.dtype == torch.float32 and torch.equal(module.A_log, given["A_log"])
    assert module.steps.tolist() == [1.0, 2.0]
    assert not any(parameter.requires_grad for parameter in module.parameters())


def test_what_has_no_place_is_reported() -> None:
    given = {**tensors(), "mtp.fc.weight": torch.ones(1), "a.new.idea": torch.ones(1)}
    report = assign(on_meta(), DictSource(given), dtype=torch.float32)
    assert report.unexpected == ("a.new.idea", "mtp.fc.weight")


def test_missing_tensors_are_all_named() -> None:
    given = tensors()
    del given["inner.bias"], given["A_log"]
    with pytest.raises(WeightsError, match=r"lacks A_log, inner\.bias"):
        assign(on_meta(), DictSource(given), dtype=torch.float32)


def test_another_shape_is_told_with_both_shapes() -> None:
    given = {**tensors(), "inner.weight": torch.randn(2, 3)}
    with pytest.raises(WeightsError, match=r"inner\.weight is \[2, 3\], the model wants \[3, 2\]"):
        assign(on_meta(), DictSource(given), dtype=torch.float32)
