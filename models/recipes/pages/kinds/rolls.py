"""Till rolls as a printer sets them: a grid of characters, one row of the truth a printed line."""

from __future__ import annotations

import random
import textwrap
from dataclasses import dataclass, replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import is_drawable
from ocria.models.recipes.pages.fonts import MONO
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import TILL

from . import roll_words as printed
from . import tills

Row = tuple[Cell | None, ...]
_NBSP = "\u00a0"
# Advance of a character in em: monospaced faces, and the mean of capitals and figures in others.
_MONO_EM, _SANS_EM = 0.605, 0.62


@dataclass
class _Roll:
    """A roll in the making: `width` characters a line, `room` lines left."""

    studio: Studio
    rng: random.Random
    manuscript: Manuscript
    style: Style
    lang: str
    width: int
    room: int
    char_pt: float
    align: str
    loud: bool

    def line(self, text: str, kind: str = "paragraph", **style: object) -> None:
        """One printed line of its own."""
        if text.strip() and is_drawable(text.replace(_NBSP, " ")):
            block = Block(type=kind, runs=(Run(ink=text[: self.width]),))
            self.manuscript.add(block, replace(self.style, **style))  # type: ignore[arg-type]
            self.room -= 1

    def lines(self, texts: list[str], **style: object) -> None:
        """One paragraph of several printed lines."""
        texts = [text for text in texts if text.strip() and is_drawable(text)]
        if texts:
            block = tills.lines_block("paragraph", texts)
            self.manuscript.add(block, replace(self.style, **style))  # type: ignore[arg-type]
            self.room -= len(texts)

    def words(self, low: int, high: int) -> str:
        text = self.studio.words(self.rng, self.lang, self.rng.randint(low, high))
        return text.upper() if self.loud else text

    def rule(self) -> None:
        if self.rng.random() < 0.7:
            tills.typed_rule(self.rng, self.manuscript, self.style)
            self.room -= 1

    def table(self, rows: list[Row], align: tuple[str, ...], stretched: int) -> None:
        """A table whose rows are printed lines; column `stretched` takes the width left."""
        widths = tuple("1fr" if x == stretched else "auto" for x in range(len(align)))
        table = Table(
            rows=tuple(rows), align=align, rules="none", widths=widths,
            pads_pt=(self.char_pt * 0.45, self.style.size_pt * self.style.leading_em / 2),
        )  # fmt: skip
        self.manuscript.add(Block(type="table", table=table), self.style)
        self.room -= len(rows)


def _digits(rng: random.Random, low: int, high: int) -> str:
    return "".join(rng.choice("0123456789") for _ in range(rng.randint(low, high)))


def _company(roll: _Roll) -> None:
    """Five to eight lines: name, number of registration, address, telephone, tax number."""
    rng = roll.rng
    name, address, _ = tills.company_lines(roll.studio, rng, roll.lang)
    centred = {"align": roll.align}
    large = rng.random() < 0.35
    shown = textwrap.wrap(name, int(roll.width / (1.5 if large else 1.0)) - 1) or ["SHOP"]
    size = roll.style.size_pt * (rng.uniform(1.2, 1.45) if large else 1.0)
    weight = rng.choice(("bold", "bold", "regular"))
    if all(map(is_drawable, shown)):
        block = tills.lines_block("h1" if large else "paragraph", shown)
        style = replace(roll.style, size_pt=size, weight=weight, align=roll.align)
        roll.manuscript.add(block, style)
        roll.room -= len(shown) * (2 if large else 1)
    registered = rng.choice(
        (
            f"({_digits(rng, 5, 7)}-{rng.choice('AHKMPTUVWX')})",
            f"Co. Reg No: {_digits(rng, 5, 12)}",
            f"Reg No. {_digits(rng, 6, 7)}-{rng.choice('AHKMPTUVWX')}",
            f"(Company No : {_digits(rng, 6, 7)}-{rng.choice('DHKMPTX')})",
            f"ROC NO : {_digits(rng, 9, 12)}",
        )
    )
    if rng.random() < 0.7:
        roll.line(registered, **centred)
    broken: list[str] = []
    for line in address:
        broken += textwrap.wrap(line, roll.width - 1)
    if rng.random() < 0.3:
        broken.append(f"{roll.words(1, 1)}, {roll.words(1, 1)}.")
    roll.lines(broken, **centred)
    phone = f"{rng.randint(1, 99):02d}-{_digits(rng, 6, 8)}"
    fax = f"{rng.randint(1, 99):02d}-{_digits(rng, 6, 8)}"
    contact = rng.choice(
        (
            (f"TEL: {phone}  FAX: {fax}",), (f"Tel : {phone}", f"Fax : {fax}"), (f"TEL: {phone}",),
            (f"Tel: {phone}",), (f"T: {phone} F: {fax}",), (phone,),
            (f"Hotline: 1-300-{_digits(rng, 2, 2)}",),
        )
    )  # fmt: skip
    for text in contact if rng.random() < 0.85 else ():
        roll.line(text, **centred)
    label = rng.choice(
        (
            "GST ID : ",
            "GST Reg No: ",
            "GST ID No : ",
            "GST REG NO : ",
            "GST NO. ",
            "SST ID: ",
            "VAT No. ",
            "(GST ID : ",
        )
    )
    if rng.random() < 0.7:
        closing = ")" if label.startswith("(") else ""
        roll.line(label + _digits(rng, 9, 12) + closing, **centred)
    if rng.random() < 0.15:
        host = roll.words(1, 1).lower()
        roll.line(rng.choice((f"www.{host}.com", f"{host}@gmail.com")), **centred)


def _title(roll: _Roll) -> None:
    rng = roll.rng
    if rng.random() < 0.65:
        grow = rng.choice((1.0, 1.0, 1.3))
        roll.line(
            rng.choice(printed.TITLES), size_pt=roll.style.size_pt * grow,
            before_pt=roll.style.size_pt * 0.6,
            align="center", weight=rng.choice(("bold", "regular")),
        )  # fmt: skip


def _value(roll: _Roll, label: str) -> str:
    rng = roll.rng
    word = label.lower()
    mark = rng.choice("/-.")
    if "date" in word or word == "printed":
        day, month = rng.randint(1, 28), rng.choice((f"{rng.randint(1, 12):02d}", "Mar", "DEC"))
        text = f"{day:02d}{mark}{month}{mark}{rng.choice((rng.randint(2010, 2026), 17, 18))}"
        clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
        clock += rng.choice(("", "", f":{rng.randint(0, 59):02d}", " PM", " AM"))
        return text + rng.choice(("", "", f" {clock}", f"  {clock}"))
    if word == "time":
        return f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
    if word in ("cashier", "salesperson", "member", "staff", "served by", "customer", "guest"):
        return rng.choice((roll.words(1, 2), roll.words(1, 1), "CASH", "ADMIN", _digits(rng, 1, 4)))
    if word in (
        "table",
        "pax",
        "counter",
        "till",
        "pos",
        "shift",
        "terminal",
        "reg",
        "chk",
        "pump",
    ):
        return rng.choice((_digits(rng, 1, 4), f"{rng.choice('ABCT')}{_digits(rng, 1, 2)}"))
    letters = rng.choice(("", "", "CS", "INV", "OR", "A", "CB#", "SO-", "KL/", "T01-"))
    tail = rng.choice(("", "", f"-{_digits(rng, 1, 3)}", f"/{_digits(rng, 2, 4)}"))
    return letters + _digits(rng, 3, 11) + tail


def _facts(roll: _Roll) -> None:
    """Labels and values, their colons below each other in most; two pairs on some lines."""
    rng = roll.rng
    labels = rng.sample(printed.LABELS, rng.randint(2, 8))
    padded = rng.random() < 0.6
    colon = rng.choice((":", ":", " :", ": ", " : ", "#:"))
    longest = max(map(len, labels)) + rng.randint(0, 3)
    left_share = rng.uniform(0.48, 0.6)
    queue = [(label, _value(roll, label)) for label in labels]
    while queue:
        label, value = queue.pop(0)
        spaces = _NBSP * (longest - len(label)) if padded else ""
        text = f"{label}{spaces}{colon}{_NBSP}{value}".replace(" ", _NBSP)
        place = int(roll.width * left_share)
        if queue and len(text) < place - 1 and rng.random() < 0.35:
            other = f"{queue[0][0]}{colon}{_NBSP}{queue[0][1]}".replace(" ", _NBSP)
            if len(other) < roll.width - place:
                queue.pop(0)
                _side_by_side(roll, text, other, left_share)
                continue
        if len(text) >= roll.width:
            text = f"{label}{colon}{_NBSP}{value}".replace(" ", _NBSP)
        roll.line(text, "form_field")


def _side_by_side(roll: _Roll, left: str, right: str, share: float) -> None:
    blocks = [Block(type="form_field", runs=(Run(ink=text),)) for text in (left, right)]
    cells = [roll.manuscript.placed(block, roll.style) for block in blocks]
    columns = f"{share * 100:.0f}%, 1fr" if roll.rng.random() < 0.6 else "1fr, auto"
    space = f"above: {roll.style.before_pt:.1f}pt, below: {roll.style.after_pt:.1f}pt"
    inner = ", ".join(f"[{cell.replace('width: 100%', 'width: auto')}]" for cell in cells)
    roll.manuscript.raw(f"#block({space}, grid(columns: ({columns}), {inner}))")
    roll.room -= 1


def _product(roll: _Roll, longest: int) -> str:
    """A name of one line, cut where the till cuts it."""
    rng = roll.rng
    words = roll.words(1, 5)
    if rng.random() < 0.2:
        words = " ".join(
            w[0] + "".join(c for c in w[1:] if c not in "aeiouAEIOU") for w in words.split()
        )
    if rng.random() < 0.35:
        words += f" {rng.randint(1, 999)}{rng.choice(printed.UNITS)}"
    if rng.random() < 0.15:
        words += rng.choice(
            (f" ({rng.randint(1, 9)})", " *", f" {rng.randint(2, 9)}X{rng.randint(2, 9)}", " [L]")
        )
    return words[:longest].strip() or "ITEM"


def _amount(rng: random.Random, scale: float = 2.0) -> str:
    text = f"{rng.lognormvariate(scale, 1.1):,.2f}"
    return f"-{text}" if rng.random() < 0.02 else text


def _items(roll: _Roll, rows_wanted: int) -> None:
    rng = roll.rng
    layout = rng.choices((_stacked, _in_line, _named_first), (50, 28, 22))[0]
    layout(roll, max(1, rows_wanted))


def _stacked(roll: _Roll, wanted: int) -> None:
    """A name with the line to itself, then count times price and the amount."""
    rng = roll.rng
    code = rng.choice(("", "", " S", " SR", " Z", " *", " T", "S", " ZR"))
    times = rng.choice((" x ", " X ", " @ ", "x", " * ", "  X  ", "@"))
    unit = rng.choice(("", "", "RM", "RM ", "$"))
    decimals = rng.choice((0, 0, 0, 2, 3))
    coded = rng.choice(("", "", "line", "before", "number"))
    name_first, discounts = rng.random() < 0.85, rng.random() < 0.2
    indent_em = rng.choice((0.0, 0.0, 1.2, 2.4))
    rows: list[Row] = []
    if rng.random() < 0.45:
        rows.append(
            tuple(
                Cell(text=t, header=True, light=rng.random() < 0.6)
                for t in rng.choice(printed.HEADS[2])
            )
        )
    number = 0
    while len(rows) < wanted or not number:
        number += 1
        lead = ""
        if coded == "before":
            lead = _digits(rng, 4, 13) + " "
        elif coded == "number":
            lead = f"{number}{rng.choice(('.', ' ', ')'))} "
        name = Cell(text=lead + _product(roll, roll.width - len(lead) - 1), columns=2, align="left")
        count = f"{rng.choice((1, 1, 1, 2, 3, rng.randint(1, 40))):.{decimals}f}"
        text, amount = f"{count}{times}{unit}{_amount(rng)}", _amount(rng) + code
        fits = len(text) + len(amount) + 7 < roll.width
        deal = Cell(text=" ".join(text.split()), indent_em=indent_em if fits else 0.0)
        line: Row = (deal, Cell(text=amount))
        above: list[Row] = [(name, None)]
        if coded == "line":
            above.insert(
                rng.choice((0, 1)), (Cell(text=_digits(rng, 6, 13), columns=2, align="left"), None)
            )
        if rng.random() < 0.08:
            more = Cell(text=_product(roll, roll.width - 3), columns=2, align="left")
            above.append((more, None))
        rows += [*above, line] if name_first else [line, *above]
        if discounts and rng.random() < 0.2:
            label = rng.choice(("DISCOUNT", "Disc 10%", "Less", "PROMO", "Item Disc"))
            rows.append((Cell(text=label, indent_em=indent_em), Cell(text=f"-{_amount(rng, 0.5)}")))
    roll.table(rows, ("left", "right"), 0)


def _in_line(roll: _Roll, wanted: int) -> None:
    """Name and numbers on one line; long names run on below, with nothing beside them."""
    rng = roll.rng
    columns = rng.choice((2, 3, 3, 4, 4, 5)) if roll.width > 34 else rng.choice((2, 3, 3, 4))
    heads = rng.choice(printed.HEADS[columns])
    stub = next((x for x, h in enumerate(heads) if h[0].upper() in "ID" or "Code" in h), 0)
    decimals = rng.choice((0, 0, 0, 2))
    code = rng.choice(("", "", "", " S", " SR", "T"))

    def number(x: int) -> str:
        head = heads[x].lower()
        if head == "qty":
            return f"{rng.choice((1, 1, 2, rng.randint(1, 30))):.{decimals}f}"
        if head == "tax":
            return rng.choice(("SR", "ZR", "S", "T"))
        return _amount(rng, 1.6) + (code if x == columns - 1 else "")

    taken = sum(
        max(len(h), 4 if h.lower() == "qty" else 7 + len(code)) + 1.2
        for x, h in enumerate(heads)
        if x != stub
    )
    longest = int(roll.width - taken)
    if longest < 6:
        _stacked(roll, wanted)
        return
    rows: list[Row] = []
    if rng.random() < 0.65:
        light = rng.random() < 0.6
        rows.append(tuple(Cell(text=h[:longest], header=True, light=light) for h in heads))
    running_on = rng.choice((0.0, 0.0, 0.2, 0.5))
    below = columns == 2 and rng.random() < 0.4
    body = 0
    while len(rows) < wanted or not body:
        body += 1
        texts = [_product(roll, longest) if x == stub else number(x) for x in range(columns)]
        rows.append(tuple(Cell(text=text) for text in texts))
        if below and rng.random() < 0.5:
            deal = f"{rng.randint(2, 12)} @ {_amount(rng)}"
            rows.append((Cell(text=deal[:longest], indent_em=1.0), Cell()))
        elif rng.random() < running_on:
            rows.append(
                tuple(
                    Cell(text=_product(roll, longest) if x == stub else "") for x in range(columns)
                )
            )
    align = tuple("left" if x == stub or (x < stub) else "right" for x in range(columns))
    roll.table(rows, align, stub)


def _named_first(roll: _Roll, wanted: int) -> None:
    """The name across the roll, then code, count, price and amount in columns."""
    rng = roll.rng
    columns = 4 if roll.width > 29 else 3
    heads = rng.choice(printed.HEADS[4])[4 - columns :]
    blank_first = rng.random() < 0.4
    rows: list[Row] = []
    if rng.random() < 0.6:
        light = rng.random() < 0.6
        rows.append(tuple(Cell(text=h, header=True, light=light) for h in heads))
    body, numbered = 0, rng.random() < 0.25
    while len(rows) < wanted or not body:
        body += 1
        name = (f"{body}. " if numbered else "") + _product(roll, roll.width - 5)
        rows.append((Cell(text=name, columns=columns, align="left"), *(None,) * (columns - 1)))
        code = "" if blank_first else _digits(rng, 4, max(4, min(13, roll.width - 24)))
        count = rng.choice(("1", "2", "1.00", str(rng.randint(1, 99)), "1 PCS"))
        texts = [code, count, _amount(rng, 1.5), _amount(rng, 1.5)][4 - columns :]
        rows.append(tuple(Cell(text=text) for text in texts))
    roll.table(rows, ("left", *("right",) * (columns - 1)), 0)


def _sums(roll: _Roll) -> None:
    rng = roll.rng
    if rng.random() < 0.25:
        text = f"{rng.choice(printed.COUNTS)}{rng.choice((':', ' :', ' '))} {rng.randint(1, 30)}"
        roll.line(text, rng.choice(("form_field", "paragraph")))
    labels = rng.sample(printed.SUMS, rng.randint(2, 9))
    colon = rng.choice(("", "", ":", " :", ": "))
    unit = rng.choice(("", "", "", "RM ", "RM", "$"))
    split = bool(unit) and rng.random() < 0.3
    rows: list[Row] = []
    for label in labels:
        heavy = "TOTAL" in label.upper() and rng.random() < 0.4
        shown = (label[: roll.width - 14] + colon).strip()
        amount = "0.00" if rng.random() < 0.1 else _amount(rng, 2.6)
        if "ROUND" in label.upper():
            amount = rng.choice(("0.00", "0.01", "-0.02", "-0.01", "0.02"))
        cells = (unit.strip(), amount) if split else (unit + amount,)
        rows.append((Cell(text=shown, bold=heavy), *(Cell(text=c, bold=heavy) for c in cells)))
    right = ("right",) * (len(rows[0]) - 1)
    roll.table(rows, (rng.choice(("left", "left", "left", "right")), *right), 0)


def _taxes(roll: _Roll) -> None:
    """The summary by tax code."""
    rng = roll.rng
    heads = rng.choice(
        (
            ("GST Summary", "Amount(RM)", "Tax(RM)"), ("GST SUMMARY", "AMT", "TAX"),
            ("Tax Code", "%", "Amount", "Tax"), ("GST", "Rate", "Net", "GST"),
            ("TaxCode", "Goods Value", "Tax Amt"), ("Summary", "Item", "Amount", "Tax"),
        )
    )  # fmt: skip
    light = rng.random() < 0.6
    rows: list[Row] = [tuple(Cell(text=h, header=True, light=light) for h in heads)]
    sign = rng.choice((" @ 6%", " (6%)", "=6%", " 6%", ""))
    for code in rng.sample(("SR", "ZRL", "ZR", "S", "Z", "T1", "SR*"), rng.randint(1, 3)):
        middle = [rng.choice(("6%", "0", "6", "0.00", "6.00"))] if len(heads) == 4 else []
        first = code if middle else code + sign
        texts = [first, *middle, _amount(rng, 3), _amount(rng, 0.5)]
        rows.append(tuple(Cell(text=text) for text in texts))
    if rng.random() < 0.3:
        texts = ["Total", *([""] if len(heads) == 4 else []), _amount(rng, 3), _amount(rng, 0.5)]
        rows.append(tuple(Cell(text=text) for text in texts))
    roll.table(rows, ("left", *("right",) * (len(heads) - 1)), 0)


def _closing(roll: _Roll) -> None:
    rng = roll.rng
    for _ in range(rng.randint(0, 5)):
        text = rng.choice(printed.CLOSINGS) if rng.random() < 0.75 else roll.words(2, 6)
        for line in textwrap.wrap(text, roll.width - 2):
            roll.line(line, align=rng.choice(("center", roll.align)))


def roll(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A till roll of 24 to 48 characters a line, whole or cut out of a longer one."""
    width = rng.choice((24, 28, 32, 32, 36, 38, 40, 40, 42, 42, 44, 48))
    mono = rng.random() < 0.72
    face = studio.shelf.draw(
        rng, lang="en", categories=MONO if mono else ("sans", "sans", "condensed")
    )
    advance_em = _MONO_EM if mono else _SANS_EM
    tall = width_px < 0.6 * height_px
    share = (
        rng.choice((rng.uniform(0.6, 1.0), rng.uniform(0.9, 1.0)))
        if tall
        else rng.uniform(0.34, 0.75)
    )
    condense = rng.uniform(0.68, 1.0)
    size = 8.0
    char_pt = size * advance_em
    text_pt = (width + 0.6) * char_pt
    margin = rng.uniform(0.5, 3) * char_pt
    roll_pt = text_pt + 2 * margin
    width_pt = roll_pt / share
    left = rng.uniform(0, width_pt - roll_pt)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=width_px / width_pt / condense, lang="en",
        margins_pt=(rng.uniform(3, 40), width_pt - text_pt - left - margin, 3, left + margin),
        hyphenate=False, condense=condense,
    )  # fmt: skip
    look = Look.draw(studio, rng, "en")
    leading = rng.uniform(0.3, 0.7)
    # Blocks follow each other as lines do, but for an empty line now and then.
    gap = size * (leading if rng.random() < 0.7 else rng.uniform(leading, 1.2))
    style = Style(size_pt=size, leading_em=leading, before_pt=gap, after_pt=gap, base=look.ink)
    manuscript = Manuscript(sheet=sheet, family=face)
    # Faces whose stated height of capitals is wrong would print line over line.
    manuscript.raw("#set text(top-edge: 0.7em)")
    made = _Roll(
        studio=studio, rng=rng, manuscript=manuscript, style=style, width=width, char_pt=char_pt,
        lang=rng.choices(("en", "de", "fr", "es"), (85, 5, 5, 5))[0],
        room=int((sheet.height_pt - sheet.margins_pt[0] - 3) / (size * (0.72 + leading))),
        align=rng.choice(("center", "center", "center", "left")), loud=rng.random() < 0.7,
    )  # fmt: skip
    if rng.random() < 0.8:
        _company(made)
        _title(made)
        made.rule()
    if rng.random() < 0.85:
        _facts(made)
    made.rule()
    _items(made, int((made.room - rng.choice((0, 8, 16, 24))) * rng.uniform(0.35, 1.0)))
    made.rule()
    parts = [_sums, _sums, _taxes, _closing][rng.choice((0, 1, 1)) :]
    for part in parts:
        if part is not _taxes or rng.random() < 0.4:
            part(made)
            made.rule()
    if rng.random() < 0.08:
        tills.bars(rng, manuscript, style)
    return Draft(manuscript=manuscript, wear=TILL)
