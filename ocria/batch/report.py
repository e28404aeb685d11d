"""`report.html`: what failed, what was slow, and how these pages look.

The page refers to nothing outside itself, and a policy in its head lets it load nothing.
"""

import base64
import hashlib
import heapq
from collections.abc import Iterable, Iterator, Mapping
from html import escape
from itertools import count, islice
from pathlib import Path
from typing import Any, NamedTuple

from ocria.batch.listener import Figures
from ocria.batch.thumbnail import NOTEWORTHY, NUM_SLOWEST
from ocria.document import Page
from ocria.output import clean_line

NAME = "report.html"
_MOST_TROUBLE = 200
_MOST_DOCUMENTS = 1000
_STYLE = """
:root{color-scheme:light dark}
body{font:15px/1.5 system-ui,sans-serif;margin:2rem auto;max-width:76rem;padding:0 1.5rem}
h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2.2rem}
table{border-collapse:collapse;width:100%}
td,th{text-align:left;vertical-align:top;padding:.25rem .8rem .25rem 0;
border-bottom:1px solid #8883;overflow-wrap:anywhere}
td.n{text-align:right;font-variant-numeric:tabular-nums;white-space:nowrap}
.pages{display:grid;grid-template-columns:repeat(auto-fill,minmax(180px,1fr));gap:1.2rem}
figure{margin:0;font-size:.85rem;overflow-wrap:anywhere}
img{display:block;max-width:100%;border:1px solid #8885;margin-bottom:.3rem}
.failed{color:#b3261e}.faint{opacity:.7}
"""


class Sight(NamedTuple):
    """A page that the report shows."""

    name: str
    number: int
    status: str
    seconds: float
    reason: str
    picture: bytes | None


class Report:
    """Collects what is worth showing of a run; holds some hundred pages at most."""

    def __init__(self) -> None:
        self._trouble: list[Sight] = []
        self._num_trouble = 0
        self._slowest: list[tuple[float, int, Sight]] = []
        self._order = count()

    def add(self, name: str, page: Page, seconds: float, picture: bytes | None) -> None:
        """Considers a page of this run."""
        reason = page.error.message if page.error else ""
        sight = Sight(name, page.number, page.status, seconds, reason, picture)
        if page.status in NOTEWORTHY:
            self._num_trouble += 1
            if len(self._trouble) < _MOST_TROUBLE:
                self._trouble.append(sight)
        entry = (seconds, next(self._order), sight)
        if len(self._slowest) < NUM_SLOWEST:
            heapq.heappush(self._slowest, entry)
        else:
            heapq.heappushpop(self._slowest, entry)

    def write(self, folder: Path, figures: Figures, entries: Iterable[Mapping[str, Any]]) -> None:
        """Writes the report under a temporary name, then renames it.

        Args:
            folder: the output folder.
            figures: of this run.
            entries: lines of the manifest, those of earlier runs included.

        Raises:
            OSError: it cannot be written.
        """
        part = folder / f".{NAME}.part"
        with part.open("w", encoding="utf-8", errors="backslashreplace", newline="\n") as sink:
            sink.writelines(self._lines(figures, entries))
        part.replace(folder / NAME)

    def _lines(self, figures: Figures, entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
        digest = base64.b64encode(hashlib.sha256(_STYLE.encode()).digest()).decode("ascii")
        policy = f"default-src 'none'; img-src data:; style-src 'sha256-{digest}'"
        yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        yield f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        yield f"<title>OCRia batch</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n"
        yield "<h1>OCRia batch</h1>\n"
        yield from _figures_table(figures)
        yield from _documents_table(entries)
        more = self._num_trouble - len(self._trouble)
        title = "Pages in trouble" + (f" (and {more:,} more)" if more else "")
        yield from _pictures(title, self._trouble)
        slowest = [sight for _, _, sight in sorted(self._slowest, reverse=True)]
        yield from _pictures("Slowest pages of this run", slowest)
        yield "</body>\n</html>\n"


def _figures_table(figures: Figures) -> Iterator[str]:
    elapsed_s = figures.elapsed_s
    statuses = ", ".join(f"{number:,} {status}" for status, number in figures.documents.items())
    rows = {
        "Documents": f"{figures.num_found:,} found; {statuses or 'none read'}; "
        f"{figures.num_skipped:,} done before ({figures.num_skipped_troubled:,} not whole); "
        f"{figures.num_unread:,} not read",
        "Pages read": ", ".join(f"{n:,} {status}" for status, n in sorted(figures.pages.items())),
        "Pages kept from an earlier run": f"{figures.num_resumed_pages:,}",
        "Time": f"{elapsed_s:,.1f} s, {figures.num_pages / elapsed_s:,.2f} pages a second, "
        f"{figures.num_tokens / elapsed_s:,.0f} tokens a second",
    }
    yield "<table>\n"
    for name, value in rows.items():
        yield f"<tr><th>{name}</th><td>{_text(value)}</td></tr>\n"
    yield "</table>\n"


def _documents_table(entries: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    troubled = (entry for entry in entries if entry["status"] != "ok")
    yield "<h2>Documents that are not whole</h2>\n<table>\n"
    yield "<tr><th>Input</th><th>Status</th><th>Pages</th><th>Reason</th></tr>\n"
    for entry in islice(troubled, _MOST_DOCUMENTS):
        pages = ", ".join(f"{number} {status}" for status, number in entry["pages"].items())
        reason = entry["error"]["message"] if entry["error"] else ""
        cells = (entry["input"], entry["status"], pages, reason)
        yield "<tr>" + "".join(f"<td>{_text(cell)}</td>" for cell in cells) + "</tr>\n"
    yield "</table>\n"


def _pictures(title: str, sights: Iterable[Sight]) -> Iterator[str]:
    yield f'<h2>{_text(title)}</h2>\n<div class="pages">\n'
    for sight in sights:
        yield "<figure>"
        if sight.picture is not None:
            data = base64.b64encode(sight.picture).decode("ascii")
            yield f'<img alt="" src="data:image/jpeg;base64,{data}">'
        yield f"{_text(sight.name)}, page {sight.number}<br>"
        yield f'<span class="faint">{sight.status}, {sight.seconds:.2f} s</span>'
        if sight.reason:
            yield f'<br><span class="failed">{_text(sight.reason)}</span>'
        yield "</figure>\n"
    yield "</div>\n"


def _text(text: str) -> str:
    """Text of others, made harmless: no markup, no control characters."""
    return escape(clean_line(text))
