"""Tables for HTML output, rebuilt from their HTML so that nothing but a table gets through."""

import html
import re
from html.parser import HTMLParser

_KEPT = frozenset({"table", "thead", "tbody", "tr", "th", "td", "strong", "em", "code"})
_SPANS = frozenset({"rowspan", "colspan"})
_MAX_SPAN = 1000
_SPAN = re.compile(r"[0-9]{1,5}")


def safe_table(markup: str) -> str:
    """`markup` with table elements and spans as they are; other tags and attributes go.

    Open elements are closed, so a cut-off table cannot swallow what follows.
    """
    parser = _TableFilter()
    parser.feed(markup)
    parser.close()
    return parser.finished()


class _TableFilter(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self._parts: list[str] = []
        self._open: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in _KEPT:
            return
        spans = "".join(
            f' {name}="{min(int(value), _MAX_SPAN)}"'
            for name, value in attrs
            if name in _SPANS and value and _SPAN.fullmatch(value)
        )
        self._parts.append(f"<{tag}{spans}>")
        self._open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag not in self._open:
            return
        while self._open:
            inner = self._open.pop()
            self._parts.append(f"</{inner}>")
            if inner == tag:
                break

    def handle_data(self, data: str) -> None:
        self._parts.append(html.escape(data, quote=True))

    def finished(self) -> str:
        """What was read, every element closed."""
        closing = [f"</{tag}>" for tag in reversed(self._open)]
        return "".join([*self._parts, *closing])
