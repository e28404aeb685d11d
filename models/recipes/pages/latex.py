"""One spelling for each formula: canonical LaTeX, and its typst form through pandoc.

A page shows the same ink for `x_1`, `x _ { 1 }` and `x_{1}\\,`; the truth must name it one way,
or the model is asked to guess. Run as a program over formula lists to write `formulas.tsv`.
"""

from __future__ import annotations

import argparse
import re
from collections.abc import Iterable
from pathlib import Path

_TOKEN = re.compile(r"\\[a-zA-Z]+\*?|\\.|[^\s]")
_SPACING = (r"\,", r"\;", r"\!", r"\:", r"\>", r"\/", "\\ ", "~", r"\quad", r"\qquad")
_SIZING = (r"\left", r"\right", r"\middle", r"\displaystyle", r"\textstyle", r"\limits")
_BIG = tuple(
    f"\\{size}{side}" for size in ("big", "Big", "bigg", "Bigg") for side in ("", "l", "r")
)
_DROPPED = frozenset((*_SPACING, *_SIZING, *_BIG, r"\nolimits"))
_SYNONYMS = {
    r"\le": r"\leq",
    r"\ge": r"\geq",
    r"\ne": r"\neq",
    r"\rightarrow": r"\to",
    r"\dots": r"\ldots",
    r"\lbrace": r"\{",
    r"\rbrace": r"\}",
    r"\lbrack": "[",
    r"\rbrack": "]",
    r"\Vert": r"\|",
    r"\vert": "|",
    r"\mid": "|",
    r"\mbox": r"\text",
    r"\mathop": r"\operatorname",
    r"\operatorname*": r"\operatorname",
    r"\colon": ":",
    r"\land": r"\wedge",
    r"\lor": r"\vee",
    r"\varnothing": r"\emptyset",
    r"\ast": "*",
    r"\star": r"\star",
    r"\dfrac": r"\frac",
    r"\tfrac": r"\frac",
    r"\dbinom": r"\binom",
    r"\bm": r"\mathbf",
    r"\boldsymbol": r"\mathbf",
}
# Plain TeX font switches, `{\bf x}`, and the commands that take the group's place.
_SWITCH = re.compile(r"\{\s*\\(bf|rm|cal|sf|tt|it)(?![a-zA-Z])([^{}]*)\}")
_ARGUMENTS = {
    **dict.fromkeys((r"\frac", r"\binom"), 2),
    **dict.fromkeys(
        (r"\sqrt", r"\text", r"\textbf", r"\textit", r"\textrm", r"\operatorname", r"\hat",
         r"\tilde", r"\bar", r"\vec", r"\dot", r"\ddot", r"\widehat", r"\widetilde",
         r"\overline", r"\underline", r"\overbrace", r"\underbrace", r"\check", r"\breve",
         r"\acute", r"\grave", r"\overrightarrow", r"\pmod", r"\boxed"), 1),
}  # fmt: skip
_REFUSED = re.compile(
    r"\\(label|tag|bf|rm|it|cal|sf|tt|em|sl|begin|end|hspace|vspace|hskip|raise|buildrel|atop"
    r"|over|choose|ensuremath|phantom|smash|xymatrix|color|ref|cite|def|unskip|kern|hfill|line"
    r"|stackrel|underset|overset|xrightarrow|xleftarrow|not|scriptstyle|prime|null|lefteqn)\b"
)
_LIMITS = ("log", "ln", "exp", "min", "max", "lim", "sup", "inf", "det", "dim", "ker", "gcd")
_NAMES = frozenset((*_LIMITS, "sin", "cos", "tan", "sinh", "cosh"))
_OPERATOR = re.compile(r"\\operatorname\{([a-z]+)\}(.?)")
_GROUP = r"(\{(?:[^{}]|\{[^{}]*\})*\})"
_EXPONENT_FIRST = re.compile(rf"\^{_GROUP}_{_GROUP}")
_TYPST_FIXES = (
    ("times.circle", "times.o"),
    ("plus.circle", "plus.o"),
    ("dot.circle", "dot.o"),
    ("minus.circle", "minus.o"),
    ("sect", "inter"),
)


def canonical(latex: str) -> str | None:
    """The one spelling used as truth, or None for a formula that cannot be told from its ink."""
    latex = re.sub(r"\^\s*\{\s*(?:\\prime\s*)+\}", lambda m: "'" * m[0].count("prime"), latex)
    latex = re.sub(r"\^\s*\\prime(?![a-zA-Z])", "'", latex)
    latex = _SWITCH.sub(lambda m: f"{{\\math{m[1]}{{{m[2]}}}}}", latex)
    latex = re.sub(r"\\not\s*\\in(?![a-zA-Z])", r"\\notin ", latex)
    latex = re.sub(r"\\not\s*=", r"\\neq ", latex)
    if _REFUSED.search(latex) or "%" in latex or "&" in latex or "\\\\" in latex:
        return None
    tokens = [_SYNONYMS.get(t, t) for t in _TOKEN.findall(latex) if t not in _DROPPED]
    if not tokens or tokens.count("{") != tokens.count("}") or len(tokens) > 260:
        return None
    braced = _brace_scripts(tokens)
    if braced is None:
        return None
    spelt = _OPERATOR.sub(_named, _join(_without_idle_groups(braced)))
    return _EXPONENT_FIRST.sub(r"_\2^\1", spelt)


def _named(match: re.Match[str]) -> str:
    name, following = match[1], match[2]
    if name not in _NAMES:
        return match[0]
    return f"\\{name} {following}" if following.isalpha() else f"\\{name}{following}"


def _without_idle_groups(tokens: list[str]) -> list[str]:
    """Drops brace groups that are neither an argument nor a script, and braces bare arguments."""
    out: list[str] = []
    opened: list[tuple[bool, int]] = []
    wanted = 0  # Arguments that the last command still waits for.
    optional = False
    for before, token in zip(["", *tokens], tokens, strict=False):
        if token == "{":
            argument = wanted > 0 or before in ("_", "^")
            opened.append((argument, max(wanted - (before not in ("_", "^")), 0)))
            wanted = 0
            if not argument:
                continue
        elif token == "}" and opened:
            argument, wanted = opened.pop()
            if not argument:
                continue
        elif (token == "[" and before == r"\sqrt") or optional:
            optional = token != "]"
        elif token in _ARGUMENTS or token.startswith(r"\math"):
            wanted = _ARGUMENTS.get(token, 1)
        elif wanted:
            wanted -= 1
            out += ["{", token, "}"]
            continue
        out.append(token)
    return out


def _brace_scripts(tokens: list[str]) -> list[str] | None:
    out: list[str] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        out.append(token)
        i += 1
        if token in "_^" and len(token) == 1:
            if i >= len(tokens):
                return None
            if tokens[i] != "{":
                if tokens[i] in ("}", "_", "^") or tokens[i].startswith("\\math"):
                    return None
                out += ["{", tokens[i], "}"]
                i += 1
    return out


def _join(tokens: list[str]) -> str:
    parts: list[str] = []
    for before, token in zip(["", *tokens], tokens, strict=False):
        if re.fullmatch(r"\\[a-zA-Z]+", before) and token[0].isalpha():
            parts.append(" ")
        parts.append(token)
    return "".join(parts)


def to_typst(formulas: list[str]) -> list[str | None]:
    """Typst maths for each formula, None where pandoc gives up."""
    import pypandoc

    text = "\n\n".join(f"X{i}X ${f}$" for i, f in enumerate(formulas))
    quiet = ["--wrap=none", "--quiet"]
    out = pypandoc.convert_text(text, "typst", format="markdown+tex_math_dollars", extra_args=quiet)
    found: list[str | None] = [None] * len(formulas)
    for paragraph in out.split("\n\n"):
        match = re.match(r"X(\d+)X \$(.*)\$$", paragraph.strip(), re.DOTALL)
        if match and "\n" not in match[2]:
            found[int(match[1])] = _fix(match[2])
    return found


def _fix(typst: str) -> str:
    for old, new in _TYPST_FIXES:
        typst = typst.replace(old, new)
    return typst


def compiling(formulas: list[str]) -> list[bool]:
    """Which typst formulas compile, by bisection."""
    import typst

    compiler = typst.Compiler(ignore_system_fonts=True)

    def check(low: int, high: int) -> None:
        source = "\n\n".join(f"${formulas[i]}$" for i in range(low, high))
        try:
            compiler.compile(input=source.encode(), format="pdf")
        except typst.TypstError:
            if high - low == 1:
                good[low] = False
                return
            middle = (low + high) // 2
            check(low, middle)
            check(middle, high)

    good = [True] * len(formulas)
    for low in range(0, len(formulas), 64):
        check(low, min(low + 64, len(formulas)))
    return good


def convert(lines: Iterable[str], out: Path) -> int:
    """Writes `canonical<TAB>typst` lines for the formulas that survive; returns how many."""
    wanted = sorted({c for line in lines if (c := canonical(line.strip())) and 2 < len(c) < 400})
    count = 0
    with out.open("w", encoding="utf-8") as file:
        for start in range(0, len(wanted), 2000):
            chunk = wanted[start : start + 2000]
            pairs = [(f, t) for f, t in zip(chunk, to_typst(chunk), strict=True) if t is not None]
            kept = compiling([t for _, t in pairs])
            for (latex, typst), good in zip(pairs, kept, strict=True):
                if good:
                    file.write(f"{latex}\t{typst}\n")
                    count += 1
            file.flush()
    return count


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lists", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    lines = (line for path in arguments.lists for line in path.open(encoding="utf-8"))
    print(convert(lines, arguments.out), "formulas")


if __name__ == "__main__":
    main()
