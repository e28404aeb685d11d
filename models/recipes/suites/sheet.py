"""A page of a suite: its source for typst, and what a reader must make of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from PIL import Image


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """One page. Either `typst` is its source, or `picture` its pixels.

    `truth` is plain text in reading order, or HTML of tables for the metric `teds`, or None on
    pages without any text. `cuts` are shorter sources and truths, tried in turn where the page
    runs over onto a second one.
    """

    kind: str
    lang: str
    metric: Literal["text", "teds", "blank"]
    truth: str | None
    typst: str | None = None
    picture: Image.Image | None = None
    cuts: tuple[tuple[str, str], ...] = ()


def quoted(text: str) -> str:
    """Text as a typst string in code, so that no character of it is markup."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'#"{escaped}"'


def page_source(
    body: str,
    *,
    font: str,
    lang: str = "en",
    size_pt: float = 10.5,
    columns: int = 1,
    justify: bool = False,
    hyphenate: bool = False,
    margin_pt: int = 64,
    head: str = "",
) -> str:
    """A whole typst document of A4 pages; `head` spans all columns."""
    yes = {True: "true", False: "false"}
    lines = [
        f'#set page(paper: "a4", margin: {margin_pt}pt)',
        f'#set text(font: "{font}", size: {size_pt}pt, lang: "{lang}", '
        f"hyphenate: {yes[hyphenate]}, fallback: false)",
        f"#set par(justify: {yes[justify]}, leading: 0.62em, spacing: 1.1em)",
        head,
        f"#columns({columns}, gutter: 18pt)[{body}]" if columns > 1 else body,
    ]
    return "\n".join(lines)


def fitting_sheets(
    paragraphs: list[str], *, kind: str, lang: str, title: str | None = None, **layout: object
) -> Sheet:
    """A page of prose that drops paragraphs from its end until it fits on one page."""
    head = f"#text(size: 17pt, weight: 700)[{quoted(title)}]\n#v(6pt)\n" if title else ""
    versions = []
    for count in range(len(paragraphs), 0, -1):
        body = "\n\n".join(quoted(text) for text in paragraphs[:count])
        source = page_source(body, lang=lang, head=head, **layout)  # type: ignore[arg-type]
        versions.append((source, "\n\n".join([*([title] if title else []), *paragraphs[:count]])))
    (source, truth), *cuts = versions
    return Sheet(kind=kind, lang=lang, metric="text", truth=truth, typst=source, cuts=tuple(cuts))
