"""Model text to blocks, and pages to Markdown, JSON, JSON Lines and HTML."""

from ocria.output.decoded import DecodedText, PageBlocks, PageGeometry, mean_probability
from ocria.output.page_blocks import build_page_blocks

__all__ = [
    "DecodedText",
    "PageBlocks",
    "PageGeometry",
    "build_page_blocks",
    "mean_probability",
]
