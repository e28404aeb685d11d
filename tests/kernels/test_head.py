"""Best tokens: Triton against the specification, ties and forbidden ids included."""

import pytest
import torch

from ocria.kernels.head import reference
from ocria.kernels.small_gemm import Norm, PackedWeight, Tiling, WeightCodes, pack

triton_impl = pytest.importorskip("ocria.kernels.head.triton_impl")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
# Where the ids that say the same are larger than all others.
LEAD = 7


def make_weight(vocabulary: int, hidden: int) -> PackedWeight:
    generator = torch.Generator().manual_seed(0)
    weight = torch.randn(vocabulary, hidden, generator=generator).bfloat16()
    # Ids 5, 40 and 41 say the same: a tie in one band and across bands.
    weight[5, LEAD] = 8.0
    weight[40] = weight[41] = weight[5]
    codes = WeightCodes("bf16", weight.to(DEVICE), torch.ones(vocabulary, device=DEVICE))
    return pack([codes], tiling=Tiling(block_n=16, block_k=64, num_warps=1))


def test_equals_specification_and_the_smallest_of_equals_wins() -> None:
    weight = make_weight(85, 48)
    generator = torch.Generator().manual_seed(1)
    x = torch.randn(19, 48, generator=generator)
    # One number, so that equal rows give equal sums however a library adds.
    x[3] = x[18] = torch.eye(48)[LEAD]
    x = x.bfloat16().to(DEVICE)
    norm = Norm(torch.full((48,), 1.5, device=DEVICE), 1e-6)
    forbidden = torch.zeros(85, dtype=torch.uint8, device=DEVICE)
    for chosen, banned in ((5, ()), (40, (5,)), (41, (5, 40))):
        forbidden[list(banned)] = 1
        expected = reference.best_tokens(x, weight, norm=norm, forbidden_V=forbidden)
        found = triton_impl.best_tokens(x, weight, norm=norm, forbidden_V=forbidden)
        assert torch.equal(found.token_M, expected.token_M)
        torch.testing.assert_close(found.logprob_M, expected.logprob_M, rtol=1e-4, atol=1e-5)
        assert found.token_M[[3, 18]].tolist() == [chosen, chosen]


def test_codes_that_stream_are_refused() -> None:
    tiling = Tiling(block_n=16, block_k=64, num_warps=1, streams=True)
    codes = torch.zeros(40, 64, device=DEVICE).to(torch.float8_e4m3fn)
    weight = pack([WeightCodes("fp8", codes, torch.ones(40, device=DEVICE))], tiling=tiling)
    x = torch.zeros(1, 64, device=DEVICE).bfloat16()
    forbidden = torch.zeros(40, dtype=torch.uint8, device=DEVICE)
    with pytest.raises(AssertionError, match="does not stream"):
        triton_impl.best_tokens(x, weight, norm=None, forbidden_V=forbidden)
