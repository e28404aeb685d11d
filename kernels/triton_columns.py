"""Columns of the sequence table for kernels, which may read no global that is not a constexpr."""

import triton.language as tl

from ocria.kernels import sequence_table as table

FIRST_ROW = tl.constexpr(table.FIRST_ROW)
NUM_ROWS = tl.constexpr(table.NUM_ROWS)
START = tl.constexpr(table.START)
KEPT = tl.constexpr(table.KEPT)
ROPE_DELTA = tl.constexpr(table.ROPE_DELTA)
KEYS = tl.constexpr(table.KEYS)
VALUES = tl.constexpr(table.VALUES)
CONV_IN = tl.constexpr(table.CONV_IN)
CONV_OUT = tl.constexpr(table.CONV_OUT)
DECAY = tl.constexpr(table.DECAY)
BETA = tl.constexpr(table.BETA)
CHECKPOINT = tl.constexpr(table.CHECKPOINT)
