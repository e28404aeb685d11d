"""A page that lost its way as a whole, read a second time region by region.

Which of the two readings is kept is told by what the model was sure of: the sum of its text
tokens' probabilities is how many of them it expects to be right. A reading that was cut off in a
loop or left lines out has few; one that goes on in guesses has many of little weight; text that was
written twice counts once, and text that was read across columns half.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ocria.document import Block, Decoding, Page, PageStatus
from ocria.output import joined_table, mean_probability
from ocria.pipeline.box_snapping import snapped
from ocria.pipeline.leaps import find_leaps
from ocria.pipeline.losses import NO_LOSS, Loss, find_loss
from ocria.pipeline.repeats import find_repeats, text_share, without_repeats
from ocria.rasterize import PageImage, TextLayer
from ocria.vision import PageLines, Region

Box = tuple[float, float, float, float]

DOUBTFUL_CONFIDENCE = 0.92
"""Below it a page is read again, although it came to its end. Of self-made pages that did, those
between 0.87 and 0.90 gained (CER 0.084 to 0.010, 0.112 to 0.100); most lie above 0.93."""


_ROOM = 4
"""Times a region's part of the page, by area."""


class Reading(NamedTuple):
    """What was read of a page or region.

    Attributes:
        page: the page; a region is one of its own.
        logprobs: natural logarithm of the probability of each token of its text.
        looped: it was cut off in a loop.
        repeated: share of its text that says again what the page shows once; `page` is without.
        leaps: indices of blocks that were read across columns.
        loss: what the page shows and no block says.
    """

    page: Page
    logprobs: Sequence[float]
    looped: bool
    repeated: float = 0.0
    leaps: frozenset[int] = frozenset()
    loss: Loss = NO_LOSS

    def examined(self, pixels: NDArray[np.uint8]) -> "Reading":
        """The reading with what its picture, uint8 [H, W, 3] or its luma, says against it.

        Its page is without repeats, and its boxes are snapped to the ink.
        """
        repeats, lines = find_repeats(self.page, pixels), PageLines(pixels)
        # What stands nowhere on the page takes no line of it.
        page = snapped(without_repeats(self.page, repeats), lines)
        return self._replace(
            page=page,
            repeated=text_share(self.page, repeats),
            leaps=find_leaps(page, lines.ink_HW),
            loss=find_loss(page, lines),
        )

    @property
    def is_doubtful(self) -> bool:
        """Whether a second reading may be better. One that met its token limit stands."""
        if self.looped or self.repeated:
            return True
        unsure = self.page.confidence is not None and self.page.confidence < DOUBTFUL_CONFIDENCE
        found = unsure or bool(self.leaps) or self.loss.num_lines > 0
        return found and self.page.status != "truncated"

    @property
    def in_order(self) -> float:
        """Share of the text that stands where it belongs; of what leapt half the lines do."""
        return 1.0 - text_share(self.page, self.leaps) / 2

    @property
    def expected_right(self) -> float:
        """How many of the text's tokens are right, as far as the model knows."""
        right = (1.0 - self.repeated) * self.in_order
        return right * math.fsum(map(math.exp, self.logprobs))

    @property
    def final(self) -> Page:
        """The page as it is handed out if this reading is kept.

        Its confidence counts what was left out, and half of what was read across, as wrong.
        """
        page = self.page
        if page.confidence is None or page.status == "truncated":
            return page
        right = self.in_order * (1.0 - self.loss.share)
        return replace(page, confidence=round(page.confidence * right, 2))


class SecondReading:
    """The regions of a page, which may be read side by side, and their readings joined.

    Args:
        picture: the whole page.
        first: how it was read as a whole.
        regions: of the picture, by `page_regions`; boxes of `tables` stay whole, but for large
            ones, whose parts are joined again.
        max_tokens: limit for the page.

    Attributes:
        first: the same.
        pictures: each region as a page of its own; none where the page cannot be cut.
        limits: tokens that each may have: several times its part of the page's, so that no region
            lacks room and all together are bounded.
    """

    def __init__(
        self, picture: PageImage, first: Reading, regions: Sequence[Region], max_tokens: int
    ) -> None:
        self.first = first
        self._whole = picture
        self._max_tokens = max_tokens
        self._regions = regions
        self.pictures = [self._picture(region) for region in regions]
        areas = [(x1 - x0) * (y1 - y0) for x0, y0, x1, y1 in (r.box for r in regions)]
        shares = [_ROOM * area / sum(areas) for area in areas]
        self.limits = [math.ceil(max_tokens * min(1.0, share)) for share in shares]

    def _picture(self, region: Region) -> PageImage:
        whole, (x0, y0, x1, y1) = self._whole, region.box
        return replace(
            whole,
            rgb=region.rgb,
            width_pt=whole.width_pt * (x1 - x0),
            height_pt=whole.height_pt * (y1 - y0),
            text=whole.text and _layer_part(whole.text, region.box),
        )

    def better(self, joined: Reading) -> Page:
        """The better of the two readings; its figures of decoding, the first one's seconds.

        Args:
            joined: of all regions, examined.
        """
        return max(self.first, joined, key=lambda reading: reading.expected_right).final

    def joined(self, readings: Sequence[Reading]) -> Reading:
        """Readings of all regions, one behind the other, as far as the page's limit goes."""
        first = self.first.page
        lengths = accumulate(reading.page.num_tokens for reading in readings)
        kept = [reading for reading, length in zip(readings, lengths, strict=True)
                if length <= self._max_tokens]  # fmt: skip
        pages = [reading.page for reading in kept]
        logprobs = [value for reading in kept for value in reading.logprobs]
        blocks: list[Block] = []
        for region, page in zip(self._regions, pages, strict=False):
            moved = [_moved(block, region.box, first) for block in page.blocks]
            if region.goes_on and _is_table(blocks[-1:]) and _is_table(moved[:1]):
                moved[0] = joined_table(blocks.pop(), moved[0])
            blocks += moved
        is_whole = len(kept) == len(readings)
        page = replace(
            first,
            status=_worst([page.status for page in pages]) if is_whole else "truncated",
            blocks=tuple(
                replace(block, id=f"p{first.number}-b{index}")
                for index, block in enumerate(blocks, 1)
            ),
            confidence=mean_probability(logprobs),
            num_tokens=sum(page.num_tokens for page in pages),
            stats=first.stats and replace(first.stats, decoding=_decoding(pages)),
        )
        looped = any(reading.looped for reading in kept)
        return Reading(page, logprobs, looped)


def tables(first: Reading) -> Iterator[Box]:
    """Boxes of a reading's tables in fractions of the page, but for one that was lost in a loop."""
    page = first.page
    for block in page.blocks[:-1] if first.looped else page.blocks:
        if block.type == "table" and block.bbox and page.width_pt and page.height_pt:
            x0, y0, x1, y1 = block.bbox
            yield x0 / page.width_pt, y0 / page.height_pt, x1 / page.width_pt, y1 / page.height_pt


def _is_table(blocks: Sequence[Block]) -> bool:
    return bool(blocks) and blocks[0].type == "table"


def _moved(block: Block, box: Box, page: Page) -> Block:
    """A region's block in the frame of its page."""
    if block.bbox is None:
        return block
    left, top = box[0] * page.width_pt, box[1] * page.height_pt
    x0, y0, x1, y1 = block.bbox
    moved = (x0 + left, y0 + top, x1 + left, y1 + top)
    limits = (page.width_pt, page.height_pt) * 2
    a, b, c, d = (round(min(v, limit), 2) for v, limit in zip(moved, limits, strict=True))
    return replace(block, bbox=(a, b, c, d))


def _layer_part(layer: TextLayer, box: Box) -> TextLayer:
    """The lines whose middle lies in `box`, in its own fractions."""
    left, top, right, bottom = box
    width, height = right - left, bottom - top

    def is_within(line_box: Box) -> bool:
        x0, y0, x1, y1 = line_box
        return left <= (x0 + x1) / 2 <= right and top <= (y0 + y1) / 2 <= bottom

    def moved(line_box: Box) -> Box:
        x0, y0, x1, y1 = line_box
        return (
            (x0 - left) / width,
            (y0 - top) / height,
            (x1 - left) / width,
            (y1 - top) / height,
        )

    return TextLayer(
        tuple(line._replace(box=moved(line.box)) for line in layer.lines if is_within(line.box))
    )


def _worst(statuses: list[PageStatus]) -> PageStatus:
    order: tuple[PageStatus, ...] = ("truncated", "repaired")
    return next((status for status in order if status in statuses), "ok")


def _decoding(pages: list[Page]) -> Decoding | None:
    """Of all regions together."""
    parts = [page.stats.decoding for page in pages if page.stats and page.stats.decoding]
    if not parts:
        return None
    longest = max(len(part.accepted_histogram) for part in parts)
    histogram = [0] * longest
    for part in parts:
        for emitted, passes in enumerate(part.accepted_histogram):
            histogram[emitted] += passes
    steps = sum(part.steps for part in parts)
    return Decoding(
        drafter=max(parts, key=lambda part: part.steps).drafter,
        steps=steps,
        tokens_per_step=round(sum(page.num_tokens for page in pages) / steps, 3),
        accepted_histogram=tuple(histogram),
    )
