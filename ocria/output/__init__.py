"""Model text to blocks, and pages to Markdown, JSON, JSON Lines and HTML."""

from ocria.output.clean import clean_line
from ocria.output.decoded import DecodedText, PageBlocks, PageGeometry, mean_probability
from ocria.output.markdown import page_markdown
from ocria.output.markup_style import MarkupName, MarkupStyle
from ocria.output.page_blocks import build_page_blocks
from ocria.output.table_joining import joined_table
from ocria.output.writer import Writer, open_writer, render

__all__ = [
    "DecodedText",
    "MarkupName",
    "MarkupStyle",
    "PageBlocks",
    "PageGeometry",
    "Writer",
    "build_page_blocks",
    "clean_line",
    "joined_table",
    "mean_probability",
    "open_writer",
    "page_markdown",
    "render",
]
