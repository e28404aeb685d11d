"""DFlash drafters: blocks of proposals from hidden states of the target."""

from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.loading import DraftHost, LoadedDrafter, find_drafter, load_drafter
from ocria.models.drafter.model import DFlash

__all__ = [
    "DFlash",
    "DraftHost",
    "DrafterConfig",
    "LoadedDrafter",
    "find_drafter",
    "load_drafter",
]
