"""Parts of till receipts: registered companies, facts in pairs, counted items, typed rules."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import is_drawable
from ocria.models.recipes.pages.studio import Studio
from ocria.models.recipes.pages.typeset import Manuscript, Style

_FORMS = ("SDN BHD", "SDN. BHD.", "Sdn Bhd", "BHD", "ENTERPRISE", "TRADING", "RESTAURANT",
          "(M) SDN BHD", "PTE LTD", "LTD", "INC.", "S/B", "MARKETING", "CO.", "LLC")  # fmt: skip
_STREETS = ("JALAN", "JLN", "LORONG", "PERSIARAN", "LEBUH", "STREET", "ROAD", "AVENUE")
_PLACES = ("TAMAN", "BANDAR", "KAMPUNG", "SEKSYEN", "PUSAT", "PLAZA", "KAWASAN")
_FACTS = (
    "Date", "DATE", "Time", "Invoice No", "Doc No.", "Bill No", "Receipt #", "Cashier", "CASHIER",
    "Counter", "Table No", "Pax", "Member", "Salesperson", "Terminal", "Trans", "Order No", "Ref.",
    "Station", "Shift", "Customer", "Ticket", "POS No", "Attn", "Terms", "Slip No.",
)  # fmt: skip
_TOTALS = (
    "Sub Total", "SUBTOTAL", "Total Sales (Excl. GST)", "Total Sales (Incl. GST)", "Total GST",
    "Rounding Adj", "Rounding Adjustment", "Discount", "Total Incl. GST @6%", "Service Charge 10%",
    "Item(s)", "Total Qty", "TOTAL", "Total", "Total Rounded", "Net Total", "Nett Total", "Cash",
    "CASH TENDERED", "Change", "CHANGE DUE", "Tendered", "VISA", "MASTER CARD", "Total Savings",
    "Total Amt Payable", "Amount Due", "Bill Total", "Payment", "Balance", "Tip", "Deposit",
)  # fmt: skip
_TITLES = ("TAX INVOICE", "Tax Invoice", "INVOICE", "CASH BILL", "RECEIPT", "** COPY **")
_ITEM_HEADS = (("Description", "Amount"), ("ITEM", "RM"), ("Qty x U.Price", "Total (RM)"))
_CARDS = ("VISA", "MASTERCARD", "DEBIT", "MYDEBIT", "AMEX")


def company_lines(
    studio: Studio, rng: random.Random, lang: str
) -> tuple[str, list[str], list[str]]:
    """A firm's name, the lines of its address, and the lines with its numbers."""
    word = studio.words(rng, lang, rng.randint(1, 3))
    name = f"{word} {rng.choice(_FORMS)}"
    name = name.upper() if rng.random() < 0.75 else name
    number = f"({rng.randint(10**4, 10**7)}-{rng.choice('ADHKMPTUVWX')})"
    if rng.random() < 0.3:
        name = f"{name} {number}"
    street = f"{rng.choice(_STREETS)} {studio.words(rng, lang, 1).upper()}"
    address = [
        f"{rng.choice(('NO.', 'LOT', 'NO', 'G-'))} {rng.randint(1, 99)}, {street} "
        f"{rng.randint(1, 30)}/{rng.randint(1, 99)},",
        f"{rng.choice(_PLACES)} {studio.words(rng, lang, rng.randint(1, 2)).upper()},",
        f"{rng.randint(10000, 99999)} {studio.words(rng, lang, rng.randint(1, 2)).upper()}.",
    ]
    phone = f"{rng.randint(2, 99):02d}-{rng.randint(10**6, 10**8 - 1)}"
    numbers = [
        rng.choice((f"TEL : {phone}", f"Tel: {phone} Fax: {phone[:-1]}{rng.randint(0, 9)}", phone)),
        rng.choice(("GST ID : ", "GST Reg No: ", "(GST ID No : ", "GST NO. ", "SST ID: "))
        + f"{rng.randint(10**8, 10**12 - 1):012d}",
        number,
    ]
    kept = [line for line in numbers if rng.random() < 0.6]
    return name, address[rng.choice((0, 0, 1)) :], kept


def lines_block(kind: str, lines: list[str]) -> Block:
    """One block whose lines end where the receipt ends them."""
    runs: list[Run] = []
    for line in lines:
        if runs:
            runs.append(Run(ink="#linebreak()", style="drawn", truth=" "))
        runs.append(Run(ink=line))
    return Block(type=kind, runs=tuple(runs))


def head(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    """Name, address and numbers, mostly centred; a mark or a code above some."""
    name, address, numbers = company_lines(studio, rng, lang)
    if not all(map(is_drawable, (name, *address, *numbers))):
        name, address, numbers = "TRADING SDN BHD", ["LOT 7, JALAN 2/5,"], []
    align = rng.choice(("center", "center", "center", "left"))
    centred = replace(style, align=align)
    if rng.random() < 0.12:
        mark = f"#box(width: {rng.randint(20, 60)}%, height: 30pt, radius: 8pt, fill: COLOUR)"
        block = Block(type="figure", runs=(Run(ink=mark, truth=""),))
        manuscript.add(block, replace(centred, align="center"))
    grow = rng.choice((1.0, 1.2, 1.5, 1.8))
    title = replace(centred, size_pt=style.size_pt * grow, weight="bold", leading_em=0.4)
    kind = "h1" if grow > 1.2 else "paragraph"
    manuscript.add(Block(type=kind, runs=(Run(ink=name),)), title)
    manuscript.add(lines_block("paragraph", address), centred)
    for line in numbers:
        manuscript.add(Block(type="paragraph", runs=(Run(ink=line),)), centred)
    if rng.random() < 0.6:
        text = rng.choice(_TITLES)
        typed_rule(rng, manuscript, style)
        big = replace(centred, align="center", weight=rng.choice(("bold", "regular")))
        manuscript.add(Block(type="paragraph", runs=(Run(ink=text),)), big)


def typed_rule(rng: random.Random, manuscript: Manuscript, style: Style) -> None:
    """A rule of dashes, stars or equals signs across the roll, which is not written."""
    sign = rng.choice(("-", "-", "-", "=", r"\*", r"\_", ".", "- "))
    size = f"{style.size_pt:.1f}pt"
    manuscript.raw(
        f"#block(width: 100%, above: 3pt, below: 3pt, "
        f"text(size: {size}, fill: rgb(64,64,64), repeat[{sign}]))"
    )


def facts(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    """Fields one a line or two a line, their colons below each other in some."""
    labels = rng.sample(_FACTS, rng.randint(2, 7))
    tabbed = rng.random() < 0.4
    colon = rng.choice((":", " :", ": ", " : "))
    sources = []
    for label in labels:
        runs: tuple[Run, ...] = (Run(ink=f"{label}{colon}"),)
        if tabbed:
            runs = (
                Run(ink=label),
                Run(ink="1.5em", style="space", truth=" "),
                Run(ink=colon.strip()),
            )
        block = Block(
            type="form_field", runs=(*runs, Run(ink=" " + _fact(studio, rng, label, lang)))
        )
        sources.append(manuscript.placed(block, replace(style, before_pt=1.5, after_pt=1.5)))
    while sources:
        if len(sources) > 1 and rng.random() < 0.3:
            left, right = sources.pop(0), sources.pop(0)
            manuscript.raw(f"#grid(columns: (1fr, 1fr), gutter: 4pt, [{left}], [{right}])")
        else:
            manuscript.raw(sources.pop(0))


def _fact(studio: Studio, rng: random.Random, label: str, lang: str) -> str:
    mark = rng.choice("/-.")
    if label.lower() == "date":
        day, month = (
            f"{rng.randint(1, 28):02d}",
            rng.choice((f"{rng.randint(1, 12):02d}", "MAR", "Dec")),
        )
        text = (
            f"{day}{mark}{month}{mark}{rng.choice((rng.randint(2010, 2026), rng.randint(10, 26)))}"
        )
        if rng.random() < 0.4:
            text += f" {rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}:{rng.randint(0, 59):02d}"
        return text
    if label == "Time":
        return f"{rng.randint(1, 12)}:{rng.randint(0, 59):02d} {rng.choice(('AM', 'PM', 'pm'))}"
    if label in ("Cashier", "CASHIER", "Member", "Salesperson", "Customer", "Attn"):
        return studio.words(rng, lang, rng.randint(1, 2)).upper()
    alphabet = "0123456789" if rng.random() < 0.6 else "0123456789ABCSTX-/"
    return "".join(rng.choice(alphabet) for _ in range(rng.randint(1, 13))).strip("-/") or "1"


def money(rng: random.Random, *, code: str = "") -> str:
    """A small amount, a deduction now and then, with the till's tax code behind it."""
    value = rng.lognormvariate(2.0, 1.1)
    sign = "-" if rng.random() < 0.03 else ""
    return f"{sign}{value:,.2f}{' ' + code if code else ''}"


def counted_items(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    """Items of two lines: the name, then the count times the price, and the amount."""
    code = rng.choice(("", "", "S", "SR", "Z", "*", "T"))
    times = rng.choice((" x ", " X ", " @ ", "x", " * "))
    unit = rng.choice(("", "", "RM", "RM ", "$"))
    decimals = rng.choice((0, 0, 0, 1, 2, 3))
    coded, name_first = rng.random() < 0.4, rng.random() < 0.75
    rows: list[tuple[Cell | None, ...]] = []
    if rng.random() < 0.4:
        heads = rng.choice(_ITEM_HEADS)
        rows.append(tuple(Cell(text=head, header=True) for head in heads))
    room = (manuscript.sheet.height_pt / (style.size_pt * 2.2) - 18) / 2
    for number in range(1, max(2, int(room * rng.uniform(0.1, 0.9)))):
        text = studio.words(rng, lang, rng.randint(1, 4)).upper()
        if coded:
            text = f"{rng.choice((str(number) + '.', str(rng.randint(1000, 99999999))))} {text}"
        count = f"{rng.randint(1, 12):.{decimals}f}"
        sum_cell = Cell(text=money(rng, code=code))
        row: tuple[Cell | None, ...] = (Cell(text=f"{count}{times}{unit}{money(rng)}"), sum_cell)
        named: tuple[Cell | None, ...] = (Cell(text=text, columns=2, align="left"), None)
        rows += [named, row] if name_first else [row, named]
    table = Table(
        rows=tuple(rows), align=("left", "right"), rules="none", widths=("1fr", "auto"),
        inset_pt=rng.uniform(1.2, 3),
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), style)


def totals(rng: random.Random, manuscript: Manuscript, style: Style) -> None:
    """Sums and payment, the total in heavier type, the last digits of a card."""
    labels = rng.sample(_TOTALS, rng.randint(3, 8))
    colon = rng.choice(("", ":", " :"))
    unit = rng.choice(("", "", "RM ", "RM", "$"))
    rows = [
        (
            Cell(
                text=label + colon, bold=(heavy := "TOTAL" in label.upper() and rng.random() < 0.4)
            ),
            Cell(text=unit + money(rng), bold=heavy),
        )
        for label in labels
    ]
    table = Table(
        rows=tuple(rows), align=(rng.choice(("left", "left", "right")), "right"), rules="none",
        widths=("1fr", "auto"), inset_pt=rng.uniform(1.2, 3),
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), style)
    if rng.random() < 0.2:
        digits = f"{rng.choice(('XXXX-XXXX-XXXX-', '**** **** **** ', 'xxxxxxxxxxxx'))}"
        text = f"{rng.choice(_CARDS)} {digits}{rng.randint(0, 9999):04d}"
        manuscript.add(Block(type="paragraph", runs=(Run(ink=text),)), style)


def bars(rng: random.Random, manuscript: Manuscript, style: Style) -> None:
    """A bar code, its number below it in some."""
    widths = [rng.choice((1, 1, 2, 3)) * 0.7 for _ in range(rng.randint(30, 60))]
    height = rng.randint(16, 34)
    strokes = "".join(
        f"#box(width: {width:.1f}pt, height: {height}pt, fill: COLOUR)"
        f"#h({rng.choice((0.7, 1.4)):.1f}pt)"
        for width in widths
    )
    block = Block(type="figure", runs=(Run(ink=strokes, truth=""),))
    manuscript.add(block, replace(style, align="center", before_pt=6, after_pt=3))
    if rng.random() < 0.6:
        number = str(rng.randint(10**7, 10**13))
        block = Block(type="paragraph", runs=(Run(ink=number),))
        manuscript.add(block, replace(style, align="center"))
