"""What is known of public checkpoints beyond their own files: prompt, budget, markup, licence."""

from ocria.models.presets.catalogue import PRESETS, preset_named, preset_of, with_preset
from ocria.models.presets.generic import GENERIC, NATIVE
from ocria.models.presets.preset import ImageBudget, Preset

__all__ = [
    "GENERIC",
    "NATIVE",
    "PRESETS",
    "ImageBudget",
    "Preset",
    "preset_named",
    "preset_of",
    "with_preset",
]
