"""Self-made pages for calibration: nothing needs to be given, and nothing is real.

Text, figures and layouts are drawn by a seeded generator with Pillow's bundled font, so that the
same pages come out on every machine with the same Pillow.
"""

import random
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFilter, ImageFont

# The bundled font has ASCII alone.
_SENTENCES = (
    "The committee met on the second Tuesday of the month and approved the minutes.",
    "Deliveries arrive before noon; anything later waits until the next working day.",
    "Water boils at a lower temperature on the mountain, so beans take longer to cook.",
    "Each part carries a number that the workshop stamps on its lower edge.",
    "She closed the ledger, counted the coins twice, and put out the lamp.",
    "Results improved by 14.2% after the second revision (see section 3.1).",
    "Turn the valve clockwise until it stops, then loosen it by a quarter turn.",
    "The old bridge was rebuilt in 1874 with stone from the quarry nearby.",
    "No warranty covers damage by frost, flooding or improper storage.",
    "A sample of 250 households was asked about rent, heating and travel.",
    "If the light blinks three times, disconnect the unit and call the service desk.",
    "Trains leave at 6:05, 7:35 and 9:10; tickets are sold on board.",
    "Der Antrag ist bis zum 15. Mai schriftlich beim Amt einzureichen.",
    "Der Weg endet hinter dem alten Rathaus, links vom Brunnen.",
    "Le dossier complet est sur la table; il manque une signature.",
    "Il n'y a plus de places dans le train du matin pour Lyon.",
    "La biblioteca abre los lunes y martes por la tarde.",
    "Il treno per Torino parte ogni mattina dal secondo binario.",
    "De vergadering begint om half negen; koffie staat klaar in de hal.",
    "O pagamento deve ser feito na sexta-feira.",
)
_TITLES = (
    "Annual Report",
    "Notes for the Workshop",
    "1. Introduction",
    "Terms of Delivery",
    "Kosten im Mai",
    "Measurements",
    "Appendix B",
    "Mode d'emploi",
)
_ITEMS = ("Paper", "Copper wire", "Schrauben M4", "Lamp oil", "Cotton yarn", "Rope, 20 m", "Seeds")
_HEADS = ("Item", "Qty", "Price", "Total")
# Height and width in pixels: crops, half pages and columns.
_SIZES = ((512, 640), (896, 640), (640, 832), (768, 384), (320, 640), (1024, 768))
_MARGIN_PX = 32


class DrawnPage(NamedTuple):
    """A picture [H, W, 3] and what stands on it, as Markdown."""

    rgb: NDArray[np.uint8]
    markdown: str


def draw_pages(count: int, seed: int = 0) -> list[DrawnPage]:
    """`count` pages; the same for the same seed."""
    return [_draw(random.Random(f"{seed}/{i}"), *_SIZES[i % len(_SIZES)]) for i in range(count)]


def _draw(rng: random.Random, height: int, width: int) -> DrawnPage:
    page = _Page(rng, height, width)
    page.title()
    parts = (page.paragraph, page.items, page.table)
    while page.has_room:
        rng.choices(parts, (5, 2, 2))[0]()
    image = page.image
    if rng.random() < 0.5:
        image = image.filter(ImageFilter.GaussianBlur(rng.uniform(0.2, 0.7)))
    pixels = np.asarray(image, np.float32)
    noise = np.random.default_rng(rng.randrange(1 << 30)).normal(0, rng.uniform(0, 6), pixels.shape)
    grey = np.clip(pixels + noise, 0, 255).astype(np.uint8)
    return DrawnPage(np.repeat(grey[..., None], 3, axis=2), "\n\n".join(page.blocks) + "\n")


class _Page:
    """A grey sheet that is filled from the top."""

    def __init__(self, rng: random.Random, height: int, width: int) -> None:
        self._rng = rng
        self.image = Image.new("L", (width, height), rng.randint(235, 255))
        self._draw = ImageDraw.Draw(self.image)
        self._ink = rng.randint(0, 60)
        self.body_px = rng.uniform(12, 19)
        self._top = float(_MARGIN_PX)
        self.blocks: list[str] = []

    @property
    def has_room(self) -> bool:
        """Whether another part fits."""
        return self._top < self.image.height - _MARGIN_PX - 2 * self.body_px

    def title(self) -> None:
        """A heading in larger type."""
        text, size_px = self._rng.choice(_TITLES), self.body_px * self._rng.uniform(1.4, 2.0)
        self.blocks.append(f"# {self.write(text, size_px)}")

    def write(self, text: str, size_px: float, left: float = _MARGIN_PX) -> str:
        """Text in lines that fit the sheet; what of it did."""
        font = ImageFont.load_default(size_px)
        line, drawn = "", []
        for word in [*text.split(), ""]:
            longer = f"{line} {word}".strip()
            fits = font.getlength(longer) <= self.image.width - _MARGIN_PX - left
            if word and (fits or not line):
                line = longer
                continue
            if self._top + size_px > self.image.height - _MARGIN_PX / 2:
                break
            self._draw.text((left, self._top), line, fill=self._ink, font=font)
            drawn.append(line)
            self._top += size_px * 1.35
            line = word
        self._top += size_px * 0.5
        return " ".join(drawn)

    def paragraph(self) -> None:
        """Two to five sentences."""
        text = " ".join(self._rng.choices(_SENTENCES, k=self._rng.randint(2, 5)))
        self.blocks.append(self.write(text, self.body_px))

    def items(self) -> None:
        """A list with marks or numbers."""
        numbered, lines = self._rng.random() < 0.5, []
        for number in range(1, self._rng.randint(3, 5)):
            mark = f"{number}." if numbered else "-"
            text = f"{mark} {self._rng.choice(_SENTENCES)}"
            lines.append(self.write(text, self.body_px, left=_MARGIN_PX + 16))
        self.blocks.append("\n".join(filter(None, lines)))

    def table(self) -> None:
        """Rows of items and sums, ruled or not."""
        ruled, font = self._rng.random() < 0.6, ImageFont.load_default(self.body_px)
        step, width = self.body_px * 1.7, self.image.width - 2 * _MARGIN_PX
        lines: list[str] = []
        lefts = [_MARGIN_PX + width * share for share in (0.0, 0.45, 0.62, 0.81)]
        for row in range(self._rng.randint(3, 7)):
            if self._top + step > self.image.height - _MARGIN_PX:
                break
            if ruled:
                box = (
                    _MARGIN_PX - 4,
                    self._top,
                    self.image.width - _MARGIN_PX + 4,
                    self._top + step,
                )
                self._draw.rectangle(box, outline=self._ink)
            cells = self._cells(row)
            for left, cell in zip(lefts, cells, strict=True):
                self._draw.text((left, self._top + 2), cell, fill=self._ink, font=font)
            lines += [f"| {' | '.join(cells)} |"] + ["| --- | --- | --- | --- |"] * (row == 0)
            self._top += step
        self.blocks.append("\n".join(lines))
        self._top += self.body_px

    def _cells(self, row: int) -> tuple[str, ...]:
        if row == 0:
            return _HEADS
        count, price = self._rng.randint(1, 99), self._rng.randint(10, 99_999) / 100
        return (self._rng.choice(_ITEMS), str(count), f"{price:.2f}", f"{count * price:,.2f}")
