"""Receipts: narrow strips in thermal or typewriter type, items, sums, dates."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import is_drawable
from ocria.models.recipes.pages.fonts import MONO, SANS
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript, Sheet, Style
from ocria.models.recipes.pages.wear import THERMAL

from . import tills

_CLOSINGS = (
    "THANK YOU", "Thank you, please come again", "Goods sold are not returnable",
    "Cảm ơn quý khách", "Vielen Dank für Ihren Einkauf", "Merci de votre visite",
    "GOODS SOLD ARE NOT RETURNABLE OR EXCHANGEABLE", "Gracias por su compra", "CUSTOMER COPY",
)  # fmt: skip
_SUMS = {
    "en": ("Subtotal", "Total", "TOTAL", "GST 6%", "Tax", "Rounding", "CASH", "CHANGE",
           "Balance due", "Total Qty", "VISA", "Discount", "Service charge", "TOTAL INCL. GST"),
    "vi": ("Tạm tính", "Tổng cộng", "VAT 10%", "Tiền mặt", "Tiền thừa", "Giảm giá", "Thanh toán"),
    "de": ("Summe", "MwSt. 19%", "Bar", "Rückgeld", "Zwischensumme", "EC-Karte"),
    "fr": ("Sous-total", "TVA 20%", "Total", "Espèces", "Rendu", "CB"),
    "es": ("Subtotal", "IVA 21%", "Total", "Efectivo", "Cambio"),
}  # fmt: skip


def price(rng: random.Random, lang: str) -> str:
    """A price in the manner of a country."""
    value = rng.lognormvariate(2.3, 1.2)
    if lang == "vi":
        return f"{int(value * 5) * 1000:,}".replace(",", rng.choice((",", ".")))
    text = f"{value:,.2f}"
    return text.replace(".", ",") if lang in ("de", "fr", "es") else text


def receipt(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A till receipt."""
    lang = rng.choices(("en", "vi", "de", "fr", "es"), (64, 14, 8, 7, 7))[0]
    size = rng.uniform(7.5, 11)
    roll_pt = rng.uniform(size * 15, size * 29)
    # On a page-shaped image the roll is a strip of the scanner's glass.
    share = rng.uniform(0.4, 0.85) if width_px > 0.6 * height_px else 1.0
    width_pt = roll_pt / share
    left = rng.uniform(0, width_pt - roll_pt)
    margin = rng.uniform(3, 14)
    sheet = Sheet(
        width_px=width_px, height_px=height_px, scale=width_px / width_pt, lang=lang,
        margins_pt=(rng.uniform(4, 40), width_pt - roll_pt - left + margin, 4, left + margin),
        hyphenate=False,
    )  # fmt: skip
    look = Look.draw(studio, rng, lang, categories=MONO + MONO + SANS)
    look = replace(look, size_pt=size, leading_em=rng.uniform(0.35, 0.7), justify=False)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    gap = rng.uniform(3, 7)
    style = Style(
        size_pt=size, leading_em=look.leading_em, before_pt=gap, after_pt=gap, base=look.ink
    )
    registered = lang == "en" and rng.random() < 0.65
    (tills.head if registered else _head)(studio, rng, manuscript, style, lang)
    (tills.facts if rng.random() < 0.6 else _facts)(studio, rng, manuscript, style, lang)
    _rule(rng, manuscript, style)
    (tills.counted_items if rng.random() < 0.4 else _items)(studio, rng, manuscript, style, lang)
    _rule(rng, manuscript, style)
    if registered:
        tills.totals(rng, manuscript, style)
    else:
        _sums(rng, manuscript, style, lang)
    if rng.random() < 0.3:
        _taxes(rng, manuscript, style, lang)
    if rng.random() < 0.1:
        tills.bars(rng, manuscript, style)
    for _ in range(rng.randint(0, 3)):
        text = rng.choice((rng.choice(_CLOSINGS), studio.words(rng, lang, rng.randint(3, 14))))
        _centred(manuscript, text, replace(style, align=rng.choice(("center", "center", "left"))))
    return Draft(manuscript=manuscript, wear=THERMAL)


def _rule(rng: random.Random, manuscript: Manuscript, style: Style) -> None:
    kind = rng.random()
    if kind < 0.35:
        manuscript.raw('#line(length: 100%, stroke: (thickness: 0.6pt, dash: "dashed"))')
    elif kind < 0.5:
        manuscript.raw("#line(length: 100%, stroke: 0.6pt)")
    elif kind < 0.75:
        tills.typed_rule(rng, manuscript, style)


def _centred(manuscript: Manuscript, text: str, style: Style) -> None:
    if text.strip() and is_drawable(text):
        manuscript.add(Block(type="paragraph", runs=(Run(ink=text),)), style)


def _head(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    names = studio.names(rng, lang)
    shop = rng.choice((names.company(), studio.words(rng, lang, rng.randint(1, 4))))
    shop = shop.upper() if rng.random() < 0.6 else shop
    align = rng.choice(("center", "center", "left"))
    if is_drawable(shop):
        grow = rng.choice((1.0, 1.3, 1.7))
        kind = "h1" if grow > 1.2 else "paragraph"
        head = replace(style, size_pt=style.size_pt * grow, weight="bold", align=align)
        manuscript.add(Block(type=kind, runs=(Run(ink=shop),)), head)
    address = names.address().replace("\n", ", ")
    lines = [
        address,
        f"{rng.choice(('Tel', 'TEL:', 'Phone', 'Tel/Fax:', 'ĐT:'))} {names.phone_number()}",
    ]
    if rng.random() < 0.5:
        label = rng.choice(("GST ID", "GST No:", "VAT", "Reg. No.", "MST:"))
        lines.append(f"{label} {rng.randint(10**8, 10**12 - 1)}")
    for line in lines[: rng.randint(1, 3)]:
        _centred(manuscript, line, replace(style, align=align))
    if rng.random() < 0.5:
        title = rng.choice(
            ("TAX INVOICE", "RECEIPT", "INVOICE", "CASH BILL", "HÓA ĐƠN", "Quittung")
        )
        _centred(
            manuscript, title, replace(style, align=align, weight=rng.choice(("bold", "regular")))
        )


def _facts(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    """Date, number, cashier: one field a line."""
    names = studio.names(rng, lang)
    mark = rng.choice("/-.")
    day = f"{rng.randint(1, 28):02d}{mark}{rng.randint(1, 12):02d}{mark}{rng.randint(2005, 2026)}"
    clock = f"{rng.randint(0, 23):02d}:{rng.randint(0, 59):02d}"
    number = "".join(rng.choice("0123456789ABCX-") for _ in range(rng.randint(4, 12)))
    server = rng.choice(("Cashier", "Served by", "CASHIER :", "Thu ngân:", "Table"))
    facts = [
        rng.choice((f"Date: {day} {clock}", f"{day} {clock}", f"DATE : {day}", f"Ngày: {day}")),
        rng.choice(
            (
                f"Invoice No: {number}",
                f"Bill# {number}",
                f"Receipt no. {number}",
                f"Số HĐ: {number}",
            )
        ),
        f"{server} {names.first_name()}",
        f"Counter {rng.randint(1, 30)}  Shift {rng.randint(1, 4)}",
    ]
    rng.shuffle(facts)
    for fact in facts[: rng.randint(1, 4)]:
        if is_drawable(fact):
            manuscript.add(Block(type="form_field", runs=(Run(ink=fact),)), style)


def _items(
    studio: Studio, rng: random.Random, manuscript: Manuscript, style: Style, lang: str
) -> None:
    columns = rng.choice((2, 2, 3, 4))
    names = {
        2: ("Item", "Amount"), 3: ("Qty", "Description", "Amt"),
        4: ("Item", "Qty", "Price", "Total"),
    }[columns]  # fmt: skip
    rows: list[tuple[Cell | None, ...]] = []
    if rng.random() < 0.5:
        rows.append(tuple(Cell(text=name, header=True) for name in names))
    stacked, loud = columns > 2 and rng.random() < 0.4, rng.random() < 0.6
    room = (manuscript.sheet.height_pt / (style.size_pt * 2.2) - 14) / (2 if stacked else 1)
    for _ in range(max(1, int(room * rng.uniform(0.05, 0.9)))):
        text = _product(studio, rng, lang)
        text = text.upper() if loud else text
        if stacked:
            # The name has a line of its own, code and numbers stand below it.
            rows.append((Cell(text=text, columns=columns), *(None,) * (columns - 1)))
            text = "".join(rng.choice("0123456789") for _ in range(rng.randint(4, 13)))
        count = str(rng.randint(1, 12))
        cells = {
            2: (text, price(rng, lang)), 3: (count, text, price(rng, lang)),
            4: (text, count, price(rng, lang), price(rng, lang)),
        }[columns]  # fmt: skip
        rows.append(tuple(Cell(text=cell) for cell in cells))
    align = {
        2: ("left", "right"),
        3: ("left", "left", "right"),
        4: ("left", "right", "right", "right"),
    }
    widths = {2: ("1fr", "auto"), 3: ("auto", "1fr", "auto"), 4: ("1fr", "auto", "auto", "auto")}
    table = Table(
        rows=tuple(rows), align=align[columns], rules="none", widths=widths[columns],
        inset_pt=rng.uniform(1.7, 4),
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), style)


def _product(studio: Studio, rng: random.Random, lang: str) -> str:
    text = studio.words(rng, lang, rng.randint(1, 4))
    if rng.random() < 0.3:
        unit = rng.choice(("G", "ML", "KG", "L", "PCS", "MM", "X2", "'S"))
        text += f" {rng.randint(1, 999)}{unit}"
    return text


def _taxes(rng: random.Random, manuscript: Manuscript, style: Style, lang: str) -> None:
    """A summary by tax rate."""
    heads = rng.choice((("GST Summary", "Amount", "Tax"), ("Tax Code", "%", "Amt", "Tax")))
    rows = [tuple(Cell(text=head, header=True) for head in heads)]
    for code in rng.sample(("SR", "ZRL", "ZR", "S", "A", "B"), rng.randint(1, 3)):
        first = f"{code} @ {rng.choice((0, 6, 7, 10, 19))}%" if len(heads) == 3 else code
        texts = [first, *(price(rng, lang) for _ in heads[1:])]
        rows.append(tuple(Cell(text=text) for text in texts))
    table = Table(
        rows=tuple(rows), align=("left", *("right",) * (len(heads) - 1)), rules="none",
        widths=("1fr", *("auto",) * (len(heads) - 1)), inset_pt=rng.uniform(1.7, 4),
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), style)


def _sums(rng: random.Random, manuscript: Manuscript, style: Style, lang: str) -> None:
    labels = rng.sample(_SUMS[lang], rng.randint(2, min(6, len(_SUMS[lang]))))
    unit = rng.choice(("", "", "RM ", "$", "€ ")) if lang != "vi" else ""
    rows = tuple(
        (Cell(text=label + rng.choice(("", ":", " :"))), Cell(text=unit + price(rng, lang)))
        for label in labels
    )
    table = Table(
        rows=rows, align=("left", "right"), rules="none", widths=("1fr", "auto"),
        inset_pt=rng.uniform(1.7, 4),
    )  # fmt: skip
    manuscript.add(Block(type="table", table=table), style)
