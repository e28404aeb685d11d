"""NuExtract3 (NuMind): 4B, Markdown with HTML tables, LaTeX and `figure` elements."""

from ocria.models.presets.generic import GENERIC
from ocria.models.presets.preset import ImageBudget, Preset

NUEXTRACT_3 = Preset(
    name="nuextract3",
    hub_id="numind/NuExtract3",
    licence="Apache-2.0",
    num_parameters=4_539_000_000,
    instruction=GENERIC.instruction,
    budget=ImageBudget(min_pixels=1 << 20, max_pixels=4 << 20),
    markup=GENERIC.markup,
    # The template also serves extraction into JSON; `mode` picks conversion.
    template_arguments={"enable_thinking": False, "mode": "markdown"},
)
