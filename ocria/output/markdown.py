"""Pages to one GitHub-flavoured Markdown document, page by page."""

import re
from typing import TextIO

import numpy as np

from ocria.document import FURNITURE, Block, Page
from ocria.options import Furniture
from ocria.output.clean import clean, clean_line, without_trailing_space

_ITEM_MARK = re.compile(r"(?:[-*+]|\d{1,9}[.)]) +")


def page_markdown(page: Page, *, furniture: Furniture = "drop", page_marker: bool = False) -> str:
    """Markdown of one page without a final newline; empty if nothing is to be shown.

    A failed page leaves a comment that says why. Lists are nested by indentation; tables with
    spans are HTML.
    """
    parts = [f"<!-- page {page.number} -->"] if page_marker else []
    if page.status == "failed":
        reason = page.error.message if page.error else "no reason known"
        parts.append(f"<!-- page {page.number}: failed: {_comment_text(reason)} -->")
    blocks = [b for b in page.blocks if furniture == "keep" or b.type not in FURNITURE]
    body = _blocks_markdown(blocks)
    return "\n\n".join([*parts, body] if body else parts)


class MarkdownWriter:
    """Writes each page as it comes. The chunks joined are the whole document.

    Pages are parted by a blank line; the document has no trailing spaces and ends with exactly
    one newline, even when no page had text.
    """

    def __init__(self, sink: TextIO, *, furniture: Furniture, page_markers: bool) -> None:
        self._sink = sink
        self._furniture: Furniture = furniture
        self._page_markers = page_markers
        self._has_text = False

    def write(self, page: Page, image: np.ndarray | None = None) -> None:
        """Writes and flushes `page`; `image` is not used."""
        text = page_markdown(page, furniture=self._furniture, page_marker=self._page_markers)
        if text:
            self._sink.write(f"\n{text}\n" if self._has_text else f"{text}\n")
            self._has_text = True
        self._sink.flush()

    def close(self) -> None:
        """Ends the document; the sink stays open."""
        if not self._has_text:
            self._sink.write("\n")
        self._sink.flush()


def _comment_text(message: str) -> str:
    # Two hyphens in a row are what could end a comment.
    return re.sub(r"-(?=-)", "- ", clean_line(message))


def _blocks_markdown(blocks: list[Block]) -> str:
    parts: list[str] = []
    mark_widths: list[int] = []
    for block in blocks:
        text = _tidy(block.markdown)
        if not text:
            continue
        depth = len(mark_widths)
        if block.type == "list_item":
            text = _indented(text, block.level or 1, mark_widths)
        else:
            mark_widths.clear()
        if parts:
            tight = depth and mark_widths and not _hides_in_parent(text, len(mark_widths) - depth)
            parts.append("\n" if tight else "\n\n")
        parts.append(text)
    return "".join(parts)


def _hides_in_parent(item: str, deeper: int) -> bool:
    # CommonMark 5.3: only a number 1 starts a list inside a paragraph, here the parent's.
    return deeper > 0 and re.match(r" *(?:[-*+]|1[.)]) ", item) is None


def _indented(text: str, level: int, mark_widths: list[int]) -> str:
    """`text` under its parents; `mark_widths` holds the width of each open level's mark.

    A level with no parent above it is read as the deepest that has one.
    """
    del mark_widths[max(level - 1, 0) :]
    indent = sum(mark_widths)
    match = _ITEM_MARK.match(text)
    width = len(match.group()) if match else 2
    mark_widths.append(width)
    first, *rest = text.split("\n")
    lines = [" " * indent + first, *(" " * (indent + width) + line for line in rest)]
    return "\n".join(lines)


def _tidy(markdown: str) -> str:
    return without_trailing_space(clean(markdown)).strip("\n")
