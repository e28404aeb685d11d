"""RMS norm of every head, then a gate. See README.md and reference.py."""

from ocria.kernels.dispatch import with_kernel

from . import reference

__all__ = ["gated_norm"]

gated_norm = with_kernel(reference.gated_norm)
