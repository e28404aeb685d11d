"""Formulas: found in Markdown, normalised as LaTeX, matched with those of the truth.

Two sources that draw the same picture can differ in spacing, in optional braces, and in which of
several names a command goes by. `normalise_latex` removes what does not show or shows the same;
what is left is compared token by token. Where pictures are there (`formula_pictures`), formulas are
also compared as these.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass

from rapidfuzz import process
from rapidfuzz.distance import Levenshtein

# No delimiter may hold its own opening: a page of unclosed ones is read in linear time.
_DELIMITED = re.compile(
    r"(?<!\\)\\\((?P<paren>(?:(?!\\[()]).)+)\\\)"
    r"|(?<!\\)\\\[(?P<bracket>(?:(?!(?<!\\)\\[\[\]]).)+)\\\]"
    r"|(?<!\\)\$\$(?P<display>(?:(?!\$\$).)+)\$\$"
    # A blank before the second dollar only if one follows the first, and no digit behind it: `$5
    # and $6` is money.
    r"|(?<!\\)\$(?=\s|(?:[^$\\]|\\.)*(?<!\s)\$)(?P<inline>(?:[^$\\]|\\.)+)\$(?!\d)",
    re.DOTALL,
)
_TOKEN = re.compile(r"\\[A-Za-z]+\*?|\\.|[^\s\\]", re.DOTALL)
_INVISIBLE = frozenset(
    [r"\,", r"\;", r"\:", r"\!", r"\>", "\\ ", r"\quad", r"\qquad", r"\left", r"\right", r"\big",
     r"\Big", r"\bigg", r"\Bigg", r"\bigl", r"\bigr", r"\Bigl", r"\Bigr", r"\biggl", r"\biggr",
     r"\Biggl", r"\Biggr", r"\bigm", r"\limits", r"\nolimits", r"\displaystyle", r"\textstyle",
     r"\scriptstyle", r"\nonumber", r"\notag", r"\thinspace", r"\medspace", r"\thickspace",
     r"\enspace", r"\strut", "~", "&"]
)  # fmt: skip
_SAME = {
    r"\dfrac": r"\frac", r"\tfrac": r"\frac", r"\cfrac": r"\frac", r"\le": r"\leq", r"\ge": r"\geq",
    r"\ne": r"\neq", r"\to": r"\rightarrow", r"\gets": r"\leftarrow", r"\lbrace": r"\{",
    r"\rbrace": r"\}", r"\lbrack": "[", r"\rbrack": "]", r"\vert": "|", r"\lvert": "|",
    r"\rvert": "|", r"\mid": "|", r"\Vert": r"\|", r"\lVert": r"\|", r"\rVert": r"\|",
    r"\ast": "*", r"\colon": ":", r"\land": r"\wedge", r"\lor": r"\vee", r"\lnot": r"\neg",
    r"\rm": r"\mathrm", r"\bf": r"\mathbf", r"\it": r"\mathit", r"\cal": r"\mathcal",
    r"\operatorname": r"\mathrm", r"\operatorname*": r"\mathrm", r"\text": r"\mathrm",
    r"\textrm": r"\mathrm", r"\mbox": r"\mathrm", r"\textbf": r"\mathbf", r"\textit": r"\mathit",
    r"\boldsymbol": r"\mathbf", r"\bm": r"\mathbf", r"\dots": r"\ldots", r"\cdots": r"\ldots",
    r"\dotsc": r"\ldots", r"\dotsb": r"\ldots", r"\widehat": r"\hat", r"\widetilde": r"\tilde",
    r"\overline": r"\bar", r"\varnothing": r"\emptyset", r"\iff": r"\Longleftrightarrow",
    r"\implies": r"\Longrightarrow", r"\prime": "'", r"\lt": "<", r"\gt": ">",
}  # fmt: skip
_LABELS = re.compile(r"\\(?:label|tag\*?)\s*\{[^{}]*\}")
_END_MARK = re.compile(r"(?<!\\)[.,;]\s*$")
_ENVIRONMENT = re.compile(
    r"\\(?:begin|end)\s*\{(?:equation|align|aligned|gather|gathered|split)\*?\}"
)


FIRST_LETTER = 0x10000
"""Over the surrogates; a page has fewer kinds of token than there are code points above."""
REACH = 60
"""How many places away, after scaling to equal counts, a formula is still looked for."""


@dataclass(frozen=True, kw_only=True)
class FormulaScores:
    """`match`: share of the truth's formulas found exactly; `similarity`: mean over them.

    `match_drawn` counts those that are the same picture too; None without pictures.
    """

    match: float
    match_drawn: float | None
    similarity: float
    num_truth: int
    num_found: int


def formulas_in(markdown: str) -> tuple[str, ...]:
    """LaTeX of every formula of a page, in reading order."""
    found = (next(g for g in m.groups() if g) for m in _DELIMITED.finditer(markdown))
    return tuple(latex.strip() for latex in found if latex.strip())


def normalise_latex(latex: str) -> tuple[str, ...]:
    """Tokens that show, under one name each; braces around one token and end marks are dropped."""
    text = _ENVIRONMENT.sub(" ", _LABELS.sub(" ", latex.strip().strip("$")))
    tokens = [_SAME.get(token, token) for token in _TOKEN.findall(text)]
    tokens = [token for token in tokens if token not in _INVISIBLE]
    while tokens and tokens[-1] in (".", ",", ";", r"\\"):
        tokens.pop()
    return tuple(_without_single_braces(_without_empty_groups(tokens)))


def drawable_latex(latex: str) -> str:
    """LaTeX without what `normalise_latex` drops as not of the formula: labels, an end mark."""
    text = _END_MARK.sub("", _LABELS.sub(" ", latex).strip())
    # The space gives a trimmed backslash at the end, a control space, its second half back.
    return _END_MARK.sub("", text.strip("$").strip()) + " "


def score_formulas(
    truth: tuple[str, ...], found: tuple[str, ...], draw: Draw | None = None
) -> FormulaScores:
    """Pair equal formulas, then each other one with the most similar unused, best pairs first.

    On pages with hundreds of formulas only those at about the same place are compared.
    """
    left, right = _without_equal(truth, found, [*map(normalise_latex, (*truth, *found))])
    exact = len(truth) - len(left)
    drawn = None if draw is None else len(truth) - len(_undrawn(left, right, draw))
    open_left, open_right = (list(map(normalise_latex, side)) for side in (left, right))
    total = float(exact)
    used_left: set[int] = set()
    used_right: set[int] = set()
    for difference, i, j in sorted(_near_pairs(open_left, open_right)):
        if i not in used_left and j not in used_right:
            used_left.add(i)
            used_right.add(j)
            total += 1.0 - difference
    count = max(len(truth), 1)
    return FormulaScores(
        match=exact / count,
        match_drawn=None if drawn is None else drawn / count,
        similarity=total / count,
        num_truth=len(truth),
        num_found=len(found),
    )


Draw = Callable[[Sequence[str]], Sequence[Hashable]]
"""Pictures of LaTeX sources, equal where they look the same; None for what cannot be drawn."""
_Tokens = tuple[str, ...]


def _without_equal(
    left: Sequence[str], right: Sequence[str], keys: Sequence[Hashable]
) -> tuple[list[str], list[str]]:
    """Both lists without the formulas that stand in both, as often as they do.

    `keys` say, for those on the left and then those on the right, which are equal; None is like
    nothing.
    """
    sides = (left, keys[: len(left)]), (right, keys[len(left) :])
    common = Counter(sides[0][1]) & Counter(sides[1][1])
    rest: list[list[str]] = []
    for formulas, own_keys in sides:
        taken = Counter(common)
        kept = []
        for latex, key in zip(formulas, own_keys, strict=True):
            if key is not None and taken[key]:
                taken[key] -= 1
            else:
                kept.append(latex)
        rest.append(kept)
    return rest[0], rest[1]


def _undrawn(left: list[str], right: list[str], draw: Draw) -> list[str]:
    """Formulas of the left that are no picture of the right; none is drawn without need."""
    return _without_equal(left, right, draw([*left, *right]))[0] if left and right else left


def _near_pairs(left: list[_Tokens], right: list[_Tokens]) -> list[tuple[float, int, int]]:
    """Normalised distance and both places of formulas that stand at about the same place."""
    spelt_left, spelt_right = _as_strings(left, right)
    pairs: list[tuple[float, int, int]] = []
    for i, formula in enumerate(spelt_left):
        centre = i * len(right) // len(left)
        start = max(0, centre - REACH)
        near = spelt_right[start : centre + REACH + 1]
        (row,) = process.cdist([formula], near, scorer=Levenshtein.normalized_distance)
        pairs.extend((distance, i, start + j) for j, distance in enumerate(row.tolist()))
    return pairs


def _as_strings(*sides: list[_Tokens]) -> list[list[str]]:
    """A character for each kind of token: strings are compared several times faster."""
    kinds = dict.fromkeys(token for side in sides for tokens in side for token in tokens)
    letters = {token: chr(FIRST_LETTER + place) for place, token in enumerate(kinds)}
    return [["".join(letters[token] for token in tokens) for tokens in side] for side in sides]


def _without_empty_groups(tokens: list[str]) -> list[str]:
    kept: list[str] = []
    for token in tokens:
        if token == "}" and kept and kept[-1] == "{":
            kept.pop()
        else:
            kept.append(token)
    return kept


def _without_single_braces(tokens: list[str]) -> list[str]:
    """`{x}` becomes `x`, repeatedly: the same picture wherever a group holds one token."""
    kept: list[str] = []
    for token in tokens:
        kept.append(token)
        while len(kept) >= 3 and kept[-1] == "}" and kept[-3] == "{" and kept[-2] not in "{}":
            kept[-3:] = [kept[-2]]
    return kept
