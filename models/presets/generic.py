"""Presets without a publisher: our own checkpoints, and any `qwen3_5` that nobody described."""

from ocria.models.presets.preset import Preset
from ocria.output.markup_style import MarkupStyle

NATIVE = Preset(
    name="native",
    hub_id=None,
    licence="Apache-2.0",
    num_parameters=47_000_000,
    instruction="Convert this page to Markdown.",
    markup=MarkupStyle(name="native", last_coordinate=511),
)
"""For checkpoints that were trained on our own markup: their vocabulary holds its tokens."""

GENERIC = Preset(
    name="generic",
    hub_id=None,
    licence="see model page",
    num_parameters=None,
    instruction=(
        "Transcribe this page to Markdown. Write everything that is printed on it, in reading "
        "order, and nothing else. Write tables in HTML and formulas in LaTeX between $ or $$."
    ),
    markup=MarkupStyle(name="markdown"),
    template_arguments={"enable_thinking": False},
)
