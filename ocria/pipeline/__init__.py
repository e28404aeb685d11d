"""One document: page pictures in, pages out, in order, while later pages are still being read."""

from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.pipeline.stream import PageStream, ParsedPage, open_stream

__all__ = ["PageReader", "PageStream", "ParsedPage", "load_page_reader", "open_stream"]
