"""Blocks from Markdown as general models write it: with HTML tables, `$$` formulas and code.

What plain Markdown does not hold is cut out first, line by line; the rest is read by
`markdown_blocks`. An answer that is fenced as a whole is taken out of its fence.
"""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Literal, NamedTuple

from ocria.document import BlockType
from ocria.output.blocks import Reading
from ocria.output.clean import blank_out, clean
from ocria.output.decoded import DecodedText
from ocria.output.html_content import ContentReader, Place
from ocria.output.html_lexemes import pieces
from ocria.output.html_tree import build_tree
from ocria.output.inline import runs
from ocria.output.markdown_blocks import read_markdown

SegmentKind = Literal["plain", "code", "formula", "html", "figure", "comment"]

_FENCE = re.compile(r"\s{0,3}(?P<mark>`{3,}|~{3,})\s*(?P<language>[\w+#.-]*)\s*")
_WHOLE = re.compile(r"\s*```(?:markdown|md)\s*\n(?P<body>.*?)(?:\n```\s*)?\Z", re.S | re.I)
_FORMULA = re.compile(r"\s*(?:\$\$|\\\[)")
_HTML = re.compile(r"\s*<(?P<name>table|figure|img|div)\b", re.I)
_PICTURE = re.compile(r"\s*!\[(?P<alt>[^\]]*)\](?:\([^)\s]*\))?\s*")
_COMMENT = re.compile(r"\s*<!--")
_ESCAPED = re.compile(r"\\([$_#%&~\[\]().!>+|-])")
_PAREN_FORMULA = re.compile(r"\\\(\s*(?P<body>[^\n]+?)\s*\\\)")


class _Segment(NamedTuple):
    """Lines of one kind; [start, end) are characters. `whole`: its end was found."""

    kind: SegmentKind
    start: int
    end: int
    whole: bool = True


def read_markdown_page(decoded: DecodedText) -> tuple[list[Reading], bool]:
    """The blocks of a page without boxes, and whether something had to be mended."""
    text = blank_out(decoded.text, decoded.special_spans)
    fenced = _WHOLE.fullmatch(text)
    start, end = fenced.span("body") if fenced else (0, len(text))
    readings: list[Reading] = []
    mended = False
    for segment in _segments(text, start, end):
        found, damaged = _read(decoded, text, segment)
        readings += found
        mended |= damaged or not segment.whole
    return readings, mended


def markdown_readings(text: str) -> tuple[list[Reading], bool]:
    """The same for a text of which no tokens are known."""
    return read_markdown_page(DecodedText(text=text))


def tex_body(text: str) -> str:
    """TeX without the dollars or brackets around it."""
    body = text.strip()
    for opening, closing in (("$$", "$$"), ("\\[", "\\]"), ("\\(", "\\)"), ("$", "$")):
        if body.startswith(opening):
            return body.removeprefix(opening).removesuffix(closing).strip()
    return body


def _read(decoded: DecodedText, text: str, segment: _Segment) -> tuple[list[Reading], bool]:
    kind, start, end, _ = segment
    body = clean(text[start:end])
    confidence = decoded.confidence(start, end)
    match kind:
        case "plain":
            found, damaged = read_markdown(decoded.part(start, end))
            return [replace(reading, text=_unescaped(reading)) for reading in found], damaged
        case "code":
            lines = body.strip("\n").split("\n")[1:]
            if lines and _FENCE.fullmatch(lines[-1]):
                lines.pop()
            found = [Reading(type="code", text="\n".join(lines))]
        case "formula":
            found = [Reading(type="formula", text=tex_body(body))]
        case "html":
            return _html(decoded, text, segment)
        case "figure":
            match = _PICTURE.fullmatch(body)
            alt = " ".join((match["alt"] if match else "").split())
            found = [Reading(type="figure", text=f"*{alt}*" if alt and "*" not in alt else alt)]
        case "comment":
            found = []
    return [replace(r, confidence=confidence) for r in found if not r.is_empty], False


def _html(decoded: DecodedText, text: str, segment: _Segment) -> tuple[list[Reading], bool]:
    root, mended = build_tree(
        piece._replace(start=piece.start + segment.start, end=piece.end + segment.start)
        for piece in pieces(text[segment.start : segment.end])
    )
    reader = ContentReader(decoded)
    kind: BlockType = "paragraph"
    reader.read(root, Place(kind, None))
    return reader.readings, mended or reader.mended


def _segments(text: str, start: int, end: int) -> Iterator[_Segment]:
    """The text cut into segments, in order; blank lines between go with plain ones."""
    place = plain = start
    while place < end:
        found = _special_at(text, place, end)
        if found is None:
            line = text.find("\n", place, end)
            place = end if line < 0 else line + 1
            continue
        if plain < place:
            yield _Segment("plain", plain, place)
        yield found
        place = plain = found.end
    if plain < end:
        yield _Segment("plain", plain, end)


def _special_at(text: str, place: int, end: int) -> _Segment | None:
    """The segment that is not plain Markdown and begins with the line at `place`."""
    line_end = text.find("\n", place, end)
    line_end = end if line_end < 0 else line_end
    line = text[place:line_end]
    if fence := _FENCE.fullmatch(line):
        return _until_fence(text, place, line_end, end, fence["mark"])
    if match := _FORMULA.match(line):
        return _formula(text, place, place + match.end(), end)
    if match := _HTML.match(line):
        return _element(text, place, end, match["name"].lower())
    if _PICTURE.fullmatch(line):
        return _Segment("figure", place, line_end)
    if _COMMENT.match(line):
        stop = text.find("-->", place, end)
        return _Segment("comment", place, end if stop < 0 else stop + 3, stop >= 0)
    return None


def _until_fence(text: str, place: int, line_end: int, end: int, mark: str) -> _Segment:
    closing = re.compile(rf"^ {{0,3}}{re.escape(mark[0])}{{{len(mark)},}}[ \t]*$", re.M)
    match = closing.search(text, min(line_end + 1, end), end)
    return _Segment("code", place, match.end() if match else end, match is not None)


def _formula(text: str, place: int, body: int, end: int) -> _Segment | None:
    """A formula ends with its bracket at the end of a line, before a blank one."""
    closing = r"\]" if text[body - 1] == "[" else "$$"
    stop = text.find(closing, body, end)
    blank = text.find("\n\n", body, end)
    if stop < 0 or (0 <= blank < stop):
        # Never closed: what the formula would swallow is worth more than its form.
        stop = end if blank < 0 else blank
        return _Segment("formula", place, stop, False)
    return _Segment("formula", place, stop + 2)


def _element(text: str, place: int, end: int, name: str) -> _Segment:
    if name == "img":
        stop = text.find(">", place, end)
        return _Segment("html", place, end if stop < 0 else stop + 1, stop >= 0)
    depth = 0
    for match in re.finditer(rf"<(/?){name}\b[^<>]*>", text[place:end], re.I):
        depth += -1 if match[1] else 1
        if depth == 0:
            return _Segment("html", place, place + match.end())
    return _Segment("html", place, end, False)


def _unescaped(reading: Reading) -> str:
    """Text as it stood on the page: these models escape, and write formulas in TeX's brackets."""
    if reading.type in ("code", "formula"):
        return reading.text
    text = _PAREN_FORMULA.sub(lambda match: f"${match['body']}$", reading.text)
    return "".join(
        run.source if run.mark in ("formula", "code") else _ESCAPED.sub(r"\1", run.source)
        for run in runs(text, escapes=True)
    )
