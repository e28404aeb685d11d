"""chandra-ocr-2 (Datalab): 4B, HTML layout blocks with `data-bbox` and `data-label`.

Its package renders pages at 192 dpi. The instruction is ours: it asks for the same format in
other words. A checkpoint folder can hold the publisher's own in `instruction.txt`.
"""

from ocria.models.presets.preset import ImageBudget, Preset
from ocria.output.markup_style import MarkupStyle

LABELS = (
    *("Text", "Section-Header", "List-Group", "Table", "Equation-Block", "Code-Block", "Form"),
    *("Caption", "Footnote", "Page-Header", "Page-Footer", "Image", "Figure"),
    *("Table-Of-Contents", "Complex-Block"),
)

CHANDRA_OCR_2 = Preset(
    name="chandra-ocr-2",
    hub_id="datalab-to/chandra-ocr-2",
    licence="OpenRAIL-M, modified",
    num_parameters=4_539_000_000,
    instruction=(
        "Read this page and write it as HTML layout blocks in reading order. Every block is one "
        'div with data-bbox="[x0, y0, x1, y1]" (0 to 1000 across and down the page) and '
        f"data-label, one of: {', '.join(LABELS)}. Inside, use plain HTML: p for paragraphs, "
        "h1 to h5 for headings, table with rowspan and colspan, ul, ol and li, and math with "
        'LaTeX inside (display="block" where it stands alone). Describe a picture in the alt '
        "of an img."
    ),
    budget=ImageBudget(min_pixels=1536 * 1536, max_pixels=6 << 20),
    markup=MarkupStyle(name="html", last_coordinate=1000),
    template_arguments={"enable_thinking": False},
)
