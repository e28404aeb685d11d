"""The block form of the gated delta rule against the recurrence, row by row."""

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from ocria.kernels.gated_delta import causal_conv_silu, decay_and_beta, delta_blocks
from ocria.kernels.gated_delta.reference import delta_rows

BLOCK = 32


def make_rows(
    num_rows: int, heads: tuple[int, int], width: int, seed: int, dtype: torch.dtype
) -> tuple[Tensor, ...]:
    """q, k [T, H, K], v [T, R, K], g, beta [T, R], state [R, K, K]."""
    generator = torch.Generator().manual_seed(seed)

    def normal(*shape: int) -> Tensor:
        return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)

    key_heads, value_heads = heads
    g = -normal(num_rows, value_heads).exp() * 0.1
    beta = normal(num_rows, value_heads).sigmoid()
    return (
        normal(num_rows, key_heads, width),
        normal(num_rows, key_heads, width),
        normal(num_rows, value_heads, width),
        g,
        beta,
        normal(value_heads, width, width),
    )


def in_blocks(rows: Tensor) -> Tensor:
    """[T, ...] -> [G, C, ...], zeros where no row is."""
    missing = -rows.shape[0] % BLOCK
    padded = torch.cat([rows, rows.new_zeros(missing, *rows.shape[1:])])
    return padded.unflatten(0, (-1, BLOCK))


@pytest.mark.parametrize("heads", [(1, 1), (2, 2), (2, 4), (1, 3)], ids=lambda h: f"H{h[0]}R{h[1]}")
@pytest.mark.parametrize("num_rows", [1, 7, 31, 32, 33, 63, 100])
def test_blocks_equal_rows(num_rows: int, heads: tuple[int, int]) -> None:
    q, k, v, g, beta, state = make_rows(num_rows, heads, 16, num_rows, torch.float64)
    expected, expected_state = delta_rows(state, q, k, v, g, beta)
    out, states = delta_blocks(state, *(in_blocks(x) for x in (q, k, v, g, beta)))
    torch.testing.assert_close(out.flatten(0, 1)[:num_rows], expected, rtol=0, atol=1e-11)
    # Empty rows change nothing: no decay, no update.
    torch.testing.assert_close(states[-1], expected_state, rtol=0, atol=1e-11)


def test_float32_stays_close_to_float64_over_a_long_page() -> None:
    rows = make_rows(2048, (2, 2), 32, 5, torch.float64)
    *inputs, state = rows
    expected, expected_state = delta_rows(state, *inputs)
    out, states = delta_blocks(state.float(), *(in_blocks(x.float()) for x in inputs))
    assert (out.flatten(0, 1) - expected).norm() / expected.norm() < 1e-5
    assert (states[-1] - expected_state).norm() / expected_state.norm() < 1e-5


def test_nearly_identical_keys_do_not_overflow() -> None:
    # Blank paper: neighbouring keys are alike and beta is near one.
    q, k, v, _, _, state = make_rows(BLOCK, (1, 1), 16, 3, torch.float32)
    k = k[:1].expand_as(k) + 1e-4 * k
    g, beta = torch.full((BLOCK, 1), -1e-4), torch.full((BLOCK, 1), 0.999)
    out, states = delta_blocks(state, *(x[None] for x in (q, k, v, g, beta)))
    doubles = (x.double() for x in (q, k, v, g, beta))
    expected, _ = delta_rows(state.double(), *doubles)
    assert torch.isfinite(out).all() and torch.isfinite(states[0]).all()
    assert (out[0] - expected).norm() / expected.norm() < 1e-4


def test_a_row_has_the_same_bits_whatever_follows() -> None:
    q, k, v, g, beta, state = make_rows(BLOCK, (2, 4), 16, 11, torch.float32)
    whole, _ = delta_blocks(state, *(x[None] for x in (q, k, v, g, beta)))
    for end in (1, 5, 16, 31):
        cut = [
            torch.where((torch.arange(BLOCK) < end).view(-1, *[1] * (x.dim() - 1)), x, 0)
            for x in (q, k, v, g, beta)
        ]
        part, _ = delta_blocks(state, *(x[None] for x in cut))
        assert torch.equal(part[0, :end], whole[0, :end]), f"rows before {end} changed"


def test_states_that_nobody_wants_are_left_out() -> None:
    *inputs, state = make_rows(3 * BLOCK, (1, 2), 16, 8, torch.float32)
    blocks = [in_blocks(x) for x in inputs]
    out, states = delta_blocks(state, *blocks)
    same_out, first = delta_blocks(state, *blocks, num_states=2)
    assert (len(states), len(first)) == (3, 2)
    assert torch.equal(states[1], first[1]) and torch.equal(out[:2], same_out[:2])


def test_convolution_equals_torch() -> None:
    generator = torch.Generator().manual_seed(0)
    window = torch.randn(3 + 9, 6, generator=generator)
    weight = torch.randn(6, 4, generator=generator)
    expected = F.silu(F.conv1d(window.T[None], weight[:, None], groups=6))[0].T
    torch.testing.assert_close(causal_conv_silu(window, weight), expected)


def test_gates() -> None:
    a, b = torch.tensor([[0.5, -2.0]]), torch.tensor([[0.0, 3.0]])
    A_log, dt_bias = torch.tensor([0.1, 1.0]), torch.tensor([-1.0, 0.3])
    g, beta = decay_and_beta(a.bfloat16(), b.bfloat16(), A_log, dt_bias)
    assert g.dtype == beta.dtype == torch.float32
    torch.testing.assert_close(g, -A_log.exp() * torch.log1p((a + dt_bias).exp()))
    torch.testing.assert_close(beta, 1 / (1 + (-b).exp()))
