"""DFlash drafters: blocks of proposals from hidden states of the target."""

from ocria.models.drafter.config import DrafterConfig
from ocria.models.drafter.loading import LoadedDrafter, load_drafter
from ocria.models.drafter.model import DFlash

__all__ = ["DFlash", "DrafterConfig", "LoadedDrafter", "load_drafter"]
