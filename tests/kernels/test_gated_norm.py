"""Norm and gate: Triton against the specification."""

import pytest
import torch

from ocria.kernels.gated_norm import reference

triton_impl = pytest.importorskip("ocria.kernels.gated_norm.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@pytest.mark.parametrize("rows", [1, 5])
def test_equals_specification(rows: int) -> None:
    generator = torch.Generator().manual_seed(rows)
    x, z = (torch.randn(rows, 2, 96, generator=generator).bfloat16().to(DEVICE) for _ in range(2))
    gain = (1 + 0.1 * torch.randn(32, generator=generator)).to(DEVICE)
    # The gate's rows lie apart, as a slice of a wider product's output does.
    x, z = x[:, 0].contiguous(), z.flatten(1)[:, 96:]
    found = triton_impl.gated_norm(x, z, gain, 1e-6)
    expected = reference.gated_norm(x, z, gain, 1e-6)
    torch.testing.assert_close(found.float(), expected.float(), rtol=1e-2, atol=1e-5)
