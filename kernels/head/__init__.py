"""Best tokens without materialised logits. See README.md and reference.py."""

from ocria.kernels.dispatch import with_kernel

from . import reference
from .reference import BestTokens

__all__ = ["BestTokens", "best_tokens"]

best_tokens = with_kernel(reference.best_tokens)
