"""Blocks to typst source to PDF, every block in a colour of its own.

The low three bits of red, green and blue carry the block's number: too little to see, and enough
for the reader (readback.py) to tell whose ink is whose without any position from typst.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

import typst

from .blocks import INK_COLOUR, Block, Cell, Run, Table
from .fonts import Family, FontShelf

MAX_BLOCKS = 500
Ink = tuple[int, int, int]
BLACK: Ink = (16, 16, 16)
WHITE: Ink = (248, 248, 248)


def block_colour(number: int, base: Ink) -> str:
    """A typst colour: `base` with the block number in its low bits."""
    bits = (number >> 6 & 7, number >> 3 & 7, number & 7)
    red, green, blue = (channel & 0xF8 | low for channel, low in zip(base, bits, strict=True))
    return f"rgb({red},{green},{blue})"


# In a colour without a number: readback takes the dots for decoration.
LEADERS = "#box(width: 1fr, text(fill: rgb(64,64,64), repeat[#h(1pt).#h(1pt)]))"


def grey(level: int) -> str:
    """A typst grey that carries no block number."""
    return f"rgb({level & 0xF8},{level & 0xF8},{level & 0xF8})"


def quoted(text: str) -> str:
    """A typst string literal; typst takes no mark-up inside one."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


@dataclass(frozen=True, kw_only=True)
class Style:
    """How a block is set. Sizes in points; `before` and `after` are the space around it."""

    size_pt: float = 10.0
    weight: str = "regular"
    italic: bool = False
    align: str = "left"
    justify: bool = False
    leading_em: float = 0.65
    first_indent_em: float = 0.0
    hanging_em: float = 0.0
    indent_pt: float = 0.0
    before_pt: float = 4.0
    after_pt: float = 4.0
    base: Ink = BLACK
    family: str | None = None
    together: bool = False
    spacing_pt: float = 0.0
    fill: str | None = None
    frame: bool = False
    width: str = "100%"


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """The page: pixels wanted, pixels a point, margins in points, columns, running parts.

    `condense` narrows what is printed: a point is `scale` pixels high, `scale * condense` wide.
    """

    width_px: int
    height_px: int
    scale: float
    margins_pt: tuple[float, float, float, float]
    columns: int = 1
    gutter_pt: float = 14.0
    column_rule: bool = False
    lang: str = "en"
    hyphenate: bool = True
    fill: str = "white"
    condense: float = 1.0

    @property
    def width_pt(self) -> float:
        return self.width_px / (self.scale * self.condense)

    @property
    def height_pt(self) -> float:
        return self.height_px / self.scale


@dataclass
class Manuscript:
    """A document in the making: typst source with numbered blocks."""

    sheet: Sheet
    family: Family
    blocks: list[Block] = field(default_factory=list)
    body: list[str] = field(default_factory=list)
    header: str = ""
    footer: str = ""
    first_page: int = 1
    background: str = ""

    def raw(self, source: str) -> None:
        """Typst source that belongs to no block (space, rules, grids)."""
        self.body.append(source)

    def register(self, block: Block) -> int:
        """Gives a block its number without placing it."""
        if len(self.blocks) >= MAX_BLOCKS:
            raise ValueError("too many blocks for one document")
        self.blocks.append(block)
        return len(self.blocks)

    def add(self, block: Block, style: Style) -> None:
        """Places a block in the flow."""
        self.body.append(self.placed(block, style))

    def placed(self, block: Block, style: Style) -> str:
        """The source of a block, to be put anywhere."""
        return _block_source(block, self.register(block), style)

    def inline(self, block: Block, style: Style) -> str:
        """The source of a block as bare text, for headers and grids."""
        number = self.register(block)
        return f"#text({_text_options(number, style)})[{_runs_source(block.runs)}]"

    def fitted(self, block: Block, style: Style, *, smallest: float) -> None:
        """Places a block alone on the page, shrunk where it is too large, `smallest` at most."""
        source = self.placed(block, replace(style, width="auto"))
        factors = [smallest ** (step / 3) for step in range(4)]
        self.raw(
            f"#layout(size => {{ let body = [{source}]\n"
            f"for f in ({', '.join(f'{factor:.3f}' for factor in factors)}) {{\n"
            "let inner = (width: size.width / f, height: size.height / f)\n"
            "let taken = measure(body, width: inner.width)\n"
            "if (taken.width <= inner.width + 0.1pt and taken.height <= inner.height) "
            f"or f == {factors[-1]:.3f} {{\n"
            "return scale(f * 100%, origin: top + left, reflow: true, "
            "block(width: inner.width, body)) } } })"
        )

    def source(self) -> str:
        """The whole typst document."""
        sheet = self.sheet
        top, right, bottom, left = sheet.margins_pt
        page = [
            f"width: {sheet.width_pt:.3f}pt, height: {sheet.height_pt:.3f}pt, fill: {sheet.fill}",
            f"margin: (top: {top}pt, right: {right}pt, bottom: {bottom}pt, left: {left}pt)",
            f"columns: {sheet.columns}",
        ]
        for name in ("header", "footer", "background"):
            if content := getattr(self, name):
                page.append(f"{name}: [{content}]")
        head = (
            f"#set page({', '.join(page)})\n#set columns(gutter: {sheet.gutter_pt}pt)\n"
            f"#set text(font: {quoted(self.family.name)}, lang: {quoted(sheet.lang)}, "
            f"hyphenate: {str(sheet.hyphenate).lower()})\n"
            f"#counter(page).update({self.first_page})\n"
        )
        return head + "\n".join(self.body)


def _text_options(number: int, style: Style) -> str:
    options = [
        f"size: {style.size_pt:.2f}pt",
        f"fill: {block_colour(number, style.base)}",
        f"weight: {quoted(style.weight)}",
        f"style: {quoted('italic' if style.italic else 'normal')}",
    ]
    if style.family:
        options.append(f"font: {quoted(style.family)}")
    if style.spacing_pt:
        options.append(f"tracking: {style.spacing_pt:.2f}pt")
    return ", ".join(options)


def _runs_source(runs: Sequence[Run]) -> str:
    return "".join(_run_source(run) for run in runs)


def _run_source(run: Run) -> str:
    match run.style:
        case "math":
            return f"${run.ink}$"
        case "bold":
            return f"#strong({quoted(run.ink)})"
        case "italic":
            return f"#emph({quoted(run.ink)})"
        case "code":
            return f"#raw({quoted(run.ink)})"
        case "super":
            return f"#super({quoted(run.ink)})"
        case "space":
            return f"#h({run.ink})"
        case "leaders":
            return LEADERS
        case "drawn":
            return run.ink
        case _:
            return f"#{quoted(run.ink)}"


def _block_source(block: Block, number: int, style: Style) -> str:
    if block.table is not None:
        inner = _table_source(block.table, number, style)
    elif block.latex is not None:
        inner = f"$ {block.runs[0].ink} $"
    elif block.type == "code":
        inner = f"#raw({quoted(block.ink)}, block: true)"
    elif block.type == "figure":
        inner = block.runs[0].ink.replace("COLOUR", block_colour(number, style.base))
    else:
        inner = _runs_source(block.runs).replace(INK_COLOUR, block_colour(number, style.base))
    sticky = block.type[0] == "h" and block.type[1:].isdigit()
    together = style.together or sticky or not block.splittable
    outer = [
        f"width: {style.width}, above: {style.before_pt:.1f}pt, below: {style.after_pt:.1f}pt",
        f"breakable: {str(not together).lower()}, sticky: {str(sticky).lower()}",
        f"inset: (left: {style.indent_pt:.1f}pt)",
    ]
    if style.frame:
        outer[-1] = "inset: 5pt, stroke: 0.5pt + " + block_colour(number, style.base)
    if style.fill:
        outer.append(f"fill: {style.fill}")
    par = (
        f"leading: {style.leading_em:.2f}em, justify: {str(style.justify).lower()}, "
        f"hanging-indent: {style.hanging_em:.2f}em, "
        f"first-line-indent: (amount: {style.first_indent_em:.2f}em, all: true)"
    )
    return (
        f"#block({', '.join(outer)})[#set par({par})\n#set text({_text_options(number, style)})\n"
        f"#set align({style.align})\n{inner}]"
    )


def _table_source(table: Table, number: int, style: Style) -> str:
    colour = block_colour(number, style.base)
    stroke = {
        "all": f"0.5pt + {colour}",
        "none": "none",
        "rows": f"(x: none, y: 0.5pt + {colour})",
        "head": "none",
        "frame": "none",
    }[table.rules]
    columns = "(" + ", ".join(table.widths or ("auto",) * len(table.align)) + ",)"
    align = "(" + ", ".join(table.align) + ",)"
    cells = _table_rules(table, colour)
    for y, row in enumerate(table.rows):
        cells += [_cell_source(cell, x, y, table, style) for x, cell in enumerate(row) if cell]
    across, down = table.pads_pt or (table.inset_pt, table.inset_pt * 0.7)
    inset = f"(x: {across:.1f}pt, y: {down:.1f}pt)"
    return (
        f"#table(columns: {columns}, align: {align}, stroke: {stroke}, inset: {inset}, "
        + ", ".join(cells)
        + ")"
    )


def _table_rules(table: Table, colour: str) -> list[str]:
    heads = sum(1 for row in table.rows if any(c and c.header for c in row[-1:]))
    lines: list[str] = []
    if table.rules in ("head", "frame"):
        for y in sorted({0, max(heads, 1), len(table.rows)}):
            lines.append(f"table.hline(y: {y}, stroke: 0.8pt + {colour})")
    if table.rules == "frame":
        for x in (0, len(table.align)):
            lines.append(f"table.vline(x: {x}, stroke: 0.8pt + {colour})")
    for y, x in table.lines:
        lines.append(f"table.hline(y: {y}, start: {x}, stroke: 0.5pt + {colour})")
    for y, x, stop in table.part_lines:
        lines.append(f"table.hline(y: {y}, start: {x}, end: {stop}, stroke: 0.5pt + {colour})")
    return lines


def _cell_source(cell: Cell, x: int, y: int, table: Table, style: Style) -> str:
    options = [f"x: {x}, y: {y}"]
    if cell.columns > 1:
        options.append(f"colspan: {cell.columns}")
    if cell.rows > 1:
        options.append(f"rowspan: {cell.rows}")
    spanning = "horizon" if cell.rows > 1 else "center" if cell.columns > 1 else None
    if align := cell.align or spanning:
        options.append(f"align: {align}")
    dark = cell.header and table.shaded
    if dark:
        options.append(f"fill: {grey(224)}")
    text = quoted(cell.text)
    shown = f"#strong({text})" if (cell.header and not cell.light) or cell.bold else f"#{text}"
    if cell.indent_em:
        shown = f"#h({cell.indent_em:.2f}em)" + shown
    if cell.mark:
        shown += f"#super({quoted(cell.mark)})"
    if cell.leaders:
        shown += "#h(3pt)" + LEADERS
    return f"table.cell({', '.join(options)})[{shown}]"


class Press:
    """A typst compiler with its fonts loaded once."""

    def __init__(self, shelf: FontShelf) -> None:
        self._compiler = typst.Compiler(font_paths=[str(shelf.folder)], ignore_system_fonts=True)

    def print(self, manuscript: Manuscript) -> bytes:
        """The PDF of a manuscript.

        Raises:
            typst.TypstError: the source does not compile.
        """
        source = manuscript.source().encode()
        pdf = self._compiler.compile(input=source, format="pdf", pdf_tags=False)
        return bytes(pdf)


def jitter(rng: random.Random, value: float, spread: float) -> float:
    """`value` times a factor within ±spread."""
    return value * rng.uniform(1 - spread, 1 + spread)
