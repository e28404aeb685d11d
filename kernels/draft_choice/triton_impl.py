# mypy: disallow-untyped-defs=false
"""Candidates and the path through them in Triton: four launches.

1. `band_kernel`: the best tokens of a band of the vocabulary, one after the other.
2. `merge_kernel`: the best of all bands' best.
3. `edge_kernel`: of each place, the best successor of every candidate of the place before.
4. `walk_kernel`: follows these from the anchor on.

Shape legend: see reference.py.
"""

import torch
import triton
import triton.language as tl
from torch import Tensor

from ocria.kernels.specimen import Specimen

from .reference import Codebooks

BAND = 512


@triton.jit
def _take_best(x_N, n, ids, scores, id_source, base, COUNT: tl.constexpr, GATHER: tl.constexpr):
    """Stores the COUNT largest numbers and what they stand for, of equal ones the first."""
    for place in range(COUNT):
        top = tl.max(x_N, axis=0)
        # An exhausted band has minus infinity left, at places that are there.
        where = tl.min(tl.where(x_N == top, n, n.shape[0] - 1), axis=0)
        token = base + where
        if GATHER:
            token = tl.load(id_source + where)
        tl.store(ids + place, token)
        tl.store(scores + place, top)
        x_N = tl.where(n == where, float("-inf"), x_N)


@triton.jit
def band_kernel(
    logits, forbidden, ids, scores, num_tokens, COUNT: tl.constexpr, BAND: tl.constexpr
):
    """Grid: rows, bands."""
    row, band = tl.program_id(0), tl.program_id(1)
    n = tl.arange(0, BAND)
    token = band * BAND + n
    inside = token < num_tokens
    x_N = tl.load(logits + row.to(tl.int64) * num_tokens + token, mask=inside, other=float("-inf"))
    is_out = tl.load(forbidden + token, mask=inside, other=1)
    x_N = tl.where(is_out == 0, x_N, float("-inf"))
    at = (row * tl.num_programs(1) + band) * COUNT
    _take_best(x_N, n, ids + at, scores + at, ids, band * BAND, COUNT, False)


@triton.jit
def merge_kernel(
    band_ids, band_scores, ids, scores, num_found, COUNT: tl.constexpr, N: tl.constexpr
):
    """Grid: rows."""
    row = tl.program_id(0)
    n = tl.arange(0, N)
    x_N = tl.load(band_scores + row * num_found + n, mask=n < num_found, other=float("-inf"))
    source = band_ids + row * num_found
    at = row * COUNT
    _take_best(x_N, n, ids + at, scores + at, source, 0, COUNT, True)


@triton.jit
def edge_kernel(
    ids, scores, gate, before, after, anchor, best, rank, multiplier, softcap,
    COUNT: tl.constexpr, C: tl.constexpr, R: tl.constexpr, CAPPED: tl.constexpr,
):  # fmt: skip
    """Grid: places."""
    place = tl.program_id(0)
    c, r = tl.arange(0, C), tl.arange(0, R)
    known_C, known_R = c < COUNT, r < rank
    after_C = tl.load(ids + place * COUNT + c, mask=known_C, other=0)
    last = tl.load(anchor)
    before_A = tl.load(ids + tl.maximum(place - 1, 0) * COUNT + c, mask=known_C, other=0)
    before_A = tl.where(place > 0, before_A, last)
    score_C = tl.load(scores + place * COUNT + c, mask=known_C, other=float("-inf")) * multiplier
    if CAPPED:
        # tanh(x) = 1 - 2 / (e^2x + 1), at minus infinity too.
        bounded_C = softcap - 2.0 * softcap / (tl.exp(2.0 * score_C / softcap) + 1.0)
        score_C = tl.where(score_C == float("-inf"), score_C, bounded_C)
    gate_R = tl.load(gate + place * rank + r, mask=known_R, other=0.0).to(tl.float32)
    before_AR = tl.load(
        before + before_A[:, None] * rank + r[None, :], mask=known_R[None, :], other=0.0
    ).to(tl.float32)
    after_CR = tl.load(
        after + after_C[:, None] * rank + r[None, :], mask=known_R[None, :], other=0.0
    ).to(tl.float32)
    gated_AR = before_AR * gate_R[None, :]
    bonus_AC = tl.sum(gated_AR[:, None, :] * after_CR[None, :, :], axis=2)
    edge_AC = tl.where(known_C[None, :], score_C[None, :] + bonus_AC, float("-inf"))
    tl.store(best + place * C + c, tl.argmax(edge_AC, axis=1).to(tl.int32))


@triton.jit
def walk_kernel(ids, best, path, num_places, COUNT: tl.constexpr, C: tl.constexpr):
    """One program."""
    slot = 0
    for place in range(0, num_places):
        slot = tl.load(best + place * C + slot)
        tl.store(path + place, tl.load(ids + place * COUNT + slot))


def best_candidates(logits_KV: Tensor, forbidden_V: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """See `reference.best_candidates`."""
    num_rows, num_tokens = logits_KV.shape
    assert logits_KV.is_contiguous() and count <= BAND, "rows lie in one piece"
    bands = -(-num_tokens // BAND)
    band_ids = torch.empty(num_rows, bands * count, dtype=torch.int64, device=logits_KV.device)
    band_scores = torch.empty_like(band_ids, dtype=torch.float32)
    ids_KC = band_ids.new_empty(num_rows, count)
    scores_KC = band_scores.new_empty(num_rows, count)
    band_kernel[(num_rows, bands)](
        logits_KV, forbidden_V, band_ids, band_scores, num_tokens,
        COUNT=count, BAND=BAND, num_warps=1,
    )  # fmt: skip
    width = triton.next_power_of_2(bands * count)
    merge_kernel[(num_rows,)](
        band_ids, band_scores, ids_KC, scores_KC, bands * count,
        COUNT=count, N=width, num_warps=1 if width <= 1024 else 8,
    )  # fmt: skip
    return ids_KC, scores_KC


def best_path(
    ids_KC: Tensor, scores_KC: Tensor, gate_KR: Tensor, books: Codebooks, anchor_1: Tensor
) -> Tensor:
    """See `reference.best_path`."""
    num_places, count = ids_KC.shape
    rank, filled = books.before_VR.shape[1], triton.next_power_of_2(count)
    best_KA = torch.empty(num_places, filled, dtype=torch.int32, device=ids_KC.device)
    path_K = torch.empty(num_places, dtype=torch.int64, device=ids_KC.device)
    edge_kernel[(num_places,)](
        ids_KC, scores_KC, gate_KR, books.before_VR, books.after_VR, anchor_1, best_KA, rank,
        books.multiplier, books.softcap,
        COUNT=count, C=filled, R=triton.next_power_of_2(rank), CAPPED=books.softcap > 0,
        num_warps=4,
    )  # fmt: skip
    walk_kernel[(1,)](ids_KC, best_KA, path_K, num_places, COUNT=count, C=filled, num_warps=1)
    return path_K


def specimens() -> list[Specimen]:
    """The shipped drafter's sizes."""
    found = {"ids": "*i64", "scores": "*fp32"}
    bands = {"band_ids": "*i64", "band_scores": "*fp32"}
    launches = (
        ("band", band_kernel,
         {"logits": "*fp32", "forbidden": "*u8"} | found | {"num_tokens": "i32"},
         {"COUNT": 16, "BAND": BAND}, 1),
        ("merge", merge_kernel, bands | found | {"num_found": "i32"}, {"COUNT": 16, "N": 256}, 1),
        ("edge", edge_kernel,
         found | {"gate": "*fp32", "before": "*bf16", "after": "*bf16", "anchor": "*i64",
                  "best": "*i32", "rank": "i32", "multiplier": "fp32", "softcap": "fp32"},
         {"COUNT": 16, "C": 16, "R": 32, "CAPPED": True}, 4),
        ("walk", walk_kernel,
         {"ids": "*i64", "best": "*i32", "path": "*i64", "num_places": "i32"},
         {"COUNT": 16, "C": 16}, 1),
    )  # fmt: skip
    return [
        Specimen(
            name=f"choice_{name}",
            kernel=kernel,
            types=types,
            constants=constants,
            num_warps=warps,
            has_dot=False,
        )
        for name, kernel, types, constants, warps in launches
    ]
