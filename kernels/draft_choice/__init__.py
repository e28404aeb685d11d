"""The most probable tokens of rows, and the path through them. See README.md and reference.py."""

from torch import Tensor

from . import reference
from .reference import Codebooks

__all__ = ["Codebooks", "best_candidates", "best_path"]


def best_candidates(logits_KV: Tensor, forbidden_V: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """See `reference.best_candidates`."""
    if logits_KV.is_cuda:
        from .triton_impl import best_candidates as fused

        return fused(logits_KV, forbidden_V, count)
    return reference.best_candidates(logits_KV, forbidden_V, count)


def best_path(
    ids_KC: Tensor, scores_KC: Tensor, gate_KR: Tensor, books: Codebooks, anchor_1: Tensor
) -> Tensor:
    """See `reference.best_path`."""
    if ids_KC.is_cuda:
        from .triton_impl import best_path as fused

        return fused(ids_KC, scores_KC, gate_KR, books, anchor_1)
    return reference.best_path(ids_KC, scores_KC, gate_KR, books, anchor_1)
