"""Words of a weight that streams (`Tiling.streams`).

Which column stands at which place of K is free: x is read in the same order. Here, of 64 columns,
lane 4 g + t of the tensor cores' fragments (layout.py) has 16 t to 16 t + 15, in four
multiplications j of 4 columns each, column 16 t + 4 j + 2 h + e at place 2 t + 8 h + e. So a lane
needs one block scale of each of its two rows, and its share of x is 32 bytes in one piece. Inside a
tile of 16 rows:

    nvfp4  [K / 64, 32 lanes, 4 words], word j: columns h, e of rows g + 8 r
    fp8    [K / 64, 2 u, 32 lanes, 4 words], word 2 s + h with j = 2 u + s: columns e of rows
           g + 8 r
    scales [32 lanes, K / 64, 2 r]

Inside a word bits are where a shift and a mask bring them to their places in two bfloat16, sign to
bit 15 and magnitude to 8..6 (nvfp4) or 10..4 (fp8). Half e of a word has, from its highest bit on:

    nvfp4  sign of (h 0, r 0), then (1, 1): high bit, sign; (1, 0) of column 1 - e: magnitude;
           (0, 1): sign; (0, 0): magnitude; (1, 1): two low bits; (1, 0): sign; (0, 1): magnitude
    fp8    sign of r 0; r 1: 3 high bits of the magnitude, sign; r 0: magnitude; r 1: 4 low bits
"""

import torch
from torch import Tensor

from .words import Order, WordLayout


def _e2m1_words(codes: Tensor) -> Tensor:
    nibbles = codes.view(-1, 2, 4).short()
    # (h 0, r 0), (0, 1), (1, 0), (1, 1); the third's magnitude is in the other half.
    a, b, c, d = nibbles.unbind(-1)
    halves = (a & 8) << 12 | (a & 7) << 6 | (b & 8) << 6 | b & 7 | c & 8
    halves |= (c.flip(1) & 7) << 10 | (d & 8) << 10 | (d & 4) << 12 | (d & 3) << 4
    return halves.flatten().view(torch.int32)


def _e2m1_codes(words: Tensor) -> Tensor:
    halves = words.view(torch.int16).view(-1, 2)
    a = halves >> 12 & 8 | halves >> 6 & 7
    b = halves >> 6 & 8 | halves & 7
    c = halves & 8 | halves.flip(1) >> 10 & 7
    d = halves >> 10 & 8 | halves >> 12 & 4 | halves >> 4 & 3
    return torch.stack((a, b, c, d), -1).flatten().byte()


def _e4m3_words(codes: Tensor) -> Tensor:
    a, b = codes.short().view(-1, 2).unbind(-1)
    halves = (a & 0x80) << 8 | (a & 0x7F) << 4
    halves |= (b & 0x70) << 8 | (b & 0x80) << 4 | b & 0x0F
    return halves.view(torch.int32)


def _e4m3_codes(words: Tensor) -> Tensor:
    halves = words.view(torch.int16)
    a = halves >> 8 & 0x80 | halves >> 4 & 0x7F
    b = halves >> 8 & 0x70 | halves >> 4 & 0x80 | halves & 0x0F
    return torch.stack((a, b), -1).flatten().byte()


# Parts: band, row group, r, g, step, column group, then what is named; the last three of e2m1's
# order and the last two of e4m3's are inside a word.
STREAMED_WORDS = WordLayout(
    e2m1=Order((2, 8, 4, 4, 2, 2), (0, 4, 5, 1, 3, 6, 7, 9, 8, 2), 64),  # t j h e
    e4m3=Order((2, 8, 4, 2, 2, 2, 2), (0, 4, 5, 7, 1, 3, 6, 8, 9, 10, 2), 64),  # t u s h e
    scales=Order((2, 8, 4), (0, 4, 1, 3, 6, 5, 2), 4),  # t
    e2m1_words=_e2m1_words,
    e2m1_codes=_e2m1_codes,
    e4m3_words=_e4m3_words,
    e4m3_codes=_e4m3_codes,
)
