"""Many documents: found, read, written, and gone on with after whatever has stopped a run.

Importing this room loads no torch.
"""

from ocria.batch.listener import Figures, Listener
from ocria.batch.manifest import Entry, Troubled
from ocria.batch.options import BatchOptions, parse_formats

__all__ = ["BatchOptions", "Entry", "Figures", "Listener", "Troubled", "parse_formats"]
