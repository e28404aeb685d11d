"""Blocks of a page as HTML. Every string that a model wrote passes an escape here."""

import html
import re

from ocria.document import FURNITURE, Block
from ocria.options import Furniture
from ocria.output.clean import clean
from ocria.output.html_table import safe_table
from ocria.output.inline import inline_html

_ITEM = re.compile(r"(?P<mark>[-*+]|\d{1,9}[.)]) +(?P<body>.*)", re.DOTALL)
_HEADING_MARKS = re.compile(r"#{1,6}\s+")


def blocks_html(blocks: tuple[Block, ...], furniture: Furniture) -> str:
    """The blocks in reading order; list items that follow each other share a list."""
    parts: list[str] = []
    in_list = False
    for block in blocks:
        if furniture == "drop" and block.type in FURNITURE:
            continue
        is_item = block.type == "list_item"
        if is_item != in_list:
            parts.append("<ul>" if is_item else "</ul>")
            in_list = is_item
        parts.append(_block_html(block))
    return "\n".join([*parts, "</ul>"] if in_list else parts)


def escaped(text: str) -> str:
    """`text` for the content of an element or a double-quoted attribute."""
    return html.escape(clean(text), quote=True)


def _block_html(block: Block) -> str:
    anchor = f'id="{escaped(block.id)}"'
    match block.type:
        case "heading":
            level = min(max(block.level or 1, 1), 6)
            body = _inline(_HEADING_MARKS.sub("", block.markdown, count=1))
            return f"<h{level} {anchor}>{body}</h{level}>"
        case "list_item":
            return _item_html(block, anchor)
        case "table":
            return f'<div class="table" {anchor}>{safe_table(clean(block.html or ""))}</div>'
        case "formula":
            tex = escaped(block.latex or block.text)
            return f'<pre class="formula" {anchor}>{tex}</pre>'
        case "code":
            return f"<pre {anchor}><code>{escaped(block.text)}</code></pre>"
        case "figure":
            return f"<figure {anchor}>{_inline(block.markdown) or 'Figure'}</figure>"
        case "paragraph":
            return f"<p {anchor}>{_inline(block.markdown)}</p>"
    return f'<p class="{escaped(block.type)}" {anchor}>{_inline(block.markdown)}</p>'


def _item_html(block: Block, anchor: str) -> str:
    match = _ITEM.fullmatch(block.markdown)
    mark, body = (match["mark"], match["body"]) if match else ("-", block.markdown)
    level = min(max(block.level or 1, 1), 6)
    shown = "•" if mark in "-*+" else mark
    return (
        f'<li class="level{level}" {anchor}><span class="mark">{shown}</span>'
        f"<span>{_inline(body)}</span></li>"
    )


def _inline(markdown: str) -> str:
    return inline_html(clean(markdown), escapes=True)
