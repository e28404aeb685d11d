"""LaTeX `tabular` environments as tables: the form in which pdf-parse-bench states its truth."""

from __future__ import annotations

import re

from ocria.eval.tables import LooseCell, Table, place_cells

_ENVIRONMENT = re.compile(r"\\(begin|end)\{(?:tabular[*xy]?|array|longtable)\}")
_INNER = re.compile(
    r"\\begin\{(tabular[*xy]?|array)\}(?:\[[^\]]*\])?\s*\{(?:[^{}]|\{[^{}]*\})*\}"
    r"((?:(?!\\(?:begin|end)\{).)*)\\end\{\1\}",
    re.DOTALL,
)
_RULES = re.compile(
    r"\\(?:toprule|midrule|bottomrule|hline|endhead|endfoot|endfirsthead|endlastfoot)\b"
    r"|\\(?:cline|cmidrule|addlinespace|noalign|rowcolor|color|specialrule|arrayrulecolor|caption|label)"
    r"(?:\s*\([^)]*\)|\s*\[[^\]]*\]|\s*\{[^{}]*\})*"
)
_COMMENT = re.compile(r"(?<!\\)%[^\n]*")
_ROW_END = re.compile(r"\\\\(?:\s*\[[^\]]*\])?|\\tabularnewline\b")
_SPAN = re.compile(r"\s*\\(multicolumn|multirow)\s*")
_STYLES = re.compile(
    r"\\(?:small|footnotesize|scriptsize|tiny|normalsize|large|bfseries|itshape|centering"
    r"|raggedright|arraybackslash|displaystyle|textstyle)\b\s*"
)
_WRAPPER = re.compile(
    r"\\(?:text(?:bf|it|tt|rm|sf|sc|normal|superscript|subscript)?|emph|makecell|thead|shortstack"
    r"|underline|mbox|fbox|rotatebox\{[^{}]*\}|cellcolor(?:\[[^\]]*\])?\{[^{}]*\}"
    r"|textcolor\{[^{}]*\})\s*(?:\[[^\]]*\])?(?=\{)"
)
_COLOUR = re.compile(r"\\cellcolor(?:\[[^\]]*\])?\{[^{}]*\}")
_VERBATIM = re.compile(r"""\\verb(["|+!])(.*?)\1""")
_SIGNS = {
    r"\%": "%", r"\&": "&", r"\_": "_", r"\#": "#", r"\$": "$", r"\{": "{", r"\}": "}",
    "~": " ", "---": "—", "--": "–", r"\textendash": "–", r"\textless ": "<", r"\textless": "<",
    r"\textgreater ": ">", r"\textgreater": ">", r"\qquad": " ", r"\quad": " ", r"\,": " ",
    r"\checkmark": "✓", r"\ddag": "‡", r"\dag": "†", r"\copyright": "©", r"\pounds": "£",
    r"\S": "§", r"\P": "¶",
}  # fmt: skip
_LONE_SIGNS = {
    r"\times": "×", r"\sim": "~", r"\pm": "±", r"\uparrow": "↑", r"\downarrow": "↓",
    r"\leq": "≤", r"\geq": "≥", r"\le": "≤", r"\ge": "≥", r"\checkmark": "✓", r"\cdot": "·",
    r"\rightarrow": "→", r"\approx": "≈", "-": "-", r"\to": "→", r"\dagger": "†", "<": "<",
    ">": ">", r"\infty": "∞",
}  # fmt: skip


def latex_tables(source: str) -> tuple[Table, ...]:
    """Every tabular of a source; formulas in cells keep their dollars unless they are one sign."""
    return tuple(_table(body) for body in _outer_bodies(source))


def _outer_bodies(source: str) -> list[str]:
    """What stands between begin and end of each environment that is in no other."""
    bodies: list[str] = []
    depth = start = 0
    for mark in _ENVIRONMENT.finditer(source):
        if mark.group(1) == "begin":
            start = start if depth else mark.end()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                bodies.append(source[start : mark.start()])
    return bodies


def _table(body: str) -> Table:
    _, body = _argument(body.lstrip())  # the column specification
    lines = _ROW_END.split(_RULES.sub(" ", _COMMENT.sub("", _protect_cells(body))))
    waiting: dict[int, int] = {}
    rows: list[list[LooseCell]] = []
    for line in lines:
        if line.strip():
            rows.append(_row(line, waiting))
    return place_cells(rows)


def _protect_cells(body: str) -> str:
    """Line breaks inside a cell do not end a row."""
    while (flat := _INNER.sub(lambda m: m.group(2).replace("\\\\", " "), body)) != body:
        body = flat
    return re.sub(
        r"\\(makecell|thead|shortstack)(\[[^\]]*\])?\{([^{}]*)\}",
        lambda match: match.group(3).replace("\\\\", " "),
        body,
    )


def _row(line: str, waiting: dict[int, int]) -> list[LooseCell]:
    """Cells of a row; `waiting` counts, for each column, the rows that a cell above still covers.

    LaTeX leaves an empty cell below a multirow; HTML leaves none.
    """
    cells: list[LooseCell] = []
    column = 0
    for source in re.split(r"(?<!\\)&", line):
        cell = _cell(source)
        covered = waiting.get(column, 0) > 0
        for place in range(column, column + cell.colspan):
            waiting[place] = waiting.get(place, 0) - 1 if covered else cell.rowspan - 1
        if not covered:
            cells.append(cell)
        column += cell.colspan
    return cells


def _cell(source: str) -> LooseCell:
    rowspan = colspan = 1
    while match := _SPAN.match(source):
        rest = re.sub(r"^\s*\[[^\]]*\]", "", source[match.end() :])
        count, rest = _argument(rest)
        _, rest = _argument(re.sub(r"^\s*\[[^\]]*\]", "", rest))
        source, _ = _argument(re.sub(r"^\s*\[[^\]]*\]", "", rest))
        number = int(count) if count.strip().isdecimal() else 1
        if match.group(1) == "multicolumn":
            colspan = max(number, 1)
        else:
            rowspan = max(number, 1)
    return LooseCell(text=_text(source), rowspan=rowspan, colspan=colspan)


def _argument(source: str) -> tuple[str, str]:
    """The next braced argument, or the next character, and what follows it."""
    source = source.lstrip()
    if not source.startswith("{"):
        return source[:1], source[1:]
    depth = 0
    for index, char in enumerate(source):
        if char in "{}" and source[index - 1 : index] != "\\":
            depth += 1 if char == "{" else -1
            if depth == 0:
                return source[1:index], source[index + 1 :]
    return source[1:], ""


def _text(source: str) -> str:
    source = _VERBATIM.sub(lambda match: _protect_signs(match.group(2)), source)
    source = _unwrapped(re.sub(r"\\[()]", "$", _COLOUR.sub("", source)))
    parts = re.split(r"((?<!\\)\$[^$]*\$)", source)
    return " ".join("".join(_formula(p) if p[:1] == "$" else _words(p) for p in parts).split())


def _protect_signs(text: str) -> str:
    return re.sub(r"([%&_#$])", r"\\\1", text)


def _unwrapped(source: str) -> str:
    """Without commands that change how their argument looks, the argument kept."""
    while match := _WRAPPER.search(source):
        inner, rest = _argument(source[match.end() :])
        source = source[: match.start()] + inner + rest
    return source


def _formula(source: str) -> str:
    inner = source.strip("$").strip()
    if re.fullmatch(r"[\d.,+\- ]*", inner):
        return inner
    return _LONE_SIGNS.get(inner, source)


def _words(source: str) -> str:
    text = _STYLES.sub("", source)
    for sign, plain in _SIGNS.items():
        text = text.replace(sign, plain)
    return re.sub(r"(?<!\\)[{}]", "", text)
