"""Page pixels to what the vision encoder reads, and whether there is anything to read."""

from ocria.vision.ink import Ink, measure_ink
from ocria.vision.line_cells import LineCells
from ocria.vision.patches import Patches, cut, page_patches, seen, sized
from ocria.vision.preprocessor import PreprocessorConfig
from ocria.vision.prints import PagePrint
from ocria.vision.regions import Region, column_boxes, page_regions
from ocria.vision.resize import SizeRule
from ocria.vision.text_lines import Lines, PageLines

__all__ = [
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
    "cut",
    "measure_ink",
    "page_patches",
    "page_regions",
    "seen",
    "sized",
]
