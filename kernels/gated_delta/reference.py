"""Gated delta rule, written from the formula: the specification of every faster path.

Shape legend
    C  rows of a block (`FOLD_BLOCK`), G blocks, H key heads, R value heads (R >= H)
    K  key width, V value width, T rows of a window, X convolution channels, U = 2 C

One head, one row, state S [K, V]:
    S <- e^g S;  d = beta (v - k S);  S <- S + k^T d;  o = q S
with k and q normalised to unit length and q scaled by K**-0.5. `d` is the corrected value; once
it is known the update is an ordinary decayed sum, so a block of C rows needs S only at its start
and writes it only at its end (Yang et al., "Gated Delta Networks", 2024, section 3; the block
form with a frozen state is the idea of ReplaySSM).

Row p of a block reads rows <= p of it and nothing else, by substitution or with exact zeros as the
other terms, so a row has the same bits whatever follows it.
"""

import functools

import torch
import torch.nn.functional as F
from torch import Tensor

L2_EPS = 1e-6


def causal_conv_silu(window_TX: Tensor, weight_XW: Tensor) -> Tensor:
    """Depthwise causal convolution, then SiLU.

    Args:
        window_TX: [W - 1 + T, X], the W - 1 rows before the first one included.
        weight_XW: [X, W]; the last tap multiplies the current row.

    Returns:
        [T, X] in the dtype of the window; taps are summed in at least float32.
    """
    accumulate = torch.promote_types(window_TX.dtype, torch.float32)
    width = weight_XW.shape[1]
    seen_TWX = window_TX.to(accumulate).unfold(0, width, 1).mT
    terms_TWX = seen_TWX * weight_XW.to(accumulate).mT
    total_TX = functools.reduce(torch.add, terms_TWX.unbind(1))
    return F.silu(total_TX).to(window_TX.dtype)


def decay_and_beta(
    a_TR: Tensor, b_TR: Tensor, A_log_R: Tensor, dt_bias_R: Tensor
) -> tuple[Tensor, Tensor]:
    """Log decay g = -exp(A_log) softplus(a + dt_bias) <= 0 and beta = sigmoid(b), [T, R] each.

    Both stay in the dtype of `A_log`, at least float32: a rounded beta drifts visibly.
    """
    dtype = A_log_R.dtype
    g_TR = -A_log_R.exp() * F.softplus(a_TR.to(dtype) + dt_bias_R)
    return g_TR, b_TR.to(dtype).sigmoid()


def l2_normalise(x: Tensor) -> Tensor:
    """x / sqrt(sum x^2 + eps) over the last dimension."""
    return x * torch.rsqrt((x * x).sum(-1, keepdim=True) + L2_EPS)


def delta_blocks(
    state_RKV: Tensor,
    q_GCHK: Tensor,
    k_GCHK: Tensor,
    v_GCRV: Tensor,
    g_GCR: Tensor,
    beta_GCR: Tensor,
    *,
    num_states: int | None = None,
) -> tuple[Tensor, list[Tensor]]:
    """Runs G whole blocks from the state before the first of them.

    Args:
        state_RKV: [R, K, V] in the accumulation dtype (float32 or float64).
        q_GCHK: [G, C, H, K] after the convolution, not normalised; zeros where no row is.
        k_GCHK: likewise.
        v_GCRV: [G, C, R, V].
        g_GCR: [G, C, R] log decay; zero where no row is.
        beta_GCR: [G, C, R]; zero where no row is.
        num_states: how many end states are wanted; the last block's costs a product that a
            window does not need. None means all.

    Returns:
        outputs [G, C, R, V] and the states [R, K, V] after the first `num_states` blocks.
    """
    dtype, repeat = state_RKV.dtype, v_GCRV.shape[2] // k_GCHK.shape[2]
    num_blocks, num_rows = k_GCHK.shape[:2]
    num_states = num_blocks if num_states is None else num_states
    # A head's keys, then its queries: both are multiplied by the same keys and state.
    kq_GH2CK = torch.stack([k_GCHK.transpose(1, 2), q_GCHK.transpose(1, 2)], 2)
    kq_GH2CK = l2_normalise(kq_GH2CK.to(dtype))
    kq_GH2CK[:, :, 1] *= k_GCHK.shape[-1] ** -0.5
    kq_GRUK = kq_GH2CK.flatten(2, 3)
    if repeat > 1:
        kq_GRUK = kq_GRUK.repeat_interleave(repeat, 1)
    k_GRCK = kq_GRUK[:, :, :num_rows]
    v_GRCV = v_GCRV.to(dtype).transpose(1, 2)
    beta_GRC1 = beta_GCR.to(dtype).transpose(1, 2)[..., None]
    G_GRC1 = g_GCR.to(dtype).transpose(1, 2).cumsum(-1)[..., None]

    # Above the diagonal the exponent is positive and may overflow; `tril` drops it unseen.
    decay_GRCC = (G_GRC1 - G_GRC1.mT).exp().tril()
    kk_GRCC, qk_GRCC = (kq_GRUK @ k_GRCK.mT).split(num_rows, 2)
    # The diagonal is never read: the solve takes it as ones.
    A_GRCC = kk_GRCC * decay_GRCC * beta_GRC1
    qk_GRCC = qk_GRCC * decay_GRCC
    from_start_GRC1 = G_GRC1.exp()
    to_end_GRC1 = (G_GRC1[..., -1:, :] - G_GRC1).exp()

    outputs, states = [], []
    for i in range(num_blocks):
        kS_RCV, qS_RCV = (kq_GRUK[i] @ state_RKV).split(num_rows, 1)
        residual_RCV = beta_GRC1[i] * (v_GRCV[i] - from_start_GRC1[i] * kS_RCV)
        d_RCV = torch.linalg.solve_triangular(
            A_GRCC[i], residual_RCV, upper=False, unitriangular=True
        )
        outputs.append(from_start_GRC1[i] * qS_RCV + qk_GRCC[i] @ d_RCV)
        if i < num_states:
            carried_RKV = from_start_GRC1[i, :, -1:] * state_RKV
            state_RKV = carried_RKV + (k_GRCK[i] * to_end_GRC1[i]).mT @ d_RCV
            states.append(state_RKV)
    out_GRCV = torch.stack(outputs) if num_blocks > 1 else outputs[0][None]
    return out_GRCV.transpose(1, 2), states


def delta_rows(
    state_RKV: Tensor, q_THK: Tensor, k_THK: Tensor, v_TRV: Tensor, g_TR: Tensor, beta_TR: Tensor
) -> tuple[Tensor, Tensor]:
    """The recurrence row by row: the oracle of `delta_blocks`.

    Returns:
        outputs [T, R, V] and the state after the last row [R, K, V].
    """
    dtype, repeat = state_RKV.dtype, v_TRV.shape[1] // k_THK.shape[1]
    q_TRK = l2_normalise(q_THK.to(dtype)).repeat_interleave(repeat, 1) * k_THK.shape[-1] ** -0.5
    k_TRK = l2_normalise(k_THK.to(dtype)).repeat_interleave(repeat, 1)
    rows = zip(q_TRK, k_TRK, v_TRV.to(dtype), g_TR, beta_TR, strict=True)
    outputs = []
    for q_RK, k_RK, v_RV, g_R, beta_R in rows:
        state_RKV = state_RKV * g_R.to(dtype).exp()[:, None, None]
        error_RV = v_RV - torch.einsum("rk,rkv->rv", k_RK, state_RKV)
        d_RV = beta_R.to(dtype)[:, None] * error_RV
        state_RKV = state_RKV + k_RK[:, :, None] * d_RV[:, None, :]
        outputs.append(torch.einsum("rk,rkv->rv", q_RK, state_RKV))
    return torch.stack(outputs), state_RKV
