"""Formulas made up: sums, integrals, matrices, cases, derivations, each as LaTeX and as typst.

The LaTeX is in the spelling of `latex.canonical`, which knows no environments; here are five:
`aligned`, `cases`, `pmatrix`, `bmatrix` and `vmatrix`.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce

_COMMAND_END = re.compile(r"\\[a-zA-Z]+$")


@dataclass(frozen=True, kw_only=True)
class Maths:
    """One piece of a formula in both languages."""

    latex: str
    typst: str

    def __add__(self, other: Maths) -> Maths:
        parted = _COMMAND_END.search(self.latex) and other.latex[:1].isalpha()
        latex = self.latex + (" " if parted else "") + other.latex
        return Maths(latex=latex, typst=f"{self.typst} {other.typst}")


Maker = Callable[[random.Random], Maths]


def sign(latex: str, typst: str | None = None) -> Maths:
    """A sign; typst calls it as LaTeX does where nothing else is given."""
    return Maths(latex=latex, typst=latex if typst is None else typst)


def joined(parts: Sequence[Maths]) -> Maths:
    """Pieces one after another."""
    return reduce(lambda a, b: a + b, parts)


def wrapped(command: str, function: str, inner: Maths) -> Maths:
    """A command with one argument."""
    return Maths(latex=f"\\{command}{{{inner.latex}}}", typst=f"{function}({inner.typst})")


def stacked(command: str, above: Maths, below: Maths) -> Maths:
    """A fraction or a binomial."""
    return Maths(
        latex=f"\\{command}{{{above.latex}}}{{{below.latex}}}",
        typst=f"{command}({above.typst}, {below.typst})",
    )


_GREEK = (
    *(sign("\\" + name, name) for name in (
        "alpha", "beta", "gamma", "delta", "zeta", "eta", "theta", "kappa", "lambda", "mu", "nu",
        "xi", "pi", "rho", "sigma", "tau", "psi", "chi", "omega", "Gamma", "Delta", "Theta",
        "Lambda", "Sigma", "Phi", "Psi", "Omega",
    )),
    sign(r"\epsilon", "epsilon.alt"), sign(r"\varepsilon", "epsilon"), sign(r"\phi", "phi.alt"),
    sign(r"\varphi", "phi"), sign(r"\partial", "partial"), sign(r"\ell", "ell"),
)  # fmt: skip
_LETTERS = tuple(
    sign(c) for c in "aabbccddefffgghijkklmmnnppqrstuuvvwxxxxyyyzzABCDEFGHKLMNPQRSTUVWXYZ"
)
_INDICES = (*(sign(c) for c in "iijjkklmnnrst0011223"), sign(r"\infty", "infinity"))
_RELATIONS = (
    *(sign("="),) * 12, sign(r"\leq", "lt.eq"), sign(r"\geq", "gt.eq"), sign("<", "lt"),
    sign(">", "gt"), sign(r"\approx", "approx"), sign(r"\equiv", "equiv"),
    sign(r"\sim", "tilde.op"),
    sign(":="), sign(r"\neq", "eq.not"), sign(r"\to", "arrow.r"), sign(r"\in", "in"),
    sign(r"\subset", "subset"), sign(r"\propto", "prop"), sign(r"\Rightarrow", "arrow.r.double"),
)  # fmt: skip
_LINKS = (
    *(sign("+"), sign("-")) * 6, sign(r"\cdot", "dot.op"), sign(r"\times", "times"),
    sign(r"\pm", "plus.minus"), sign(r"\otimes", "times.o"), sign(r"\oplus", "plus.o"),
    sign(r"\circ", "compose"), sign(r"\cup", "union"), sign(r"\cap", "inter"), sign("/", r"\/"),
    sign(r"\wedge", "and"),
)  # fmt: skip
_COMMA = sign(",", r"\,")
_LOW_DOTS, _MID_DOTS = sign(r"\ldots", "dots.h"), sign(r"\cdots", "dots.h.c")
_NAMES = (
    *(
        sign("\\" + name, name)
        for name in ["sin", "cos", "tan", "log", "ln", "exp", "det", "dim", "ker"]
    ),
    *(
        sign(f"\\operatorname{{{name}}}", f'op("{name}")')
        for name in ["rank", "tr", "Var", "Cov", "sgn", "diag", "Hom", "span"]
    ),
)
_ACCENTS = (
    ("hat", "hat"), ("tilde", "tilde"), ("bar", "macron"), ("vec", "arrow"), ("dot", "dot"),
    ("overline", "overline"), ("ddot", "dot.double"), ("underline", "underline"),
)  # fmt: skip
_WORDS = ("if", "otherwise", "for", "and", "where", "or", "with", "when", "else", "on", "in")


def symbol(rng: random.Random) -> Maths:
    """A letter of any alphabet, now and then with an accent."""
    kind = rng.random()
    if kind < 0.58:
        return rng.choice(_LETTERS)
    if kind < 0.8:
        return rng.choice(_GREEK)
    letter = sign(rng.choice("ABCDEFGHIJKLMNOPQRSTUVWXYZ"))
    if kind < 0.84:
        return wrapped("mathbb", "bb", sign(rng.choice("RRNZQCEPFHK")))
    if kind < 0.89:
        return wrapped("mathcal", "cal", letter)
    if kind < 0.93:
        bold = sign(rng.choice((letter.latex, letter.latex.lower())))
        return Maths(latex=f"\\mathbf{{{bold.latex}}}", typst=f"upright(bold({bold.typst}))")
    if kind < 0.94:
        return wrapped("mathfrak", "frak", sign(rng.choice("abgmnpqABGS")))
    latex, typst = rng.choice(_ACCENTS)
    return wrapped(latex, typst, rng.choice((rng.choice(_LETTERS), rng.choice(_GREEK))))


def number(rng: random.Random) -> Maths:
    """A small number, seldom a decimal."""
    text = str(rng.choice((0, 1, 1, 1, 2, 2, 2, 3, 4, 5, 6, 8, 10, 12, rng.randint(0, 2000))))
    if rng.random() < 0.12:
        text += f".{rng.randint(0, 99)}"
    return sign(text)


def script(rng: random.Random) -> Maths:
    """What stands in an index: one sign mostly, or a short sum or list."""
    kind = rng.random()
    if kind < 0.62:
        return rng.choice(_INDICES[:-1])
    if kind < 0.76:
        return rng.choice(_INDICES[:-1]) + rng.choice(_LINKS[:2]) + rng.choice(_INDICES[10:-1])
    if kind < 0.86:
        return joined((rng.choice(_INDICES[:-1]), _COMMA, rng.choice(_INDICES[:-1])))
    if kind < 0.92:
        return rng.choice(_INDICES[:-1]) + rng.choice(_INDICES[:-1])
    if kind < 0.96:
        name = rng.choice(("max", "min", "in", "out", "eff", "ref", "total", "train"))
        return Maths(latex=f"\\text{{{name}}}", typst=f'upright("{name}")')
    return scripted(symbol(rng), below=rng.choice(_INDICES[:-1]))


def scripted(base: Maths, *, below: Maths | None = None, above: Maths | None = None) -> Maths:
    """A base with an index, an exponent, or both."""
    latex, typst = base.latex, base.typst
    for mark, inner in (("_", below), ("^", above)):
        if inner is not None:
            latex, typst = f"{latex}{mark}{{{inner.latex}}}", f"{typst}{mark}({inner.typst})"
    return Maths(latex=latex, typst=typst)


def factor(rng: random.Random, depth: int = 0) -> Maths:
    """A symbol with or without scripts and primes, or something larger that holds terms."""
    kind = rng.random()
    if depth < 2 and kind < 0.34:
        return rng.choices(_LARGE, _LARGE_WEIGHTS)[0](rng, depth + 1)
    if kind < 0.4:
        return number(rng)
    base = symbol(rng)
    if rng.random() < 0.08:
        primes = "'" * rng.choice((1, 1, 2))
        base = Maths(latex=base.latex + primes, typst=base.typst + primes)
        return scripted(base, below=script(rng)) if rng.random() < 0.3 else base
    kind = rng.random()
    below = script(rng) if kind < 0.42 else None
    above = script(rng) if 0.3 < kind < 0.6 else None
    return scripted(base, below=below, above=above)


def term(rng: random.Random, depth: int = 0) -> Maths:
    """One to three factors."""
    factors = [factor(rng, depth) for _ in range(rng.choice((1, 1, 1, 2, 2, 3)))]
    # A number comes first, and one alone: a second would read as more of its digits.
    numbers = [f for f in factors if f.latex[0].isdigit()]
    return joined(numbers[:1] + [f for f in factors if not f.latex[0].isdigit()])


def expression(rng: random.Random, depth: int = 0, *, terms: int = 0) -> Maths:
    """Terms with signs between."""
    count = terms or rng.choice((1, 1, 2, 2, 3))
    parts = [term(rng, depth)]
    if rng.random() < 0.08:
        parts.insert(0, sign("-"))
    for _ in range(count - 1):
        parts += [rng.choice(_LINKS), term(rng, depth)]
    return joined(parts)


def _fraction(rng: random.Random, depth: int) -> Maths:
    above, below = expression(rng, depth + 1), expression(rng, depth + 1)
    if rng.random() < 0.25:
        over, under = rng.choice(((sign("d"), sign("d")), (_GREEK[-2], _GREEK[-2])))
        above, below = over + symbol(rng), under + symbol(rng)
    elif rng.random() < 0.2:
        above, below = sign("1"), sign(rng.choice("2234n"))
    return stacked("frac", above, below)


def _root(rng: random.Random, depth: int) -> Maths:
    inner = expression(rng, depth + 1)
    if rng.random() < 0.15:
        degree = rng.choice("345n")
        return Maths(
            latex=f"\\sqrt[{degree}]{{{inner.latex}}}", typst=f"root({degree}, {inner.typst})"
        )
    return wrapped("sqrt", "sqrt", inner)


_FENCES = (
    *(("(", ")", "(", ")"),) * 6, ("[", "]", "[", "]"), ("[", "]", "[", "]"),
    (r"\{", r"\}", "{", "}"), ("|", "|", "|", "|"), (r"\|", r"\|", "‖", "‖"),
    (r"\langle ", r"\rangle", "⟨", "⟩"), (r"\lfloor ", r"\rfloor", "⌊", "⌋"),
)  # fmt: skip


def fenced(inner: Maths, fence: tuple[str, str, str, str]) -> Maths:
    """Brackets as high as what they hold."""
    opening = fence[0] if inner.latex[:1].isalpha() else fence[0].rstrip()
    return Maths(
        latex=f"{opening}{inner.latex}{fence[1]}", typst=f"lr({fence[2]} {inner.typst} {fence[3]})"
    )


def _fenced(rng: random.Random, depth: int) -> Maths:
    inner = fenced(expression(rng, depth + 1), rng.choice(_FENCES))
    return scripted(inner, above=script(rng)) if rng.random() < 0.3 else inner


def _applied(rng: random.Random, depth: int) -> Maths:
    """A function and its arguments."""
    name = rng.choice(_NAMES) if rng.random() < 0.45 else factor(rng, 2)
    parts = [term(rng, 2)]
    for _ in range(rng.choice((0, 0, 0, 1, 1, 2))):
        parts += [_COMMA, rng.choice((term(rng, 2), _LOW_DOTS))]
    return name + fenced(joined(parts), _FENCES[0])


def _range(rng: random.Random) -> tuple[Maths, Maths | None]:
    """What stands under a sum, and above it."""
    index = sign(rng.choice("ijkmnlst"))
    kind = rng.random()
    if kind < 0.6:
        start = sign(rng.choice("0111123"))
        stop = rng.choice((sign(rng.choice("nNmMKTd")), sign(r"\infty", "infinity"), script(rng)))
        return joined((index, sign("="), start)), stop
    if kind < 0.75:
        return joined((index, sign(r"\in", "in"), symbol(rng))), None
    if kind < 0.85:
        return joined((index, _COMMA, sign(rng.choice("jklm")))), None
    return index, None


def _sum(rng: random.Random, depth: int) -> Maths:
    head = rng.choice(
        (
            *(sign(r"\sum", "sum"),) * 6, sign(r"\prod", "product"), sign(r"\bigcup", "union.big"),
            sign(r"\bigoplus", "plus.o.big"), sign(r"\bigcap", "inter.big"),
        )
    )  # fmt: skip
    below, above = _range(rng)
    return scripted(head, below=below, above=above) + term(rng, depth)


def _integral(rng: random.Random, depth: int) -> Maths:
    head = rng.choice((*(sign(r"\int", "integral"),) * 6, sign(r"\oint", "integral.cont"),
                       sign(r"\iint", "integral.double")))  # fmt: skip
    if head.latex == r"\int" and rng.random() < 0.65:
        head = scripted(head, below=rng.choice((number(rng), symbol(rng), script(rng))),
                        above=rng.choice((number(rng), symbol(rng), _INDICES[-1])))  # fmt: skip
    elif rng.random() < 0.5:
        head = scripted(head, below=symbol(rng))
    upright = Maths(latex=r"\mathrm{d}", typst="upright(d)")
    letter = rng.choice((sign("d"), sign("d"), upright))
    return joined((head, term(rng, depth), letter, rng.choice((*_LETTERS, *_GREEK[:24]))))


def _limit(rng: random.Random, depth: int) -> Maths:
    name = rng.choice(("lim", "lim", "max", "min", "sup", "inf"))
    goal = rng.choice((sign(r"\infty", "infinity"), sign("0"), symbol(rng)))
    link = sign(r"\to", "arrow.r") if name == "lim" else sign(r"\in", "in")
    below = joined((sign(rng.choice("nxhtk")), link, goal))
    return scripted(sign("\\" + name, name), below=below) + term(rng, depth)


def _binomial(rng: random.Random, depth: int) -> Maths:
    above, below = rng.choice(_LETTERS), rng.choice(_INDICES[:-1])
    return stacked("binom", above, below)


_LARGE = (_fraction, _root, _fenced, _applied, _sum, _integral, _limit, _binomial)
_LARGE_WEIGHTS = (26, 8, 16, 20, 14, 9, 3, 2)


def _cell(rng: random.Random) -> Maths:
    kind = rng.random()
    if kind < 0.4:
        return number(rng)
    if kind < 0.8:
        return scripted(rng.choice(_LETTERS), below=script(rng)) if kind < 0.65 else symbol(rng)
    return expression(rng, 2, terms=1)


def matrix(rng: random.Random) -> Maths:
    """A matrix or a column of two to five rows, with dots for what is left out in some."""
    name = rng.choice(("pmatrix", "bmatrix", "bmatrix", "vmatrix"))
    delimiter = {"p": "(", "b": "[", "v": "|"}[name[0]]
    rows, columns = rng.randint(2, 4), rng.choice((1, 2, 2, 3, 3, 4))
    cells = [[_cell(rng) for _ in range(columns)] for _ in range(rows)]
    if rows > 2 and columns > 2 and rng.random() < 0.4:
        letter, places = rng.choice(_LETTERS), ("1", "2", rng.choice("nmN"))
        kept = [[scripted(letter, below=sign(y + x, f"{y} {x}")) for x in places] for y in places]
        for row in kept:
            row.insert(2, _MID_DOTS)
        down, across = sign(r"\vdots", "dots.v"), sign(r"\ddots", "dots.down")
        cells = [*kept[:2], [down, down, across, down], kept[2]]
    latex = r"\\".join("&".join(cell.latex for cell in row) for row in cells)
    typst = "; ".join(", ".join(cell.typst for cell in row) for row in cells)
    return Maths(
        latex=f"\\begin{{{name}}}{latex}\\end{{{name}}}",
        typst=f'mat(delim: "{delimiter}", {typst})',
    )


def cases(rng: random.Random) -> Maths:
    """A left side and two to four values, each with the condition that it stands for."""
    rows: list[tuple[Maths, Maths]] = []
    for _ in range(rng.choice((2, 2, 2, 3, 4))):
        word, goal = rng.choice(_WORDS), rng.choice((number(rng), symbol(rng)))
        condition = joined((symbol(rng), rng.choice(_RELATIONS), goal))
        if rng.random() < 0.5:
            condition = Maths(latex=f"\\text{{{word}}}", typst=f'"{word} "') + condition
        rows.append((expression(rng, 1), condition))
    if rng.random() < 0.3:
        rows[-1] = (rows[-1][0], Maths(latex=r"\text{otherwise}", typst='"otherwise"'))
    if rng.random() < 0.5:
        rows = [(value + _COMMA, condition) for value, condition in rows]
    latex = r"\\".join(f"{a.latex}&{b.latex}" for a, b in rows)
    typst = ", ".join(f"{a.typst} & {b.typst}" for a, b in rows)
    body = Maths(latex=f"\\begin{{cases}}{latex}\\end{{cases}}", typst=f"cases({typst})")
    return joined((factor(rng, 1), sign("="), body))


def relation(rng: random.Random) -> Maths:
    """Expressions with relations between them."""
    parts = [expression(rng)]
    for _ in range(rng.choice((1, 1, 1, 2))):
        parts += [rng.choice(_RELATIONS), expression(rng)]
    return joined(parts)


def with_matrix(rng: random.Random) -> Maths:
    """An equation that holds one to three matrices."""
    parts = [factor(rng, 2), sign("="), matrix(rng)]
    for _ in range(rng.choice((0, 0, 1, 1, 2))):
        parts += [rng.choice((matrix(rng), sign("=") + matrix(rng), sign("+") + matrix(rng)))]
    return joined(parts)


def aligned(rows: Sequence[tuple[Maths | None, Maths]]) -> Maths:
    """Lines with their relation, which stands at the head of each right side, below each other."""
    latex = r"\\".join(f"{left.latex if left else ''}&{right.latex}" for left, right in rows)
    typst = " \\ ".join(f"{left.typst if left else ''} & {right.typst}" for left, right in rows)
    return Maths(latex=f"\\begin{{aligned}}{latex}\\end{{aligned}}", typst=typst)


def derivation(rng: random.Random) -> Maths:
    """Two to six lines: one left side and its changes, or equations of their own."""
    system = rng.random() < 0.4
    rows: list[tuple[Maths | None, Maths]] = []
    for line in range(rng.choice((2, 2, 3, 3, 4, 5, 6))):
        left = expression(rng, 1, terms=1) if system or line == 0 else None
        rows.append((left, rng.choice(_RELATIONS[:15]) + expression(rng)))
    return aligned(rows)


def split_equation(latex: str, typst: str) -> tuple[Maths, Maths] | None:
    """Both sides of a formula with one equals sign that stands in no group; else None."""
    left, _, right = latex.partition("=")
    typst_left, _, typst_right = typst.partition(" = ")
    if latex.count("=") != 1 or typst.count("=") != 1 or "&" in typst or not left or not right:
        return None
    groups = ("{}", "()", "[]")
    if any(side.count(a) != side.count(b) for side in (left, typst_left) for a, b in groups):
        return None
    return Maths(latex=left, typst=typst_left), Maths(latex=right, typst=typst_right)


def steps(rng: random.Random, equations: Sequence[tuple[Maths, Maths]]) -> Maths:
    """Equations below each other, or the right sides of some as the changes of one left side."""
    system = rng.random() < 0.4
    rows: list[tuple[Maths | None, Maths]] = []
    for place, (left, right) in enumerate(equations):
        equals = rng.choice(_RELATIONS[:13]) if place else sign("=")
        rows.append((left if system or not place else None, equals + right))
    return aligned(rows)


def made_up(rng: random.Random, *, longest: int, tall: bool = True) -> Maths:
    """A formula of at most `longest` LaTeX characters, of one line where not `tall`."""
    makers: tuple[Maker, ...] = (relation, derivation, with_matrix, cases)
    weights = (55, 24, 12, 9) if longest > 90 else (88, 0, 7, 5)
    if not tall:
        weights = (1, 0, 0, 0)
    for _ in range(12):
        made = rng.choices(makers, weights)[0](rng)
        if 8 < len(made.latex) <= longest:
            return made
    return joined((symbol(rng), sign("="), rng.choice(_LETTERS)))


_BRACKETS = {r"\(": "(", r"\)": ")"}
_BRACKET = re.compile(r"\\[()]|[()]|\"[^\"]*\"|\\.")


def with_growing_brackets(typst: str) -> str:
    """Typst maths of pandoc with round brackets that grow, as `\\left(` and `\\right)` do.

    Pairs stay as they are where a bracket of typst's own would come to mean a group.
    """
    stack: list[tuple[str, int]] = []
    changed: list[int] = []
    for match in _BRACKET.finditer(typst):
        token, place = match[0], match.start()
        if token in ("(", r"\("):
            stack.append((token, place))
        elif token in (")", r"\)"):
            if not stack or (stack[-1][0] == "(") != (token == ")"):
                return typst
            opened = stack.pop()[1]
            before, after = typst[:opened].rstrip()[-1:], typst[match.end() :].lstrip()[:1]
            if token == r"\)" and before not in ("/", "^", "_", "√") and after != "/":
                changed += [opened, place]
    if stack:
        return typst
    letters = list(typst)
    for place in changed:
        letters[place] = ""
    return "".join(letters)
