"""What training does otherwise on a GPU: its own kernels, and a captured update."""

import copy

import pytest
import torch

from ocria.models.recipes.nano import optimiser as optimising
from ocria.models.recipes.nano.delta import chunked_delta_rule
from ocria.models.recipes.nano.invert import joined_inverse, unit_lower_inverse
from ocria.models.recipes.nano.optimiser import Optimiser, Rates
from ocria.models.recipes.nano.scan import scan_grads, scan_states

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


def distance(got: torch.Tensor, wanted: torch.Tensor) -> float:
    return float((got.cpu().double() - wanted).norm() / wanted.norm())


@pytest.mark.parametrize(("precision", "most"), [("highest", 1e-5), ("high", 3e-3)])
def test_scan_and_inverse_are_the_plain_ones(precision, most):
    before = torch.get_float32_matmul_precision()
    torch.set_float32_matmul_precision(precision)
    generator = torch.Generator().manual_seed(0)
    steps = torch.randn(5, 7, 128, 128, generator=generator).double() * 0.08
    inputs, grads = (torch.randn(5, n, 128, 128, generator=generator).double() for n in (7, 8))
    lower = (torch.randn(9, 64, 64, generator=generator).double() * 0.2).tril(-1)
    try:
        states = scan_states(steps.float().cuda(), inputs.float().cuda())
        total = scan_grads(steps.float().cuda(), grads.float().cuda())
        assert distance(states, scan_states(steps, inputs)) < most
        assert distance(total, scan_grads(steps, grads)) < most
        assert distance(unit_lower_inverse(lower.float().cuda()), joined_inverse(lower)) < 1e-5
    finally:
        torch.set_float32_matmul_precision(before)


def test_delta_rule_and_its_gradient_are_those_of_the_cpu():
    generator = torch.Generator().manual_seed(1)
    given = [torch.randn(2, 192, 2, 128, generator=generator) for _ in range(3)]
    given += [-torch.rand(2, 192, 2, generator=generator) * 0.3]
    given += [torch.rand(2, 192, 2, generator=generator)]
    weight = torch.randn(2, 192, 2, 128, generator=generator)
    both = []
    for device in ("cpu", "cuda"):
        inputs = [tensor.to(device).requires_grad_() for tensor in given]
        out, _ = chunked_delta_rule(*inputs)
        both.append([out, *torch.autograd.grad((out * weight.to(device)).sum(), inputs)])
    for wanted, got in zip(*both, strict=True):
        assert distance(got.detach(), wanted.detach().double()) < 3e-3


def test_a_captured_update_is_the_plain_one(monkeypatch):
    found = []
    for plain in (3, 10**9):
        monkeypatch.setattr(optimising, "_PLAIN_UPDATES", plain)
        torch.manual_seed(2)
        model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.Linear(96, 32)).cuda()
        before = [p.detach().clone() for p in model.parameters()]
        optimiser = Optimiser(model, Rates(peak=1e-2))
        for step in range(8):
            optimiser.flat.copy_(torch.randn(optimiser.flat.shape, device="cuda"))
            optimiser.step(1.0 - step / 8, optimiser.reduce())
        assert (optimiser._graph is not None) == (plain == 3)
        found.append([p.detach().clone() for p in model.parameters()])
    for start, captured, wanted in zip(before, *found, strict=True):
        torch.testing.assert_close(captured, wanted)
        # Equal, too, if the rate reached neither.
        assert (captured != start).any()


def test_a_loaded_optimiser_goes_on_as_the_one_that_was_saved():
    torch.manual_seed(3)
    model = torch.nn.Sequential(torch.nn.Linear(64, 96), torch.nn.LayerNorm(96)).cuda()
    again = copy.deepcopy(model)
    first, second = Optimiser(model, Rates(peak=1e-2)), Optimiser(again, Rates(peak=1e-2))
    for step in range(12):
        if step == 6:
            again.load_state_dict(model.state_dict())
            second.load({name: tensor.clone() for name, tensor in first.state().items()})
        grads = torch.randn(first.flat.shape, device="cuda")
        for optimiser in (first, second)[: 1 if step < 6 else 2]:
            optimiser.flat.copy_(grads)
            optimiser.step(1.0 - step / 12, optimiser.reduce())
    for one, other in zip(model.parameters(), again.parameters(), strict=True):
        torch.testing.assert_close(one, other)
