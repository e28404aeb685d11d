"""A row's elementwise results do not depend on its company, whatever the number of threads."""

from collections.abc import Iterator

import pytest
import torch
from torch.nn.functional import silu

from ocria.kernels.gated_delta import causal_conv_silu
from ocria.models.layers.rowwise import by_rows


@pytest.fixture(params=[1, 3, 5])
def threads(request: pytest.FixtureRequest) -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield
    torch.set_num_threads(before)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=["float32", "bfloat16"])
@pytest.mark.usefixtures("threads")
def test_silu(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(128, 2560, generator=generator).to(dtype)
    for width in (1280, 2560):
        alone = torch.cat([silu(row[None, :width]) for row in x])
        for num_rows in (1, 7, 29, 70, 73, 128):
            together = by_rows(silu, x[:num_rows, :width])
            assert torch.equal(together, alone[:num_rows]), (width, num_rows)


@pytest.mark.usefixtures("threads")
def test_a_convolution_looks_back_over_slabs() -> None:
    generator = torch.Generator().manual_seed(0)
    x, taps = (torch.randn(*shape, generator=generator) for shape in ((103, 1536), (1536, 4)))
    alone = torch.cat([causal_conv_silu(x[row : row + 4], taps) for row in range(100)])
    assert torch.equal(by_rows(lambda part: causal_conv_silu(part, taps), x, 3), alone)
