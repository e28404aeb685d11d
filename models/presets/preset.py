"""The type of a preset.

A drafter is no part of it: an MTP head or a DFlash drafter is found in the checkpoint's folder, and
`auto` takes the best there is.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ocria.output.markup_style import MarkupStyle


@dataclass(frozen=True, kw_only=True, slots=True)
class ImageBudget:
    """Areas in pixels between which a page is read; they replace the checkpoint's own.

    A page of A4 at 192 dpi has 3.6 million pixels; 1,024 pixels are one image token.
    """

    min_pixels: int
    max_pixels: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Preset:
    """How a checkpoint is asked for a page, and how its answer is read.

    Attributes:
        name: for `--model`.
        hub_id: `owner/name` on the hub; None for a preset that fits any checkpoint.
        licence: of the weights, as their publisher states it; `see model page` where no source of
            this project states it.
        num_parameters: of the whole model; None where it is not known or not fixed.
        instruction: text of the user's turn, after the page's image.
        template_arguments: what the checkpoint's own chat template is given beside the messages.
        budget: None keeps the areas of the checkpoint's preprocessor file.
        markup: how the answer is written.
    """

    name: str
    hub_id: str | None
    licence: str
    num_parameters: int | None
    instruction: str
    markup: MarkupStyle
    template_arguments: Mapping[str, Any] = field(default_factory=dict)
    budget: ImageBudget | None = None
