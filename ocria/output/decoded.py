"""What the output room is given for a page, and what it makes of it."""

import math
from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

from ocria.document import Block, Rotation


@dataclass(frozen=True, kw_only=True, slots=True)
class DecodedText:
    """The text a model wrote for one page, with the tokens it is made of.

    Attributes:
        text: special tokens are written out in it.
        token_ends: character offset in `text` after each token, ascending.
        token_logprobs: natural logarithm of each token's probability, same length.
        special_spans: character spans [start, end) that are special tokens. Anything outside
            them that merely looks like one is text that stood on the page.
    """

    text: str
    token_ends: tuple[int, ...] = ()
    token_logprobs: tuple[float, ...] = ()
    special_spans: tuple[tuple[int, int], ...] = ()

    def confidence(self, start: int = 0, end: int | None = None) -> float | None:
        """Geometric mean probability of the tokens that touch [start, end), two decimals.

        None where no token with a known probability lies.
        """
        stop = len(self.text) if end is None else end
        first = bisect_left(self.token_ends, start + 1)
        last = bisect_left(self.token_ends, stop)
        return mean_probability(self.token_logprobs[first : last + 1])

    def part(self, start: int, end: int) -> "DecodedText":
        """The tokens and characters of [start, end) alone, counted from `start`."""
        first = bisect_left(self.token_ends, start + 1)
        last = bisect_left(self.token_ends, end) + 1
        return DecodedText(
            text=self.text[start:end],
            token_ends=tuple(min(place, end) - start for place in self.token_ends[first:last]),
            token_logprobs=self.token_logprobs[first:last],
            special_spans=tuple(
                (max(low, start) - start, min(high, end) - start)
                for low, high in self.special_spans
                if low < end and high > start
            ),
        )

    def text_logprobs(self) -> list[float]:
        """Of the tokens that are not special: corners are uncertain by nature."""
        special_ends = {end for _, end in self.special_spans}
        pairs = zip(self.token_ends, self.token_logprobs, strict=True)
        return [logprob for end, logprob in pairs if end not in special_ends]

    def page_confidence(self) -> float | None:
        """The same over the page's text."""
        return mean_probability(self.text_logprobs())


def mean_probability(logprobs: Sequence[float]) -> float | None:
    """exp(mean of `logprobs`) in 0..1, two decimals; None if there are none or one is NaN."""
    if not logprobs:
        return None
    mean = sum(logprobs) / len(logprobs)
    return None if math.isnan(mean) else round(math.exp(min(mean, 0.0)), 2)


@dataclass(frozen=True, kw_only=True, slots=True)
class PageGeometry:
    """Where a page's blocks lie.

    Attributes:
        number: page number, 1-based.
        width_pt, height_pt: size of the page as the model saw it.
        rotation: clockwise turn, in degrees, already applied to what the file holds
            (/Rotate, EXIF) before the model saw it.
        read_px: (width, height) of the picture that the model read; for models that name places
            in its pixels.
    """

    number: int
    width_pt: float
    height_pt: float
    rotation: Rotation = 0
    read_px: tuple[int, int] | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class PageBlocks:
    """Blocks of a page in reading order, in the frame of the upright page.

    Attributes:
        blocks: with ids `p{page}-b{n}`, n from 1.
        repaired: the model's markup was damaged and something had to be guessed or dropped.
        rotation: clockwise turn from what the file holds to the upright page.
        turn: the part of `rotation` that the model asked for; the page image it saw needs it.
        width_pt, height_pt: size of the upright page.
    """

    blocks: tuple[Block, ...]
    repaired: bool
    rotation: Rotation
    turn: Rotation
    width_pt: float
    height_pt: float
