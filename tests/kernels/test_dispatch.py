"""An operation takes its reference or its kernel."""

import inspect
import sys
from types import ModuleType

import pytest
import torch
from torch import Tensor

from ocria.kernels import dispatch, draft_block, gated_delta, gated_norm, head, small_gemm
from ocria.kernels.block_attention import attention_pass
from ocria.kernels.dispatch import with_kernel


def doubled(count: int, x: Tensor, *, more: int = 0) -> Tensor:
    """Twice x."""
    return 2 * x + count + more


def test_the_first_tensor_decides(monkeypatch: pytest.MonkeyPatch) -> None:
    doubled.__module__ = "some_kernel.reference"
    module = ModuleType("some_kernel.triton_impl")
    module.doubled = lambda count, x, *, more=0: -x  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "some_kernel", ModuleType("some_kernel"))
    monkeypatch.setitem(sys.modules, "some_kernel.triton_impl", module)
    operation = with_kernel(doubled)
    assert (operation.__name__, operation.__doc__) == ("doubled", "Twice x.")
    assert operation(1, torch.ones(1), more=3).item() == 6
    monkeypatch.setattr(dispatch, "takes_triton", lambda x: x.shape == (1,))
    assert operation(1, torch.ones(1), more=3).item() == -1
    assert operation(1, torch.ones(2)).tolist() == [3, 3]


@pytest.mark.parametrize(
    "operation",
    [
        attention_pass,
        draft_block.draft_attention,
        draft_block.mixed_rows,
        draft_block.write_context,
        gated_delta.delta_pass,
        gated_norm.gated_norm,
        head.best_tokens,
        small_gemm.small_gemm,
    ],
    ids=lambda operation: operation.__name__,
)
def test_a_kernel_takes_what_its_reference_takes(operation: object) -> None:
    assert callable(operation)
    reference = inspect.unwrap(operation)
    package = reference.__module__.rpartition(".")[0]
    kernel = getattr(pytest.importorskip(f"{package}.triton_impl"), reference.__name__)
    asked, taken = (inspect.signature(one).parameters for one in (reference, kernel))
    assert list(taken)[: len(asked)] == list(asked)
    assert all(taken[name].kind == asked[name].kind for name in asked)
    assert all(
        taken[name].default is not inspect.Parameter.empty for name in list(taken)[len(asked) :]
    )
