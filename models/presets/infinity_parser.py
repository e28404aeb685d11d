"""Infinity-Parser2 (INF): a JSON list of layout elements, boxes from 0 to 1000.

Text of a table is HTML, of a formula LaTeX, of everything else Markdown. The instruction is ours.
"""

from dataclasses import replace

from ocria.models.presets.preset import ImageBudget, Preset
from ocria.output.markup_style import MarkupStyle

CATEGORIES = (
    *("header", "title", "text", "figure", "table", "formula", "figure_caption", "table_caption"),
    *("formula_caption", "figure_footnote", "table_footnote", "page_footnote", "footer"),
)

INFINITY_PARSER_2_PRO = Preset(
    name="infinity-parser2-pro",
    hub_id="infly/Infinity-Parser2-Pro",
    licence="see model page",
    num_parameters=None,
    instruction=(
        "List the layout elements of this page in reading order as one JSON list. Each element "
        "is an object with bbox ([x1, y1, x2, y2]), category and text. Categories: "
        f"{', '.join(CATEGORIES)}. Text is Markdown; of a table HTML, of a formula LaTeX, of a "
        "figure the empty string. Keep the wording of the page."
    ),
    budget=ImageBudget(min_pixels=1 << 20, max_pixels=4 << 20),
    markup=MarkupStyle(name="json", last_coordinate=1000),
    template_arguments={"enable_thinking": False},
)

INFINITY_PARSER_2_FLASH = replace(
    INFINITY_PARSER_2_PRO, name="infinity-parser2-flash", hub_id="infly/Infinity-Parser2-Flash"
)
