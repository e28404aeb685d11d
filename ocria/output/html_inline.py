"""The running text of an element, with the inline marks that a block's text may hold."""

from ocria.output.html_lexemes import Piece
from ocria.output.html_tree import Element

_MARKS = {"b": "**", "strong": "**", "i": "*", "em": "*"}
# Elements that stand on lines of their own.
_BLOCKS = frozenset(
    {"p", "div", "tr", "li", "h1", "h2", "h3", "h4", "h5", "h6", "table", "ul", "ol", "hr"}
)
_SHIFTABLE = {"sup": "0123456789+-=()ni ", "sub": "0123456789+-=() "}
_SHIFTED = {"sup": "⁰¹²³⁴⁵⁶⁷⁸⁹⁺⁻⁼⁽⁾ⁿⁱ ", "sub": "₀₁₂₃₄₅₆₇₈₉₊₋₌₍₎ "}
_UNSHIFTED = {"sup": "^", "sub": "_"}


def inline_text(element: Element) -> str:
    """Text of `element` in lines: white space as a browser shows it, `br` and blocks as breaks.

    Bold and italics become Markdown's marks, `math` a formula between dollars, raised and lowered
    digits their Unicode characters, a checkbox `[x]` or `[ ]`, a picture its description.
    """
    text = "".join(_written(child) for child in element.children)
    lines = (" ".join(line.split()) for line in text.split("\x00"))
    return "\n".join(line for line in lines if line)


def one_line(element: Element) -> str:
    """The same on one line, for cells and headings."""
    return " ".join(inline_text(element).split())


def tex_of(element: Element) -> str:
    """TeX of a `math` element, without dollars around it."""
    return element.text().strip().strip("$").strip()


def _written(node: Element | Piece) -> str:
    # NUL stands for a line break until white space has been joined: cleaned text holds none.
    if isinstance(node, Piece):
        return node.value
    match node.name:
        case "br":
            return "\x00"
        case "math":
            return _formula(node)
        case "input":
            return _box(node)
        case "img":
            return node.attributes.get("alt", "")
        case "sup" | "sub":
            return _shifted(node)
        case "td" | "th":
            return f" {_below(node)} "
        case "code":
            return _code(node)
    body = _below(node)
    if node.name in _MARKS:
        return _marked(body, _MARKS[node.name])
    return f"\x00{body}\x00" if node.name in _BLOCKS else body


def _below(element: Element) -> str:
    return "".join(_written(child) for child in element.children)


def _formula(element: Element) -> str:
    tex = " ".join(tex_of(element).split())
    return f"${tex}$" if tex and "$" not in tex else tex


def _code(element: Element) -> str:
    text = element.text()
    return f"`{text}`" if text.strip() and "`" not in text else text


def _box(element: Element) -> str:
    if element.attributes.get("type", "") in ("checkbox", "radio"):
        return "[x] " if "checked" in element.attributes else "[ ] "
    return element.attributes.get("value", "")


def _marked(body: str, mark: str) -> str:
    """`body` between marks that hug it, as Markdown wants; unmarked where they could not pair."""
    core = body.strip(" \n\t\x00")
    if not core or "*" in core or "\x00" in core:
        return body
    before, _, after = body.partition(core)
    return f"{before}{mark}{core}{mark}{after}"


def _shifted(element: Element) -> str:
    """Raised or lowered text: Unicode's characters where it has them all, else after a sign."""
    body, kind = _below(element), element.name
    if not body.strip():
        return body
    if set(body) <= set(_SHIFTABLE[kind]):
        return body.translate(str.maketrans(_SHIFTABLE[kind], _SHIFTED[kind]))
    return _UNSHIFTED[kind] + body
