"""HTML as a model writes it, cut at its tags; whatever is no known tag is text of the page.

Not a browser's parser: a page that shows `<script>` or `a < b` must keep its characters, a tail
may be cut off anywhere, and every piece keeps its place in the decoded text for its confidence.
"""

import html
import re
from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from ocria.output.clean import clean

VOID = frozenset({"br", "hr", "img", "input"})
KNOWN = VOID | frozenset(
    {
        *("div", "p", "span", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li"),
        *("table", "thead", "tbody", "tfoot", "tr", "td", "th", "caption"),
        *("b", "strong", "i", "em", "u", "del", "s", "sup", "sub", "small", "big", "a"),
        *("math", "pre", "code", "chem", "figure", "figcaption", "blockquote", "label"),
    }
)
# Quoted values end within a line's length or are no values: the scan stays linear.
_ATTRIBUTES = r"""(?:"[^"<]{0,2000}"|'[^'<]{0,2000}'|[^'"<>])*"""
_TAG = re.compile(rf"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>{_ATTRIBUTES})>")
# The same with quotes that do not pair.
_LOOSE_TAG = re.compile(r"<(?P<close>/?)(?P<name>[A-Za-z][A-Za-z0-9]*)(?P<rest>[^<>]{0,2000})>")
_CUT_TAG = re.compile(r"<(?:/?[A-Za-z][^<>]{0,2000})?\Z")
_ATTRIBUTE = re.compile(
    r"""(?P<name>[A-Za-z][\w-]*)(?:\s*=\s*(?:"(?P<d>[^"]*)"|'(?P<s>[^']*)'|(?P<bare>[^\s"'>]+)))?"""
)

Kind = Literal["open", "close", "text", "cut"]


class Piece(NamedTuple):
    """A tag or a stretch of text; [start, end) are characters of the decoded text.

    Attributes:
        kind: `cut` is a tag that the end of the text cut off.
        value: the tag's name in small letters, or text with its entities resolved.
        attributes: of an opening tag, by small name.
        loose: the tag's quotes did not pair.
    """

    kind: Kind
    value: str
    start: int
    end: int
    attributes: Mapping[str, str] = {}
    loose: bool = False


def pieces(text: str) -> Iterator[Piece]:
    """The tags and texts of `text`, in order; nothing of it is lost but a cut-off last tag."""
    done, place = 0, text.find("<")
    while place >= 0:
        match = _TAG.match(text, place)
        loose = match is None
        match = match or _LOOSE_TAG.match(text, place)
        if match is not None and match["name"].lower() in KNOWN:
            yield from _text(text, done, place)
            yield _tag(match, loose)
            done = match.end()
            place = text.find("<", done)
        elif _CUT_TAG.match(text, place) and _begins_known(text, place):
            yield from _text(text, done, place)
            yield Piece("cut", "", place, len(text))
            return
        else:
            place = text.find("<", place + 1)
    yield from _text(text, done, len(text))


def _text(text: str, start: int, end: int) -> Iterator[Piece]:
    if start < end:
        yield Piece("text", clean(html.unescape(text[start:end])), start, end)


def _tag(match: re.Match[str], loose: bool) -> Piece:
    name = match["name"].lower()
    if match["close"]:
        return Piece("close", name, match.start(), match.end())
    attributes = _loose_attributes(match["rest"]) if loose else _attributes(match["rest"])
    return Piece("open", name, match.start(), match.end(), attributes, loose)


def _attributes(text: str) -> dict[str, str]:
    return {
        found["name"].lower(): _value(found["d"] or found["s"] or found["bare"] or "")
        for found in _ATTRIBUTE.finditer(text)
    }


def _loose_attributes(text: str) -> dict[str, str]:
    """Attributes whose quotes do not pair: each reaches to the next `name=`."""
    _, *parts = re.split(r"([A-Za-z][\w-]*)\s*=", text)
    return {
        name.lower(): _value(value.strip(" \t\n\"'/"))
        for name, value in zip(parts[0::2], parts[1::2], strict=True)
    }


def _value(text: str) -> str:
    return clean(html.unescape(text))


def _begins_known(text: str, place: int) -> bool:
    """Whether what is left after `<` may have become a known tag."""
    name = re.match(r"/?([A-Za-z][A-Za-z0-9]*)?", text[place + 1 : place + 20])
    begun = (name[1] if name else None) or ""
    complete = place + 1 + len(begun) < len(text)
    begun = begun.lower()
    return begun in KNOWN if complete else any(known.startswith(begun) for known in KNOWN)
