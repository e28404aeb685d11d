"""Letters, forms and invoices."""

from __future__ import annotations

import random
from dataclasses import replace

from ocria.models.recipes.pages.blocks import Block, Cell, Run, Table
from ocria.models.recipes.pages.corpus import draw_language, is_drawable
from ocria.models.recipes.pages.fonts import SANS, TEXT
from ocria.models.recipes.pages.studio import Draft, Look, Studio
from ocria.models.recipes.pages.typeset import Manuscript

from .books import open_sheet
from .receipts import price

_LABELS = {
    "en": (
        *("Name", "First name", "Date of birth", "Address"),
        *("City", "Postcode", "Telephone", "E-mail"),
        *("Account number", "Occupation", "Nationality", "Signature"),
        *("Date", "Employer", "Passport No."),
    ),
    "vi": (
        *("Họ và tên", "Ngày sinh", "Địa chỉ", "Số điện thoại"),
        *("Nghề nghiệp", "Quốc tịch", "Số CMND", "Nơi cấp"),
        *("Ngày cấp", "Chữ ký", "Dân tộc", "Giới tính"),
        *("Quê quán",),
    ),
    "de": (
        *("Name", "Vorname", "Geburtsdatum", "Anschrift"),
        *("PLZ, Ort", "Telefon", "Staatsangehörigkeit"),
    ),
    "fr": (
        *("Nom", "Prénom", "Date de naissance", "Adresse"),
        *("Code postal", "Téléphone", "Nationalité"),
    ),
    "es": (
        *("Nombre", "Apellidos", "Fecha de nacimiento", "Dirección"),
        *("Teléfono", "Firma"),
    ),
}


def _line(
    manuscript: Manuscript, look: Look, text: str, *, kind: str = "paragraph", **changes: object
) -> None:
    if text.strip() and is_drawable(text):
        style = replace(look.style(), justify=False, **changes)  # type: ignore[arg-type]
        manuscript.add(Block(type=kind, runs=(Run(ink=text),)), style)


def letter(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A business letter: sender, addressee, date, subject, body, close."""
    lang = draw_language(rng)
    look = Look.draw(studio, rng, lang, categories=TEXT + SANS)
    sheet = open_sheet(rng, width_px, height_px, lang)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    names = studio.names(rng, lang)
    side = rng.choice(("left", "right", "center"))
    company = names.company()
    if rng.random() < 0.6 and is_drawable(company):
        look.heading(manuscript, company, 1)
    _line(manuscript, look, names.address().replace("\n", ", "), align=side)
    _line(
        manuscript, look, f"{names.name()}, {names.address()}".replace("\n", ", "), before_pt=20.0
    )
    day = f"{names.city()}, {rng.randint(1, 28)}.{rng.randint(1, 12)}.{rng.randint(1980, 2026)}"
    _line(manuscript, look, day, align=rng.choice(("left", "right")), before_pt=16.0)
    if rng.random() < 0.6:
        _line(manuscript, look, f"Re: {studio.words(rng, lang, rng.randint(2, 8))}", before_pt=14.0)
    _line(manuscript, look, f"Dear {names.last_name()},", before_pt=10.0)
    look.fill(studio, rng, manuscript, look.capacity(sheet) * rng.uniform(0.15, 0.6))
    _line(
        manuscript,
        look,
        rng.choice(("Yours sincerely,", "Kind regards,", "Trân trọng,")),
        before_pt=14.0,
    )
    _line(manuscript, look, names.name(), before_pt=rng.uniform(8, 40))
    if rng.random() < 0.5:
        foot = f"{company} · {names.phone_number()} · {names.email()}"
        if is_drawable(foot):
            style = replace(look.style(), size_pt=look.size_pt * 0.75)
            source = manuscript.inline(Block(type="footer", runs=(Run(ink=foot),)), style)
            manuscript.footer = f"#align(center)[{source}]"
    return Draft(manuscript=manuscript)


def form(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """A form: labels with lines or boxes, some filled in."""
    lang = rng.choices(("en", "vi", "de", "fr", "es"), (50, 25, 9, 8, 8))[0]
    look = Look.draw(studio, rng, lang, categories=SANS + TEXT)
    sheet = open_sheet(rng, width_px, height_px, lang)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    look.heading(manuscript, studio.words(rng, lang, rng.randint(2, 6)).upper(), 1)
    for _ in range(rng.randint(1, 4)):
        if rng.random() < 0.6:
            look.heading(manuscript, studio.words(rng, lang, rng.randint(1, 4)).capitalize(), 3)
        _fields(studio, rng, manuscript, look)
        if rng.random() < 0.5:
            look.fill(studio, rng, manuscript, 200)
    return Draft(manuscript=manuscript)


def _fields(studio: Studio, rng: random.Random, manuscript: Manuscript, look: Look) -> None:
    labels = rng.sample(_LABELS[look.lang], min(len(_LABELS[look.lang]), rng.randint(3, 9)))
    paired = rng.random() < 0.35
    style = replace(look.style(), justify=False, before_pt=look.size_pt, after_pt=look.size_pt)
    hand = studio.shelf.draw(rng, lang=look.lang, categories=("hand", "mono", "sans")).name
    for index in range(0, len(labels), 2 if paired else 1):
        sources = []
        for label in labels[index : index + (2 if paired else 1)]:
            answer = answer_text(studio, rng, look.lang) if rng.random() < 0.7 else ""
            block = Block(type="form_field", runs=(Run(ink=f"{label}: {answer}".strip()),))
            filled = replace(style, family=hand) if rng.random() < 0.1 else style
            rule = "#v(-9pt)#line(length: 100%, stroke: 0.4pt)" if rng.random() < 0.5 else ""
            sources.append(manuscript.placed(block, filled) + rule)
        if paired and len(sources) == 2:
            manuscript.raw(
                f"#grid(columns: (1fr, 1fr), gutter: 12pt, [{sources[0]}], [{sources[1]}])"
            )
        else:
            manuscript.raw("".join(sources))


def labels_of(lang: str) -> tuple[str, ...]:
    """Labels of form fields in a language, English ones where there are none."""
    return _LABELS.get(lang, _LABELS["en"])


def answer_text(studio: Studio, rng: random.Random, lang: str) -> str:
    """What somebody may have written into a field."""
    names = studio.names(rng, lang)
    text = rng.choice(
        (
            names.name(), names.city(), names.phone_number(), names.email(),
            str(rng.randint(10**6, 10**9)),
            f"{rng.randint(1, 28):02d}.{rng.randint(1, 12):02d}.{rng.randint(1940, 2010)}",
            names.address().replace("\n", ", "), studio.words(rng, lang, rng.randint(1, 4)),
        )
    )  # fmt: skip
    return text if is_drawable(text) else names.email()


def invoice(studio: Studio, rng: random.Random, width_px: int, height_px: int) -> Draft:
    """An invoice: parties, facts, a table of items, sums, terms."""
    lang = rng.choices(("en", "vi", "de", "fr", "es"), (60, 14, 10, 8, 8))[0]
    look = Look.draw(studio, rng, lang, categories=SANS + TEXT)
    sheet = open_sheet(rng, width_px, height_px, lang)
    manuscript = Manuscript(sheet=sheet, family=look.body)
    names = studio.names(rng, lang)
    title = {"vi": "HÓA ĐƠN", "de": "Rechnung", "fr": "Facture", "es": "Factura"}.get(
        lang, "INVOICE"
    )
    look.heading(manuscript, title, 1)
    parties = []
    for _ in range(2):
        text = f"{names.company()}, {names.address()}".replace("\n", ", ")
        block = Block(type="paragraph", runs=(Run(ink=text if is_drawable(text) else "Customer"),))
        parties.append(manuscript.placed(block, replace(look.style(), justify=False)))
    manuscript.raw(f"#grid(columns: (1fr, 1fr), gutter: 20pt, [{parties[0]}], [{parties[1]}])")
    for label in rng.sample(("Invoice no.", "Date", "Due date", "Customer ID", "Order"), 3):
        text = (
            f"{label}: {rng.randint(1, 28):02d}-{rng.randint(1, 12):02d}-{rng.randint(2000, 2026)}"
        )
        _line(
            manuscript, look, text, kind="form_field", align=rng.choice(("left", "left", "right"))
        )
    manuscript.add(_items(studio, rng, lang), replace(look.style(), justify=False, before_pt=14))
    if rng.random() < 0.7:
        look.fill(studio, rng, manuscript, rng.uniform(100, 500))
    return Draft(manuscript=manuscript)


def _items(studio: Studio, rng: random.Random, lang: str) -> Block:
    heads = ("No.", "Description", "Qty", "Unit price", "Amount")
    rows: list[tuple[Cell | None, ...]] = [tuple(Cell(text=head, header=True) for head in heads)]
    for index in range(1, rng.randint(2, 18)):
        text = studio.words(rng, lang, rng.choice((1, 2, 3, 4, 9)))
        cells = (str(index), text, str(rng.randint(1, 99)), price(rng, lang), price(rng, lang))
        rows.append(tuple(Cell(text=cell) for cell in cells))
    for label in rng.sample(("Subtotal", "VAT", "Total", "Shipping"), rng.randint(1, 3)):
        span = (Cell(text=label, columns=4), None, None, None)
        rows.append((*span, Cell(text=price(rng, lang))))
    table = Table(
        rows=tuple(rows),
        align=("left", "left", "right", "right", "right"),
        widths=("auto", "1fr", "auto", "auto", "auto"),
        rules=rng.choice(("all", "rows", "head", "none")),
        inset_pt=rng.uniform(3, 6),
        shaded=rng.random() < 0.5,
    )
    return Block(type="table", table=table)
