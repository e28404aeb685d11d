"""Makes the example documents beside this file: report.pdf, scan.pdf and book.pdf.

    pip install reportlab && python examples/make.py

The PDF base fonts are used, so nothing is embedded and the files stay small. The same versions
of reportlab, pypdfium2 and Pillow give the same bytes.
"""

import io
from pathlib import Path

import numpy as np
import pypdfium2
from PIL import Image
from reportlab import rl_config
from reportlab.lib import colors
from reportlab.lib.enums import TA_JUSTIFY
from reportlab.lib.pagesizes import A4, A5
from reportlab.lib.styles import ParagraphStyle
from reportlab.lib.units import mm
from reportlab.lib.utils import ImageReader
from reportlab.pdfgen.canvas import Canvas
from reportlab.platypus import Flowable, Frame, ListFlowable, Paragraph, Spacer, Table

# Binary streams: as text they would take a quarter more.
rl_config.useA85 = 0
FOLDER = Path(__file__).parent
TITLE = ParagraphStyle("title", fontName="Helvetica-Bold", fontSize=18, leading=22, spaceAfter=8)
HEADING = ParagraphStyle(
    "heading", fontName="Helvetica-Bold", fontSize=13, leading=16, spaceBefore=9, spaceAfter=5
)
BODY = ParagraphStyle(
    "body", fontName="Times-Roman", fontSize=11, leading=14.2, spaceAfter=6, alignment=TA_JUSTIFY
)
LIST = ParagraphStyle("list", parent=BODY, spaceAfter=3)
CELL_FONT = ("Helvetica", 9.5)

REPORT_OPENING = """The footbridge over the Lind was closed for nineteen days in spring while its
deck was renewed. This report says what was done, what it cost, and what the town should expect of
the bridge over the next twenty years. It replaces the interim note of 4 March, in which the cost
of the railing was given without tax."""
REPORT_FINDINGS = """The old planks were softer than the survey had suggested. Of 212 planks, 138
could be pierced with a hand tool to a depth of more than 15 mm, most of them on the shaded
northern half. The steel beams below had lost less than 2 per cent of their thickness and were
cleaned, primed and painted on site. No part of the foundations had moved since the last
measurement in 2016."""
REPORT_LIST = (
    "All planks were replaced by oak of 60 mm, laid with a gap of 8 mm so that water drains.",
    "The railing was raised from 0.9 m to 1.2 m, as cyclists have used the bridge since 2019.",
    "Two lamps at the western end were moved so that they no longer dazzle boats.",
)
REPORT_COST = (
    ("Item", "Planned (EUR)", "Actual (EUR)"),
    ("Oak planks and screws", "41,200", "43,850"),
    ("Steel work and paint", "18,500", "16,940"),
    ("Railing", "12,000", "14,280"),
    ("Lamps", "3,400", "3,120"),
    ("Total", "75,100", "78,190"),
)
REPORT_CLOSING = """The overrun of 3,090 euros, or 4.1 per cent, is covered by the reserve. We
recommend that the deck be brushed every autumn, that the screws be checked in the second year,
and that the paint be looked at again after eight years. A deck of this kind lasted twenty-six
years at the mill bridge, which carries about the same traffic."""

LETTER = """                                        14 Quarry Lane
                                        Eastwick

                                        9 October 1978

Dear Mr Hollis,

Thank you for your letter of the 2nd and for the
three photographs, which arrived unharmed. The clock
in the second picture is certainly the one that stood
in my grandfather's shop until 1931. I recognise the
chip on the left of the dial, which he always blamed
on my uncle and a cricket ball.

You ask whether the movement was made here or bought
in. I have his ledger before me. On page 88, under
March 1904, he writes: "Movement from Black & Sons,
No. 2217, paid 6 pounds 10 shillings." The case was
made by himself, of walnut, over two winters.

I would gladly see the clock again. If you could
bring it on any Saturday after the 21st, I shall be
at home all day, and there will be tea. Please do not
wind it before then; the spring was weak even in his
time, and a new one can still be had.

With kind regards,

Margaret Teale
"""

BOOK_HEAD = "The Salt Road"
BOOK_CHAPTER = "Chapter 3. The weighing house"
BOOK_PROSE = (
    """The road reached the weighing house at noon, and there it stopped being a road. What lay
beyond was a yard of trodden clay, so wide that the carts on its far side looked like toys, and
every cart was waiting. Ilse counted forty before she gave up. Her father did not count. He had
come here every autumn since he was nine, and he knew that the number made no difference.""",
    """"They weigh the cart," he said, "and then they weigh the cart without the salt. What is left
is what they pay for. So a wise man brings a dry cart, and a foolish man washes his on the way."
He nodded towards a driver who was wringing out a cloth, and for the first time in three days he
laughed.""",
    """The scale itself hung from four beams under a roof of slate. Two women worked it, one at the
weights and one at the book, and neither of them spoke. When a cart rolled on to the planks the
first woman laid brass upon brass until the pointer trembled and stood; the second wrote a figure,
turned the book around, and held out the pen. Nobody ever argued. It was said that a miller had
argued once, in the time of the old bridge, and that he was waiting still.""",
    """By evening they had moved up eleven places. The lamps were lit, somebody fried onions, and a
boy went from wheel to wheel selling straw. Ilse lay on the sacks and watched the pointer swing
against the last light, a little to the left, a little to the right, until she could no longer
tell whether it moved or she did.""",
)
BOOK_TABLE = (
    ("Autumn", "Carts weighed", "Salt (tons)", "Price per ton", "Longest wait"),
    ("1811", "1,204", "962", "17 crowns", "2 days"),
    ("1812", "988", "751", "21 crowns", "1 day"),
    ("1813", "412", "300", "34 crowns", "5 hours"),
    ("1814", "1,377", "1,118", "19 crowns", "3 days"),
    ("1815", "1,560", "1,294", "16 crowns", "4 days"),
)


def ruled_table(rows: tuple[tuple[str, ...], ...], widths: list[float]) -> Table:
    """A table with thin rules and a shaded head; all columns but the first to the right."""
    table = Table(rows, colWidths=widths, hAlign="LEFT", spaceBefore=4, spaceAfter=10)
    table.setStyle(
        [
            ("FONT", (0, 0), (-1, -1), *CELL_FONT),
            ("FONT", (0, 0), (-1, 0), "Helvetica-Bold", CELL_FONT[1]),
            ("ALIGN", (1, 0), (-1, -1), "RIGHT"),
            ("GRID", (0, 0), (-1, -1), 0.5, colors.black),
            ("BACKGROUND", (0, 0), (-1, 0), colors.Color(0.9, 0.9, 0.9)),
        ]
    )
    return table


def new_canvas(target: Path | io.BytesIO, title: str, size: tuple[float, float]) -> Canvas:
    """A canvas without dates and random ids in its bytes."""
    canvas = Canvas(str(target) if isinstance(target, Path) else target, size, invariant=1)
    canvas.setTitle(title)
    return canvas


def fill(canvas: Canvas, story: list[Flowable], x: float, y: float, width: float, height: float):
    """Sets the story into a frame; raises when it does not fit, rather than losing its end."""
    Frame(x, y, width, height, 0, 0, 0, 0).addFromList(story, canvas)
    if story:
        raise ValueError(f"{len(story)} elements do not fit on the page")


def make_report(path: Path) -> None:
    """Born digital: headings, paragraphs, a list and a table on one A4 page."""
    canvas = new_canvas(path, "Renewal of the Lind footbridge", A4)
    items = [Paragraph(text, LIST) for text in REPORT_LIST]
    story: list[Flowable] = [
        Paragraph("Renewal of the Lind footbridge", TITLE),
        Paragraph(REPORT_OPENING, BODY),
        Paragraph("Findings", HEADING),
        Paragraph(REPORT_FINDINGS, BODY),
        Paragraph("Work done", HEADING),
        ListFlowable(items, bulletType="bullet", start="\u2022", leftIndent=14),
        Spacer(1, 4),
        Paragraph("Cost", HEADING),
        ruled_table(REPORT_COST, [60 * mm, 38 * mm, 38 * mm]),
        Paragraph(REPORT_CLOSING, BODY),
    ]
    fill(canvas, story, 25 * mm, 25 * mm, A4[0] - 50 * mm, A4[1] - 50 * mm)
    canvas.setFont("Helvetica", 9)
    canvas.drawCentredString(A4[0] / 2, 14 * mm, "1")
    canvas.save()


def make_scan(path: Path) -> None:
    """A typed letter as a scanner hands it over: a grey picture, skewed, uneven and noisy."""
    typed = io.BytesIO()
    canvas = new_canvas(typed, "Letter", A4)
    lines = canvas.beginText(26 * mm, A4[1] - 32 * mm)
    lines.setFont("Courier", 12, leading=16)
    for line in LETTER.splitlines():
        lines.textLine(line)
    canvas.drawText(lines)
    canvas.save()
    page = pypdfium2.PdfDocument(typed.getvalue())[0]
    picture = as_scanned(page.render(scale=150 / 72, grayscale=True).to_pil().convert("L"))
    canvas = new_canvas(path, "Scanned letter", A4)
    canvas.drawImage(ImageReader(picture), 0, 0, *A4)
    canvas.save()


def as_scanned(page: Image.Image) -> io.BytesIO:
    """Skew of 0.7 degrees, cream paper that darkens to one side, grain; as a JPEG file."""
    skewed = page.rotate(0.7, Image.Resampling.BICUBIC, fillcolor=255)
    grey = np.asarray(skewed).astype(np.float32) / 255
    shade = np.linspace(1.0, 0.93, grey.shape[1])[None, :]
    grain = np.random.default_rng(1978).normal(0, 3.0, grey.shape)
    levels = (38 + 205 * grey) * shade + grain
    picture = Image.fromarray(np.clip(levels, 0, 255).astype(np.uint8))
    file = io.BytesIO()
    picture.save(file, "JPEG", quality=38, dpi=(150, 150))
    file.seek(0)
    return file


def make_book(path: Path) -> None:
    """Three A5 pages: prose with a running head, a blank page, a table on a page that is turned."""
    canvas = new_canvas(path, BOOK_HEAD, A5)
    width, height = A5
    canvas.setFont("Times-Italic", 9.5)
    canvas.drawCentredString(width / 2, height - 12 * mm, BOOK_HEAD)
    prose = [Paragraph(text, BODY) for text in BOOK_PROSE]
    story: list[Flowable] = [Paragraph(BOOK_CHAPTER, HEADING), *prose]
    fill(canvas, story, 16 * mm, 18 * mm, width - 32 * mm, height - 34 * mm)
    canvas.setFont("Times-Roman", 9.5)
    canvas.drawCentredString(width / 2, 9 * mm, "41")
    canvas.showPage()
    canvas.showPage()
    # Drawn sideways on an upright sheet, and /Rotate sets it right again. With a rotation,
    # reportlab takes the size as the reader sees it.
    canvas.setPageSize((height, width))
    canvas.setPageRotation(90)
    canvas.translate(width, 0)
    canvas.rotate(90)
    story = [
        Paragraph("Carts and salt at the weighing house", HEADING),
        ruled_table(BOOK_TABLE, [26 * mm, 34 * mm, 30 * mm, 36 * mm, 36 * mm]),
        Paragraph("No figures were kept between 1816 and 1819, when the yard was flooded.", BODY),
    ]
    fill(canvas, story, 20 * mm, 20 * mm, height - 40 * mm, width - 40 * mm)
    canvas.save()


if __name__ == "__main__":
    make_report(FOLDER / "report.pdf")
    make_scan(FOLDER / "scan.pdf")
    make_book(FOLDER / "book.pdf")
