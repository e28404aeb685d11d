"""Outputs against float64 and float32: products in the order of fragments, the head, mixers, the
drafter's kernels, the model. And a delta rule that writes the state at every row, to be compared.
"""

import statistics
from collections import defaultdict

import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from launches import ROWS, Mixers, Product, block_start, fill, products, wide_products
from rows import Reader, Script
from subject import Figures, Subject, text_of
from torch import Tensor

from ocria.bench.random_windows import random_windows
from ocria.engine.graphs import GraphRunner
from ocria.engine.state import StatePool
from ocria.kernels import sequence_table as columns_of
from ocria.kernels.block_attention import attention_pass
from ocria.kernels.block_attention import window as attention_window
from ocria.kernels.draft_block import (
    DraftHeads,
    DraftSight,
    draft_attention,
    mixed_rows,
    write_context,
)
from ocria.kernels.draft_block import (
    reference as draft_reference,
)
from ocria.kernels.draft_choice import Codebooks, best_candidates, best_path
from ocria.kernels.draft_choice import reference as choice_reference
from ocria.kernels.gated_delta import DeltaWeights, delta_fold, delta_pass
from ocria.kernels.gated_delta import window as delta_window
from ocria.kernels.gated_delta.triton_append import append_rows
from ocria.kernels.gated_delta.triton_parts import memory_at
from ocria.kernels.gated_norm import gated_norm
from ocria.kernels.gated_norm import reference as norm_reference
from ocria.kernels.sequence_table import (
    RING,
    SequenceTable,
    SlotMemory,
    sequence_table,
)
from ocria.kernels.small_gemm import Norm, unpack
from ocria.models.base import FOLD_BLOCK, KEY_BLOCK, Window
from ocria.models.qwen3_5.fused import place_of
from ocria.models.qwen3_5.model import Qwen35
from ocria.models.registry import load

_ROWS = 20
_WINDOW = 20


@torch.inference_mode()
def check(subject: Subject, figures: Figures) -> None:
    """Says errors and counts."""
    check_products(subject, figures)
    check_head(subject, figures)
    check_mixers(subject, figures)
    check_model(subject, figures)
    check_drafter(subject, figures)


def check_products(subject: Subject, figures: Figures) -> None:
    """Every product of the shipped model, and wide ones with split sums, against float64."""
    errors: dict[str, list[float]] = defaultdict(list)
    flips: dict[str, list[float]] = defaultdict(list)
    num_unequal = 0
    found = [*products(subject), *wide_products(subject)]
    for number, product in enumerate(found):
        weight = product.weight
        x = subject.random(_ROWS, weight.num_in, seed=number)
        residual = None
        if product.has_residual:
            residual = subject.random(_ROWS, weight.num_out, seed=100 + number)
        y, expected = product(x, residual), exact(product, x, residual)
        errors[product.name].append(float((y.double() - expected).norm() / expected.norm()))
        flips[product.name].append(float((y != expected.to(y.dtype)).double().mean()))
        for rows in (1, 16):
            few = product(x[:rows], None if residual is None else residual[:rows])
            num_unequal += int((few != y[:rows]).any(1).sum())
    for name, values in errors.items():
        figures.say(
            f"error of {name}",
            f"{max(values):.2e} of {len(values)}; "
            f"{100 * statistics.fmean(flips[name]):.2f} % not the rounded float64 result",
        )
    total = 17 * len(found)
    figures.say("rows of 1- and 16-row products other than of 20", f"{num_unequal} of {total}")


def exact(product: Product, x: Tensor, residual: Tensor | None) -> Tensor:
    """The product in float64 after the one rounding of x * gain."""
    weight, norm = unpack(product.weight).double(), product.norm
    if norm is None:
        y = x.double() @ weight.mT
    else:
        scaled = (x.float() * norm.gain_K).to(x.dtype).double()
        y = scaled @ weight.mT
        y = y * torch.rsqrt(x.double().square().mean(-1, keepdim=True) + norm.eps)
    if product.weight.paired:
        y = F.silu(y[:, 0::2]) * y[:, 1::2]
    return y if residual is None else y + residual.double()


def check_head(subject: Subject, figures: Figures) -> None:
    """The head kernel of captured passes against their logits, and of its own against float64."""
    fused, forbidden = subject.fused, subject.forbidden_V.bool()
    x_MD = subject.random(_ROWS, subject.target.hidden_size, seed=7)
    head = Product("head", fused._head, fused._norm, False, torch.float32)
    logits = exact(head, x_MD, None).masked_fill(forbidden, -torch.inf)
    found = fused.best(x_MD, subject.forbidden_V)
    _say_best(figures, "head of random rows against float64", *found, logits)

    runner = GraphRunner(subject.target, subject.forbidden_ids)
    tokens, logprobs, rows, unequal = [], [], [], 0

    def verify(passed):  # type: ignore[no-untyped-def]
        nonlocal unequal
        output = runner.verify(passed)
        tokens.append(output.best.token_T.clone())
        logprobs.append(output.best.logprob_T.clone())
        rows.append(output.logits_TV.clone())
        alone = runner.verify(passed, with_logits=False).best
        unequal += int((alone.token_T != tokens[-1]).sum())
        unequal += int((alone.logprob_T != logprobs[-1]).sum())
        return output._replace(logits_TV=rows[-1])

    text = text_of(subject.size.num_rows, seed=8)
    Reader(subject).read(verify, [Script(text, random_windows(len(text), 5))])
    logits = torch.cat(rows).double().masked_fill(forbidden, -torch.inf)
    name = "head of captured passes against their logits"
    _say_best(figures, name, torch.cat(tokens), torch.cat(logprobs), logits)
    figures.say("best tokens with logits other than without", f"{unequal} of {len(logits)}")


def _say_best(
    figures: Figures, name: str, token_M: Tensor, logprob_M: Tensor, logits_MV: Tensor
) -> None:
    expected_M = logits_MV.log_softmax(-1).amax(-1)
    worst = float((logprob_M.double() - expected_M).abs().max())
    same = int((token_M == logits_MV.argmax(-1)).sum())
    figures.say(name, f"{same} of {len(token_M)} tokens equal, log probability {worst:.1e} off")


def relative_error(found: Tensor, expected: Tensor) -> float:
    """Length of the difference over the length of `expected`."""
    return float((found.double() - expected.double()).norm() / expected.double().norm())


def check_mixers(subject: Subject, figures: Figures) -> None:
    """Delta rule, fold, attention and gated norm over two sequences, against float64."""
    mixers = Mixers(subject, subject.size.position)
    pool = StatePool(subject.target, num_slots=2, max_positions=subject.size.position + 512)
    states = [pool.acquire()[1] for _ in range(2)]
    for state, length in zip(states, (subject.size.position, 37), strict=True):
        fill(state, length)
    for name, offset, rows in (("1 row", 4, 1), ("16 rows over two blocks", FOLD_BLOCK - 8, ROWS)):
        places = [place_of(state, block_start(state) + offset, rows) for state in states]
        wide = [place._replace(memory=_wide_states(place.memory)) for place in places]
        qkvz = subject.random(2 * rows, mixers.qkvz_MZ.shape[1], seed=11)
        ba = subject.random(2 * rows, mixers.ba_MR.shape[1], seed=12).float()
        weights = mixers.delta
        exact_weights = weights._replace(
            A_log_R=weights.A_log_R.double(), dt_bias_R=weights.dt_bias_R.double()
        )
        expected = delta_window.delta_pass(
            sequence_table(wide), 0, qkvz, ba.double(), exact_weights, prefill=False
        )
        found = delta_pass(sequence_table(places), 0, qkvz, ba, weights, prefill=False)
        figures.say(f"error of delta mixer, {name}", f"{relative_error(found, expected):.2e}")
        qkv = subject.random(2 * rows, mixers.qkv_ME.shape[1], seed=13)
        far = [
            place._replace(start=state.length) for place, state in zip(places, states, strict=True)
        ]
        all_wide = [place._replace(memory=SlotMemory(*(t.double() for t in place.memory)))
                    for place in far]  # fmt: skip
        angles = subject.fused.text_angles
        expected = attention_window.attention_pass(
            sequence_table(all_wide), 0, qkv.double(), angles, mixers.attention, KEY_BLOCK
        )
        found = attention_pass(sequence_table(far), 0, qkv, angles, mixers.attention, KEY_BLOCK)
        figures.say(f"error of attention, {name}", f"{relative_error(found, expected):.2e}")
    folded = [place_of(s, block_start(s), 0, kept=FOLD_BLOCK) for s in states]
    wide = [place._replace(memory=_wide_states(place.memory)) for place in folded]
    delta_window.delta_fold(sequence_table(wide), mixers.delta)
    delta_fold(sequence_table(folded), mixers.delta)
    error = max(
        relative_error(place.memory.checkpoint_LRKW, exactly.memory.checkpoint_LRKW)
        for place, exactly in zip(folded, wide, strict=True)
    )
    figures.say("error of the fold", f"{error:.2e}")
    gain = torch.rand(mixers.delta.value_dim, device=subject.device) + 0.5
    z = mixers.qkvz_MZ[:, mixers.delta.channels :]
    x = z.flip(0).contiguous()
    expected = norm_reference.gated_norm(x.double(), z.double(), gain, 1e-6)
    error = relative_error(gated_norm(x, z, gain, 1e-6), expected)
    figures.say("error of gated norm", f"{error:.2e}")


def _wide_states(memory: SlotMemory) -> SlotMemory:
    """A copy with gates and states in float64; rows in the ring stay what they were rounded to."""
    wide = ("decay_LER", "beta_LER", "checkpoint_LRKW")
    return SlotMemory(
        **{
            name: tensor.double() if name in wide else tensor.clone()
            for name, tensor in memory._asdict().items()
        }
    )


def check_drafter(subject: Subject, figures: Figures) -> None:
    """Kernels of the drafter against float64: rows mixed, context, attention, choice."""
    device, hidden, length = subject.device, subject.target.hidden_size, subject.size.position
    heads = DraftHeads(
        q_gain_D=torch.rand(64, device=device) + 0.5,
        k_gain_D=torch.rand(64, device=device) + 0.5,
        cos_SF=torch.rand(4096, 32, device=device) - 0.5,
        sin_SF=torch.rand(4096, 32, device=device) - 0.5,
        num_heads=4,
        num_kv_heads=2,
        eps=1e-6,
    )
    x, residual = subject.random(ROWS, hidden, seed=21), subject.random(ROWS, hidden, seed=22)
    made = subject.random(ROWS, 2 * 2 * (hidden // 32), seed=23).float()
    base = torch.rand(2, hidden, device=device)
    norm = Norm(torch.rand(hidden, device=device) + 0.5, 1e-6)
    errors = {}
    for name, given in (("rows mixed", {"norm": norm}), ("and added", {"residual_BH": residual})):
        exactly = {key: v.double() if torch.is_tensor(v) else v for key, v in given.items()}
        expected = draft_reference.mixed_rows(x.double(), made, base, 0, **exactly)
        errors[name] = relative_error(mixed_rows(x, made, base, 0, **given), expected)
    capacity = -(-(length + 64) // KEY_BLOCK) * KEY_BLOCK
    kept = subject.random(2, 1, 2, capacity, 64, seed=24)
    rows = subject.random(ROWS, 1 * 2 * 2 * 64, seed=25)
    places = length + torch.arange(ROWS, device=device)
    exactly = kept.double()
    draft_reference.write_context(rows.double(), exactly, places, heads.k_gain_D[None], heads)
    write_context(rows, kept, places, heads.k_gain_D[None], heads)
    errors["context"] = relative_error(kept[:, :, :, places], exactly[:, :, :, places])
    numbers = torch.tensor([length, ROWS, 20], device=device)
    for name, sizes in (("attention", (4, 2, 64)), ("attention of a public size", (32, 8, 128))):
        errors[name] = _draft_attention_error(subject, numbers, *sizes)
    said = ", ".join(f"{name} {error:.1e}" for name, error in errors.items())
    figures.say("error of the drafter's kernels", said)
    vocab, rank = subject.target.vocab_size, 24
    logits = subject.random(15, vocab, seed=27).float()
    ids, scores = best_candidates(logits, subject.forbidden_V, 16)
    wanted_ids, wanted_scores = choice_reference.best_candidates(logits, subject.forbidden_V, 16)
    books = Codebooks(
        subject.random(vocab, rank, seed=28), subject.random(vocab, rank, seed=29), 1.0, 0.0
    )
    gate, anchor = subject.random(15, rank, seed=30).float(), numbers[2:]
    path = best_path(ids, scores, gate, books, anchor)
    wanted = choice_reference.best_path(wanted_ids, wanted_scores, gate, books, anchor)
    figures.say(
        "the drafter's choice",
        f"candidates {'equal' if torch.equal(ids, wanted_ids) else 'OTHER'}, scores "
        f"{'equal' if torch.equal(scores, wanted_scores) else 'OTHER'}, path "
        f"{int((path == wanted).sum())} of {len(path)}",
    )


def _draft_attention_error(
    subject: Subject, numbers: Tensor, num_heads: int, num_kv_heads: int, width: int
) -> float:
    device, length = subject.device, int(numbers[:2].sum())
    capacity = -(-(length + 64) // KEY_BLOCK) * KEY_BLOCK
    gains = torch.rand(2, width, device=device) + 0.5
    angles = torch.rand(2, 4096, width // 2, device=device) - 0.5
    heads = DraftHeads(*gains, *angles, num_heads, num_kv_heads, 1e-6)
    kept = subject.random(2, num_kv_heads, capacity, width, seed=24)
    qkv = subject.random(ROWS, (num_heads + 2 * num_kv_heads) * width, seed=26)
    sight = DraftSight(0, False)
    found = draft_attention(qkv, kept, numbers, heads, sight)
    expected = draft_reference.draft_attention(qkv.double(), kept.double(), numbers, heads, sight)
    return relative_error(found, expected)


def check_model(subject: Subject, figures: Figures) -> None:
    """Logits of fused passes against the plain modules in float32 with the same weights."""
    wide = load(subject.model.folder, device=subject.device, dtype=torch.float32).target
    assert isinstance(wide, Qwen35) and wide.fused is None
    text = text_of(min(60, subject.size.num_rows), seed=6)
    cuts = [(1, 1)] * len(text)
    found = Reader(subject).read(subject.target.verify, [Script(text, cuts)])[0].rows
    mine, subject.model.target.fused = subject.target.fused, None
    try:
        plain = Reader(subject).read(subject.target.verify, [Script(text, cuts)])[0].rows
    finally:
        subject.model.target.fused = mine
    expected = _wide_rows(subject, wide, text)
    for name, rows in (("fused", found), ("plain modules", plain)):
        error = float((rows.double() - expected).norm() / expected.norm())
        same = int((rows.argmax(-1) == expected.argmax(-1)).sum())
        figures.say(
            f"logits, {name}, against float32",
            f"{error:.2e} off, best token the same in {same} of {len(text)} rows",
        )


def _wide_rows(subject: Subject, wide: Qwen35, text: list[int]) -> Tensor:
    prompt, image = subject.page()
    longest = len(prompt.token_ids) + len(text) + 64
    pool = StatePool(wide, num_slots=1, max_positions=longest)
    _, state = pool.acquire()
    # Both decoders get the same image tokens: the vision tower is not under check.
    pool.read(state, prompt, subject.target.encode_image(image).float())
    rows = []
    for first in range(0, len(text), _WINDOW):
        ids = text[first : first + _WINDOW]
        rows.append(wide.verify([Window(state, ids)]).logits_TV.clone())
        pool.commit([(state, len(ids))])
    return torch.cat(rows).double()


@triton.jit(do_not_specialize=["layer"])
def _every_state_kernel(
    table, out, states, layer, stride_ring, stride_gate, stride_state,
    NUM_KEY_HEADS: tl.constexpr, NUM_VALUE_HEADS: tl.constexpr, K: tl.constexpr, W: tl.constexpr,
    V: tl.constexpr, NUM_CHANNELS: tl.constexpr, FIRST_ROW: tl.constexpr, NUM_ROWS: tl.constexpr,
    START: tl.constexpr, CONV_OUT: tl.constexpr, DECAY: tl.constexpr, BETA: tl.constexpr,
    CHECKPOINT: tl.constexpr, RING_ROWS: tl.constexpr,
):  # fmt: skip
    """Grid: value heads, parts of a head's value columns. Row by row, each state is written."""
    head, part = tl.program_id(0), tl.program_id(1)
    start = tl.load(table + START).to(tl.int32)
    num_rows = tl.load(table + NUM_ROWS).to(tl.int32)
    ring = memory_at(table + CONV_OUT, tl.bfloat16) + layer * stride_ring
    decay = memory_at(table + DECAY, tl.float32) + layer * stride_gate
    beta = memory_at(table + BETA, tl.float32) + layer * stride_gate
    k, v = tl.arange(0, K), part * V + tl.arange(0, V)
    key_head = head // (NUM_VALUE_HEADS // NUM_KEY_HEADS)
    place = head * (K * W) + k[:, None] * W + v[None, :]
    S_KV = tl.load(memory_at(table + CHECKPOINT, tl.float32) + layer * stride_state + place)
    for row in range(num_rows):
        slot = (start + row) % RING_ROWS
        line = ring + slot * NUM_CHANNELS
        q_K = tl.load(line + key_head * K + k).to(tl.float32)
        k_K = tl.load(line + (NUM_KEY_HEADS + key_head) * K + k).to(tl.float32)
        v_V = tl.load(line + 2 * NUM_KEY_HEADS * K + head * W + v).to(tl.float32)
        q_K = q_K * tl.rsqrt(tl.sum(q_K * q_K, axis=0) + 1e-6) * (K**-0.5)
        k_K = k_K * tl.rsqrt(tl.sum(k_K * k_K, axis=0) + 1e-6)
        S_KV = S_KV * tl.exp(tl.load(decay + slot * NUM_VALUE_HEADS + head))
        error_V = v_V - tl.sum(k_K[:, None] * S_KV, axis=0)
        d_V = tl.load(beta + slot * NUM_VALUE_HEADS + head) * error_V
        S_KV += k_K[:, None] * d_V[None, :]
        o_V = tl.sum(q_K[:, None] * S_KV, axis=0)
        tl.store(out + row * (NUM_VALUE_HEADS * W) + head * W + v, o_V.to(tl.bfloat16))
        tl.store(states + row * (NUM_VALUE_HEADS * K * W) + place, S_KV)


def write_every_state(
    table: SequenceTable,
    layer: int,
    qkvz_MZ: Tensor,
    ba_MR: Tensor,
    weights: DeltaWeights,
    states_MRKW: Tensor,
    *,
    columns: int = 16,
    num_warps: int = 2,
) -> Tensor:
    """The mixer of one sequence by the recurrence, the state behind each row written.

    Rows go into the ring by the launch that `delta_pass` begins with; then one launch goes row by
    row, from the checkpoint, whichever position that is of. On a CPU the outputs are zeros.

    Args:
        states_MRKW: float32, a state a row.
        columns: value columns of a program.
        num_warps: of a program.
    """
    heads, memory = weights.num_value_heads, table.memory[0]
    out_MV = qkvz_MZ.new_zeros(len(qkvz_MZ), heads * weights.value_dim)
    if not qkvz_MZ.is_cuda:
        return out_MV
    append_rows(table, layer, qkvz_MZ, ba_MR, weights)
    _every_state_kernel[(heads, weights.value_dim // columns)](
        table.rows_BF, out_MV, states_MRKW, layer, memory.conv_out_LEX.stride(0),
        memory.decay_LER.stride(0), memory.checkpoint_LRKW.stride(0),
        NUM_KEY_HEADS=weights.num_key_heads, NUM_VALUE_HEADS=heads, K=weights.key_dim,
        W=weights.value_dim, V=columns, NUM_CHANNELS=weights.channels,
        FIRST_ROW=columns_of.FIRST_ROW, NUM_ROWS=columns_of.NUM_ROWS, START=columns_of.START,
        CONV_OUT=columns_of.CONV_OUT, DECAY=columns_of.DECAY, BETA=columns_of.BETA,
        CHECKPOINT=columns_of.CHECKPOINT, RING_ROWS=RING, num_warps=num_warps,
    )  # fmt: skip
    return out_MV
