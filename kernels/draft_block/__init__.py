"""What a DFlash layer does between its products. See README.md and reference.py."""

from ocria.kernels.dispatch import with_kernel

from . import reference
from .reference import DraftHeads, DraftSight

__all__ = ["DraftHeads", "DraftSight", "draft_attention", "mixed_rows", "write_context"]

mixed_rows = with_kernel(reference.mixed_rows)
write_context = with_kernel(reference.write_context)
draft_attention = with_kernel(reference.draft_attention)
