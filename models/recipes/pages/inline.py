"""Inline Markdown of the corpus to runs: bold, italic, code and maths that the page will show."""

from __future__ import annotations

import re
from collections.abc import Mapping

from .blocks import Run
from .latex import canonical

_INLINE = re.compile(
    r"\*\*(?P<bold>[^*\s](?:[^*]{0,80}[^*\s])?)\*\*"
    r"|(?<![*\w])\*(?P<italic>[^*\s](?:[^*]{0,80}[^*\s])?)\*(?![*\w])"
    r"|(?<![\w_])_(?P<italic_>[^_\s](?:[^_]{0,80}[^_\s])?)_(?![\w_])"
    r"|`(?P<code>[^`]{1,60})`"
    r"|\$(?P<math>[^$]{1,120})\$"
)
_LEFT_OVER = re.compile(r"\*\*|`|\\[a-zA-Z\\]|^\s*[|:>]|\]\(|<[a-z/]|&[a-z]+;|__|\{|\}")
_ESCAPED = re.compile(r"\\([\[\]()*_#+\-.!~<>|'\"^$])")


def runs_of(
    text: str, formulas: Mapping[str, str], *, styles: frozenset[str]
) -> tuple[Run, ...] | None:
    """Runs of a Markdown paragraph, or None where it holds what a page cannot show exactly.

    `formulas` maps canonical LaTeX to typst; `styles` names the font styles at hand (b, i): a
    mark the page cannot show is dropped from the truth too.
    """
    if "$$" in text:
        return None
    runs: list[Run] = []
    at = 0
    for match in _INLINE.finditer(text):
        runs.append(Run(ink=_unescaped(text[at : match.start()])))
        at = match.end()
        run = _marked(match, formulas, styles)
        if run is None:
            return None
        runs.append(run)
    runs.append(Run(ink=_unescaped(text[at:])))
    kept = tuple(run for run in runs if run.ink)
    plain = "".join(run.ink for run in kept if run.style == "plain")
    return None if not kept or _LEFT_OVER.search(plain) else kept


def _unescaped(text: str) -> str:
    return _ESCAPED.sub(r"\1", text)


def _marked(
    match: re.Match[str], formulas: Mapping[str, str], styles: frozenset[str]
) -> Run | None:
    group = match.lastgroup or ""
    text, kind = match[group], group.rstrip("_")
    if kind == "math":
        latex = canonical(text)
        typst = formulas.get(latex) if latex else None
        return Run(ink=typst, style="math", truth=f"${latex}$") if typst else None
    if kind == "code":
        return Run(ink=text, style="code")
    shown = kind[0] in styles and not set("*_`$") & set(text)
    return Run(ink=_unescaped(text), style=kind if shown else "plain")
