"""Files to page pictures: knows PDFium and Pillow; no tensors, no model."""

from ocria.rasterize.media_types import is_document
from ocria.rasterize.page_image import PageFailed, PageImage, RenderTarget, SizeFit
from ocria.rasterize.page_range import check_pages, page_range
from ocria.rasterize.reader import DocumentReader, open_document
from ocria.rasterize.text_layer import TextLayer, TextLine

__all__ = [
    "DocumentReader",
    "PageFailed",
    "PageImage",
    "RenderTarget",
    "SizeFit",
    "TextLayer",
    "TextLine",
    "check_pages",
    "is_document",
    "open_document",
    "page_range",
]
