"""One document: page pictures in, pages out, in order, while later pages are still being read.

Importing this room loads no torch: a document that cannot be opened says so without it. The page
reader is `ocria.pipeline.page_reader`.
"""

from ocria.pipeline.stream import PageStream, ParsedPage, open_stream

__all__ = ["PageStream", "ParsedPage", "open_stream"]
