"""The delta rule's states from chunk to chunk, and the same run backwards: one launch each.

Shapes: G sequences and heads, N chunks, D key width, V value width.
"""

from __future__ import annotations

import torch
from torch import Tensor

try:
    import triton
    import triton.language as tl
except ImportError:  # Made for Linux alone; where it is missing there is no such device either.
    triton = None

# Columns of a state that one program carries: a column needs no other.
_COLUMNS = 64


if triton is not None:

    @triton.jit
    def _scan(
        steps,
        inputs,
        out,
        chunks,
        DEPTH: tl.constexpr,
        WIDTH: tl.constexpr,
        COLUMNS: tl.constexpr,
        REVERSED: tl.constexpr,
        PRECISION: tl.constexpr,
    ):
        """Carries columns of one sequence's state through its chunks, in float32.

        Forwards: out[0] = 0, out[n + 1] = steps[n] out[n] + inputs[n]. Reversed:
        out[N] = inputs[N], out[n] = steps[n]^T out[n + 1] + inputs[n].
        """
        group = tl.program_id(0).to(tl.int64)
        rows = tl.arange(0, DEPTH)
        columns = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)
        cells = rows[:, None] * WIDTH + columns[None, :]
        square = rows[:, None] * DEPTH + rows[None, :]
        state_size: tl.constexpr = DEPTH * WIDTH
        steps += group * chunks * DEPTH * DEPTH
        out += group * (chunks + 1) * state_size
        if REVERSED:
            inputs += group * (chunks + 1) * state_size
            state = tl.load(inputs + chunks * state_size + cells)
            tl.store(out + chunks * state_size + cells, state)
        else:
            inputs += group * chunks * state_size
            state = tl.zeros([DEPTH, COLUMNS], tl.float32)
            tl.store(out + cells, state)
        for index in range(chunks):
            at = chunks - 1 - index if REVERSED else index
            step = tl.load(steps + at * DEPTH * DEPTH + square)
            added = tl.load(inputs + at * state_size + cells)
            if REVERSED:
                state = tl.dot(tl.trans(step), state, added, input_precision=PRECISION)
                tl.store(out + at * state_size + cells, state)
            else:
                state = tl.dot(step, state, added, input_precision=PRECISION)
                tl.store(out + (at + 1) * state_size + cells, state)


def _launch(steps: Tensor, inputs: Tensor, out: Tensor, *, is_reversed: bool) -> None:
    groups, chunks, depth, _ = steps.shape
    width = inputs.shape[-1]
    # As torch's own products go: TF32 only where the run has asked for it.
    precision = "ieee" if torch.get_float32_matmul_precision() == "highest" else "tf32"
    _scan[(groups, width // _COLUMNS)](
        steps.contiguous(), inputs.contiguous(), out, chunks, DEPTH=depth, WIDTH=width,
        COLUMNS=_COLUMNS, REVERSED=is_reversed, PRECISION=precision, num_warps=8, num_stages=2,
    )  # fmt: skip


@torch.library.custom_op("ocria_recipes::scan_states", mutates_args=())
def scan_states(steps: Tensor, inputs: Tensor) -> Tensor:
    """States before each chunk, and the last [G, N+1, D, V].

    steps [G, N, D, D], inputs [G, N, D, V]; float32.
    """
    groups, chunks, _, width = inputs.shape
    states = inputs.new_zeros(groups, chunks + 1, inputs.shape[2], width)
    if inputs.is_cuda:
        _launch(steps, inputs, states, is_reversed=False)
        return states
    for n in range(chunks):
        torch.baddbmm(inputs[:, n], steps[:, n], states[:, n], out=states[:, n + 1])
    return states


@scan_states.register_fake
def _(steps: Tensor, inputs: Tensor) -> Tensor:
    groups, chunks, depth, width = inputs.shape
    return inputs.new_empty(groups, chunks + 1, depth, width)


@torch.library.custom_op("ocria_recipes::scan_grads", mutates_args=())
def scan_grads(steps: Tensor, grads: Tensor) -> Tensor:
    """The scan run backwards: total gradient of every state from its local one [G, N+1, D, V]."""
    total = torch.empty_like(grads, memory_format=torch.contiguous_format)
    chunks = steps.shape[1]
    if grads.is_cuda:
        _launch(steps, grads, total, is_reversed=True)
        return total
    total[:, chunks] = grads[:, chunks]
    for n in range(chunks - 1, -1, -1):
        torch.baddbmm(grads[:, n], steps[:, n].mT, total[:, n + 1], out=total[:, n])
    return total


@scan_grads.register_fake
def _(steps: Tensor, grads: Tensor) -> Tensor:
    return torch.empty_like(grads, memory_format=torch.contiguous_format)


def _save(ctx, inputs, output) -> None:  # type: ignore[no-untyped-def]
    ctx.save_for_backward(inputs[0], output)


def _backward(ctx, grads: Tensor) -> tuple[Tensor, Tensor]:  # type: ignore[no-untyped-def]
    steps, states = ctx.saved_tensors
    total = scan_grads(steps, grads)[:, 1:]
    return total @ states[:, :-1].mT, total


scan_states.register_autograd(_backward, setup_context=_save)
