"""Text from a page, written so that a Markdown reader shows it as it stood there.

A page may show `# 5`, `<b>`, `[1]: x` or `![](address)`; none of it may become structure, a tag,
or a request to some address when the Markdown is rendered.
"""

import re

from ocria.output.inline import FENCE, runs

_TAG_OPEN = re.compile(r"<(?=[A-Za-z/!?])")
_ACTIVE = re.compile(
    r"\\(?=[!-/:-@\[-`{-~]|$)"
    r"|<(?=[A-Za-z/!?])"
    r"|&(?=\#?\w{1,31};)"
    r"|(?<=\])[(:]"  # a link or picture, or the address of one
    r"|\*(?=\S)|(?<=\S)\*"
    r"|(?<![^\W_])_(?=\S)"
    r"|(?<!/)~(?=\S)",  # not the home folder in an address
    re.MULTILINE,
)
_BLOCK_START = re.compile(
    r"(?P<number>\d{1,9})(?=[.)](?:\s|$))"
    r"|(?=\#{1,6}(?:\s|$))"
    r"|(?=[-+*](?:\s|$))"
    r"|(?=>)"
    r"|(?=\${2})"
    # Rules, underlines of headings and the line under a table's head.
    r"|(?=(?:[-=:|][-=:|\s]*|[*_][*_\s]*)$)"
)
_CLOSING_HASHES = re.compile(r"(?:^|(?<=\s))(?=#+$)")


def escape_paragraph(text: str) -> str:
    """Markdown of a paragraph; its line breaks stay, blank lines go."""
    lines = (line.strip() for line in text.split("\n"))
    escaped = _escape_inline("\n".join(line for line in lines if line))
    markdown = "\n".join(_escape_block_start(line) for line in escaped.split("\n"))
    # An address for a link is read before code spans are, which hide the bracket from above.
    defines_link = markdown.startswith("[") and "]:" in markdown
    return "\\" + markdown if defines_link else markdown


def escape_line(text: str) -> str:
    """Markdown of `text` as one line, for a list item or anything else that starts a block."""
    return escape_paragraph(" ".join(text.split()))


def escape_heading(text: str) -> str:
    """Markdown of a heading's text, after the marks of its level."""
    return _CLOSING_HASHES.sub(r"\\", _escape_inline(" ".join(text.split())))


def escape_cell(text: str) -> str:
    """Markdown of a cell of a pipe table."""
    # A row is cut at its pipes before anything else is read, code spans included.
    return _escape_inline(" ".join(text.split()), in_cell=True).replace("|", r"\|")


def formula_block(tex: str) -> str:
    """`$$…$$` around TeX that cannot end the block itself, nor open a tag."""
    lines = (line.strip() for line in re.sub(r"\${2,}", "$", tex).split("\n"))
    body = _TAG_OPEN.sub("< ", "\n".join(line for line in lines if line)).strip("$ \n")
    return f"$$\n{body}\n$$" if "\n" in body else f"$${body}$$"


def code_block(text: str) -> str:
    """A fenced block whose fence is longer than any in `text`."""
    longest = max((len(ticks) for ticks in re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}\n{text}\n{fence}"


def _escape_block_start(line: str) -> str:
    match = _BLOCK_START.match(line)
    return line if match is None else f"{match['number'] or ''}\\{line[match.end() :]}"


def _escape_inline(text: str, *, in_cell: bool = False) -> str:
    parts = []
    # Cleaned text holds no NUL: it can stand for the backticks that would open a fence. They must
    # not pair with others, so they leave as entities: a backslash would still let them close.
    for run in runs(FENCE.sub(lambda match: "\x00" * len(match.group()), text)):
        if run.mark == "code" and not (in_cell and r"\|" in run.source):
            # The same to a reader, and no line of it can be taken for the start of a block.
            parts.append(run.source.replace("\n", " ").replace("\x00", ""))
        elif run.mark == "formula":
            # A backslash would change a formula; to TeX a space means nothing.
            parts.append(_TAG_OPEN.sub("< ", run.source))
        elif run.mark in ("strong", "emphasis"):
            marks = "*" * ((len(run.source) - len(run.body)) // 2)
            parts.append(f"{marks}{_escape_active(run.body)}{marks}")
        else:
            parts.append(_escape_active(run.source))
    return "".join(parts).replace("\x00", "&#96;")


def _escape_active(text: str) -> str:
    return _ACTIVE.sub(r"\\\g<0>", text)
