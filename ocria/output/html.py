"""One self-contained HTML file: each page's image beside the text that was read from it.

Nothing in it is fetched and nothing runs: no script, and a content security policy that allows
only the style sheet inside (by its hash) and images inside. What a page says is escaped.
"""

import base64
import hashlib
from importlib.resources import files
from typing import TextIO

import numpy as np

from ocria.document import Generator, Page, Source
from ocria.options import Furniture
from ocria.output.clean import clean_line
from ocria.output.html_blocks import blocks_html, escaped
from ocria.output.page_picture import picture_html


class HtmlWriter:
    """Writes the head at once and each page as it comes."""

    def __init__(
        self, sink: TextIO, *, source: Source, generator: Generator, furniture: Furniture
    ) -> None:
        self._sink = sink
        self._furniture: Furniture = furniture
        sink.write(_head(source, generator))

    def write(self, page: Page, image: np.ndarray | None = None) -> None:
        """Writes and flushes `page`; `image` is the upright page, RGB uint8 [H, W, 3]."""
        picture = "" if image is None else picture_html(page, image)
        parts = [
            f'<section class="page{"" if picture else " bare"}" id="page-{page.number}">',
            _label(page),
            picture,
            f'<div class="text">\n{_body(page, self._furniture)}\n</div>',
            "</section>\n",
        ]
        self._sink.write("\n".join(part for part in parts if part))
        self._sink.flush()

    def close(self) -> None:
        """Ends the document; the sink stays open."""
        self._sink.write("</body>\n</html>\n")
        self._sink.flush()


def _head(source: Source, generator: Generator) -> str:
    style = "\n" + files("ocria.output").joinpath("html.css").read_text(encoding="utf-8")
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode("ascii")
    policy = (
        f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'; "
        "base-uri 'none'; form-action 'none'"
    )
    name = escaped(clean_line(source.name))
    model = generator.model
    made = escaped(clean_line(f"OCRia {generator.ocria}, {model.name} ({model.precision})"))
    count = f"{source.num_pages} page{'' if source.num_pages == 1 else 's'}"
    return f"""<!doctype html>
<html>
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="referrer" content="no-referrer">
<meta name="generator" content="{made}">
<title>{name}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{name}</h1><p>{count} · {made}</p></header>
"""


def _label(page: Page) -> str:
    parts = [f"Page {page.number}"]
    if page.status != "ok":
        parts.append(f'<span class="notice">{escaped(page.status)}</span>')
    if page.confidence is not None:
        parts.append(f"confidence {page.confidence:.2f}")
    return f'<p class="label">{" · ".join(parts)}</p>'


def _body(page: Page, furniture: Furniture) -> str:
    body = blocks_html(page.blocks, furniture)
    if page.status == "failed":
        reason = page.error.message if page.error else "no reason known"
        failed = f'<p class="failed">This page failed: {escaped(clean_line(reason))}</p>'
        return f"{failed}\n{body}".rstrip()
    return body or '<p class="label">No text on this page.</p>'
