"""What stands on a page: runs of text, tables, blocks; each in its printed and its true form."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

_WRAPS = {"plain": "", "bold": "**", "italic": "*", "code": "`", "math": "$", "roman": ""}
# Runs without characters: white space, dots that lead the eye to a number, rules and boxes.
_UNSPOKEN = ("space", "leaders", "drawn")
_TOKEN = re.compile(r"(<\|\w+\|>)")
INK_COLOUR = "§INK§"
HYPHENS = "-\u2010\u2011\u00ad\x02"


@dataclass(frozen=True, kw_only=True)
class Run:
    """A stretch of one style.

    `ink` is what the page shows; `truth`, where given, is what the markup says instead (a bullet
    is read as `- `), and makes the run unsplittable. Style `math` holds typst maths as ink,
    style `drawn` typst source in which INK_COLOUR stands for the block's colour.
    """

    ink: str
    style: str = "plain"
    truth: str | None = None

    @property
    def printed(self) -> str:
        """The characters of the run on the page; a `space` run's ink is a typst length."""
        return "" if self.style in _UNSPOKEN else self.ink

    @property
    def markup(self) -> str:
        if self.style in _UNSPOKEN:
            return self.truth or ""
        if self.truth is not None:
            return self.truth
        mark = _WRAPS.get(self.style, "")
        return f"{mark}{self.ink}{mark}"

    def sources(self) -> list[int]:
        """Of each sign of `markup`: its index among the signs of `printed`, or -1.

        Formulas have none, nor has what stands only in the truth.
        """
        markup, printed = signs(self.markup), signs(self.printed)
        if self.style in (*_UNSPOKEN, "math"):
            return [-1] * len(markup)
        start = markup.find(printed)
        if start < 0:  # a bullet
            start = 0 if len(markup) == len(printed) else len(markup)
        own = list(range(len(printed)))[: len(markup) - start]
        return [-1] * start + own + [-1] * (len(markup) - start - len(own))


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A table cell; `columns` and `rows` are its spans.

    `leaders` fills the rest of the cell with dots, which are ink and no text. `mark` is printed
    raised behind the text, and read as a part of it. `align` is for this cell alone. A `light`
    header cell is not bold.
    """

    text: str = ""
    header: bool = False
    columns: int = 1
    rows: int = 1
    bold: bool = False
    indent_em: float = 0.0
    leaders: bool = False
    mark: str = ""
    align: str | None = None
    light: bool = False

    @property
    def ink(self) -> str:
        """All characters of the cell."""
        return self.text + self.mark


@dataclass(frozen=True, kw_only=True)
class Table:
    """Rows of cells; a place covered by a span of an earlier cell holds None.

    `lines` are rules of their own: above which row, from which column on; `part_lines` have a
    column before which they end. `pads_pt` is the room around a cell's text, across and down,
    where it is not `inset_pt`.
    """

    rows: tuple[tuple[Cell | None, ...], ...]
    align: tuple[str, ...]
    rules: str = "all"
    inset_pt: float = 3.0
    widths: tuple[str, ...] | None = None
    shaded: bool = False
    lines: tuple[tuple[int, int], ...] = ()
    part_lines: tuple[tuple[int, int, int], ...] = ()
    pads_pt: tuple[float, float] | None = None

    def markup(self) -> str:
        """OTSL: one token a place, `nl` after each row."""
        kinds = [["" for _ in row] for row in self.rows]
        for y, row in enumerate(self.rows):
            for x, cell in enumerate(row):
                if cell is None:
                    continue
                for dy in range(cell.rows):
                    for dx in range(cell.columns):
                        if dy or dx:
                            kinds[y + dy][x + dx] = _SPANNED[bool(dy), bool(dx)]
        parts = []
        for row, names in zip(self.rows, kinds, strict=True):
            for cell, name in zip(row, names, strict=True):
                parts.append(name if cell is None else _cell_markup(cell))
            parts.append("<|nl|>")
        return "".join(parts)

    @property
    def ink(self) -> str:
        return " ".join(c.ink for row in self.rows for c in row if c is not None)


_SPANNED = {(False, True): "<|lcel|>", (True, False): "<|ucel|>", (True, True): "<|xcel|>"}


def _cell_markup(cell: Cell) -> str:
    if not cell.ink:
        return "<|ecel|>"
    return ("<|ched|>" if cell.header else "<|fcel|>") + cell.ink


@dataclass(frozen=True, kw_only=True)
class Block:
    """One block of the output markup. `type` is a block token's name; `level` nests list items.

    `verified` is false where the page's text layer does not spell the truth (formulas).
    """

    type: str
    runs: tuple[Run, ...] = ()
    table: Table | None = None
    latex: str | None = None
    level: int = 1
    splittable: bool = False
    from_ink: bool = False

    @property
    def verified(self) -> bool:
        return self.latex is None and all(run.style != "math" for run in self.runs)

    @property
    def ink(self) -> str:
        return self.table.ink if self.table else "".join(run.printed for run in self.runs)

    def content(self) -> str:
        """The markup after the box."""
        if self.table is not None:
            return self.table.markup()
        if self.latex is not None:
            return self.latex
        text = "".join(run.markup for run in self.runs)
        if self.type != "code":
            text = " ".join(text.split())
        nested = self.type == "list_item" and self.level > 1
        return (f"<|level{min(self.level, 6)}|>" if nested else "") + text.strip("\n ")

    def sources(self) -> list[int]:
        """Of each sign of `content()`: its index among the printed signs of the block, or -1.

        Signs of formulas are not counted as printed.
        """
        if self.table is not None:
            return self._cell_sources()
        if self.latex is not None:
            return [-1] * len(signs(self.latex))
        level = _TOKEN.match(self.content())
        out = [-1] * (level.end() if level else 0)
        at = 0
        for run in self.runs:
            out += [index + at if index >= 0 else -1 for index in run.sources()]
            at += len(signs(run.printed)) if run.style != "math" else 0
        return out

    def _cell_sources(self) -> list[int]:
        out: list[int] = []
        at = 0
        for piece in _TOKEN.split(self.content()):
            size = len(signs(piece))
            if _TOKEN.fullmatch(piece):
                out += [-1] * size
            else:
                out += range(at, at + size)
                at += size
        return out

    def hyphenated(self) -> Block:
        """The block with a hyphen at its end, as a page or column break inside a word shows it."""
        last = self.runs[-1]
        if last.ink.rstrip().endswith("-") or last.truth is not None:
            return self
        return replace(self, runs=(*self.runs[:-1], replace(last, ink=last.ink.rstrip() + "-")))

    def part(self, start: int, stop: int) -> Block:
        """The piece that holds bare characters `start` to `stop` (white space, hyphens uncounted).

        Raises:
            ValueError: a cut falls inside a run that has a truth of its own.
        """
        kept: list[Run] = []
        at = 0
        for run in self.runs:
            size = len(bare(run.printed))
            low, high = max(start - at, 0), min(stop - at, size)
            at += size
            if size == 0:
                if start < at < stop:
                    kept.append(run)
            elif low < high:
                if high - low < size and (run.truth is not None or run.style == "math"):
                    raise ValueError("a page break inside an unsplittable run")
                kept.append(replace(run, ink=_cut(run.ink, low, high)))
        return replace(self, runs=tuple(kept))


def _cut(text: str, low: int, high: int) -> str:
    places = [i for i, c in enumerate(text) if not _skipped(c)]
    start = 0 if low == 0 else places[low]
    stop = len(text) if high == len(places) else places[high - 1] + 1
    return text[start:stop]


def _skipped(character: str) -> bool:
    return character.isspace() or character in HYPHENS or character == "\u200b"


def signs(text: str) -> str:
    """The characters of a text that leave ink: no white space, but hyphens."""
    return "".join("".join(text.split()).split("\u200b"))


def bare(text: str) -> str:
    """Text without white space and hyphens: what a line break cannot change."""
    text = signs(text)
    for hyphen in HYPHENS:
        text = text.replace(hyphen, "")
    return text
