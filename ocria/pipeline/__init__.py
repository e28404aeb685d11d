"""One document: page pictures in, pages out, in order, while later pages are still being read."""

import os

# Read by the OpenMP runtime when torch loads, which the next lines do. Its threads spin while they
# wait by default: on a machine with other work a decoding step took 2,300 ms that way, 100 ms with
# threads that sleep (2 cores, load 10).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

from ocria.pipeline.page_reader import PageReader, load_page_reader
from ocria.pipeline.stream import PageStream, ParsedPage, open_stream

__all__ = ["PageReader", "PageStream", "ParsedPage", "load_page_reader", "open_stream"]
