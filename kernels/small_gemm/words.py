"""How the codes of a tile become words: their order in memory, and the bits of a word."""

from collections.abc import Callable
from typing import NamedTuple

from torch import Tensor


class Order(NamedTuple):
    """Where the numbers of a tile go: its two axes split into parts, and the parts' new order.

    Attributes:
        parts: sizes of the parts behind bands [0], row groups [1], steps [4] and column groups [5].
        order: the parts in memory, outermost first.
        columns: columns of a group.
    """

    parts: tuple[int, ...]
    order: tuple[int, ...]
    columns: int


class WordLayout(NamedTuple):
    """Orders of codes and block scales, and words from codes in order and back.

    Attributes:
        e2m1: order of 4-bit codes.
        e4m3: order of 8-bit codes.
        scales: order of e4m3 block scales; two of them are one int16.
        e2m1_words: int32 words, flat, of uint8 codes, flat.
        e2m1_codes: the inverse.
        e4m3_words: likewise of 8-bit codes.
        e4m3_codes: the inverse.
    """

    e2m1: Order
    e4m3: Order
    scales: Order
    e2m1_words: Callable[[Tensor], Tensor]
    e2m1_codes: Callable[[Tensor], Tensor]
    e4m3_words: Callable[[Tensor], Tensor]
    e4m3_codes: Callable[[Tensor], Tensor]
