"""Marks inside a paragraph: `**bold**`, `*italic*`, `` `code` `` and `$formula$`.

Two readings of the same string: plain text and HTML. Anything that is not a whole mark is text.
"""

import html
import re
from collections.abc import Iterator
from typing import Literal, NamedTuple

Mark = Literal["text", "strong", "emphasis", "code", "formula"]

# Dollars follow Pandoc's rule, so that prices stay prices: no space inside, no digit after.
# A word may go on after bold, but bold cannot begin inside one, so that `x**2` stays a power.
_MARKS: tuple[tuple[Mark, str], ...] = (
    ("formula", r"(?<![\\$])\$(?P<formula_body>[^\s$](?:[^$\n]*[^\s$\\])?)\$(?![\d$])"),
    (
        "strong",
        r"(?<![\w*\\])\*\*(?!\s)(?P<strong_body>(?:[^*\\\n]|\\.)+)"
        r"(?:(?<!\s)\*\*(?![\w*])|(?<=[^\W_])\*\*(?!\*))",
    ),
    ("emphasis", r"(?<![\w*\\])\*(?!\s)(?P<emphasis_body>(?:[^*\\\n]|\\.)+)(?<!\s)\*(?![\w*])"),
)
_MARK = re.compile("|".join(f"(?P<{mark}>{pattern})" for mark, pattern in _MARKS))
_ESCAPE = re.compile(r"\\([!-/:-@\[-`{-~])")
FENCE = re.compile(r"^`{3,}(?=[^`\n]*$)", re.MULTILINE)
"""Backticks that Markdown reads as the start of a fenced block."""
_TICKS = re.compile("(?P<ticks>`+)")
_ESCAPE_OR_TICKS = re.compile(rf"{_ESCAPE.pattern}|{_TICKS.pattern}")
_HTML_TAG = {"strong": "strong", "emphasis": "em", "code": "code"}


class Run(NamedTuple):
    """A stretch of text under one mark. `body` is without the mark, `source` with it."""

    mark: Mark
    body: str
    source: str


def code_spans(text: str, *, escapes: bool) -> list[tuple[int, int, int]]:
    """(start, end, number of backticks) of each code span, exactly as CommonMark (6.1) pairs them.

    Exactly, because a code span is the one place where `<` needs no escape: reading one where a
    Markdown reader sees none would let a tag through.

    `escapes`: a backslash hides a backtick. Without it, `text` is not yet Markdown, and backticks
    that would open a fenced block are left out: they will be written as text.
    """
    if not escapes:
        text = FENCE.sub(lambda match: " " * len(match.group()), text)
    closers: dict[int, list[int]] = {}
    for match in reversed(list(_TICKS.finditer(text))):
        closers.setdefault(len(match.group()), []).append(match.start())
    spans, done = [], 0
    for match in (_ESCAPE_OR_TICKS if escapes else _TICKS).finditer(text):
        if match.start() < done or match["ticks"] is None:
            continue
        width = len(match["ticks"])
        waiting = closers.get(width, [])
        while waiting and waiting[-1] < match.end():
            waiting.pop()
        if waiting:
            done = waiting[-1] + width
            spans.append((match.start(), done, width))
    return spans


def runs(text: str, *, escapes: bool = False) -> Iterator[Run]:
    """Splits `text`; the sources joined give it back. `escapes`: see `code_spans`."""
    done = 0
    for start, end, width in code_spans(text, escapes=escapes):
        yield from _marked_runs(text[done:start])
        yield Run("code", _code_body(text[start + width : end - width]), text[start:end])
        done = end
    yield from _marked_runs(text[done:])


def _code_body(text: str) -> str:
    # CommonMark 6.1: one space on either side only keeps a backtick off the mark.
    line = text.replace("\n", " ")
    padded = line[:1] == line[-1:] == " " and line.strip(" ")
    return line[1:-1] if padded else line


def _marked_runs(text: str) -> Iterator[Run]:
    done = 0
    for match in _MARK.finditer(text):
        mark = next(name for name, _ in _MARKS if match[name] is not None)
        plain = text[done : match.start()]
        yield Run("text", plain, plain)
        yield Run(mark, match[f"{mark}_body"], match.group())
        done = match.end()
    yield Run("text", text[done:], text[done:])


def plain_text(text: str) -> str:
    """`text` without its marks; a formula keeps its TeX."""
    return "".join(run.body for run in runs(text))


def inline_html(text: str, *, escapes: bool = False) -> str:
    """HTML of `text`: marks become elements, everything else is escaped.

    `escapes`: `text` is Markdown, in which a backslash before punctuation is not shown.
    """
    parts = []
    for run in runs(text, escapes=escapes):
        body = run.source if run.mark == "formula" else run.body
        if escapes and run.mark not in ("formula", "code"):
            body = _ESCAPE.sub(r"\1", body)
        tag = _HTML_TAG.get(run.mark)
        escaped = html.escape(body, quote=True)
        parts.append(f"<{tag}>{escaped}</{tag}>" if tag else escaped)
    return "".join(parts)
