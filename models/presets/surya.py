"""surya-ocr-2 and 2.5 (Datalab): 0.8B shape with a vocabulary of 65,425, same HTML blocks.

Their text config carries a stop id of the larger vocabulary; the tokenizer has the right one.
The instruction is ours, see `chandra.py`.
"""

from dataclasses import replace

from ocria.models.presets.preset import ImageBudget, Preset
from ocria.output.markup_style import MarkupStyle

SURYA_OCR_2 = Preset(
    name="surya-ocr-2",
    hub_id="datalab-to/surya-ocr-2",
    licence="OpenRAIL-M, modified",
    num_parameters=686_200_000,
    instruction=(
        "Read this page and write it as HTML. Every block is a div with data-label and data-bbox "
        "(x0 y0 x1 y1, from 0 to 1000)."
    ),
    budget=ImageBudget(min_pixels=1 << 20, max_pixels=4 << 20),
    markup=MarkupStyle(name="html", last_coordinate=1000),
    template_arguments={"enable_thinking": False},
)

SURYA_OCR_2_5 = replace(SURYA_OCR_2, name="surya-ocr-2.5", hub_id="datalab-to/surya-ocr-2.5")
