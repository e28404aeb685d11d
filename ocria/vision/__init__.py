"""Page pixels to what the vision encoder reads, and whether there is anything to read."""

from ocria.vision.ink import Ink, ink_map, measure_ink
from ocria.vision.lines import LineCells, line_cells
from ocria.vision.patches import Patches, page_patches
from ocria.vision.preprocessor import PreprocessorConfig
from ocria.vision.prints import PagePrint
from ocria.vision.regions import MEASURED_PIXELS, Region, column_boxes, page_regions
from ocria.vision.resize import SizeRule
from ocria.vision.text_lines import Lines, PageLines

__all__ = [
    "MEASURED_PIXELS",
    "Ink",
    "LineCells",
    "Lines",
    "PageLines",
    "PagePrint",
    "Patches",
    "PreprocessorConfig",
    "Region",
    "SizeRule",
    "column_boxes",
    "ink_map",
    "line_cells",
    "measure_ink",
    "page_patches",
    "page_regions",
]
