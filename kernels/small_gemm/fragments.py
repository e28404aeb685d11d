# mypy: disallow-untyped-defs=false
"""Stored weights as operands of the tensor cores, without leaving a lane's registers.

A word of codes becomes two or four pairs of bfloat16 by a shift, two masks and one multiplication
a pair, exactly: an e2m1 code times an e4m3 scale has 6 significant bits. The pairs are those of the
lane's own fragments (layout.py), so that joining and turning them moves nothing: on sm_90 the loop
has 5 instructions a code, where tiles in row order crossed shared memory twice.
"""

import triton
import triton.language as tl

from ocria.kernels.triton_numbers import e2m1, e4m3, power_of_two

# Operand 4: codes; 5: e4m3 scales of rows g and g + 8; 6: 2^119 twice. Outputs: (row g, h 0),
# (g + 8, 0), (g, 1), (g + 8, 1), each columns e 0 and 1. -0 keeps the sign of a zero product.
_E2M1 = tl.constexpr("""{
.reg .b32 v, t, s, g, h, z;
mov.b32 z, 0x80008000;
prmt.b32 s, $5, 0, 0x4140;
shl.b32 s, s, 4;
fma.rn.bf16x2 s, s, $6, z;
fma.rn.bf16x2 s, s, $6, z;
prmt.b32 g, s, 0, 0x1010;
prmt.b32 h, s, 0, 0x3232;
shl.b32 v, $4, 12;
shr.u32 t, v, 6;
and.b32 t, t, 0x01C001C0;
lop3.b32 v, v, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $0, v, g, z;
shl.b32 v, $4, 8;
shr.u32 t, v, 6;
and.b32 t, t, 0x01C001C0;
lop3.b32 v, v, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $1, v, h, z;
shl.b32 v, $4, 4;
shr.u32 t, v, 6;
and.b32 t, t, 0x01C001C0;
lop3.b32 v, v, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $2, v, g, z;
shr.u32 t, $4, 6;
and.b32 t, t, 0x01C001C0;
lop3.b32 v, $4, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $3, v, h, z;
}""")
# Operand 2: codes; 3: 2^120 twice. Outputs: rows g and g + 8, each columns e 0 and 1.
_E4M3 = tl.constexpr("""{
.reg .b32 v, t, z;
mov.b32 z, 0x80008000;
shl.b32 v, $2, 8;
shr.u32 t, v, 4;
and.b32 t, t, 0x07F007F0;
lop3.b32 v, v, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $0, v, $3, z;
shr.u32 t, $2, 4;
and.b32 t, t, 0x07F007F0;
lop3.b32 v, $2, 0x80008000, t, 0xEA;
fma.rn.bf16x2 $1, v, $3, z;
}""")
_TWICE_2_119 = tl.constexpr(0x7B007B00)
_TWICE_2_120 = tl.constexpr(0x7B807B80)


@triton.jit
def _word_places(
    GROUPS: tl.constexpr, ROWS: tl.constexpr, LANES: tl.constexpr, SHARE: tl.constexpr
):
    """Index of [GROUPS, ROWS, 32 lanes, 4]; `SHARE` lanes read the same of `LANES`."""
    group = tl.arange(0, GROUPS)[:, None, None, None]
    row = tl.arange(0, ROWS)[None, :, None, None]
    lane = tl.arange(0, 32)[None, None, :, None] // SHARE
    return ((group * ROWS + row) * LANES + lane) * 4 + tl.arange(0, 4)[None, None, None, :]


@triton.jit
def _pair(word):
    """Two bfloat16 of an int32, low half first."""
    low = (word & 0xFFFF).to(tl.int16).to(tl.bfloat16, bitcast=True)
    return tl.join(low, (word >> 16).to(tl.int16).to(tl.bfloat16, bitcast=True))


@triton.jit
def _e2m1_pair(word, scale_code, SHIFT: tl.constexpr, SCALE_SHIFT: tl.constexpr):
    """What the assembly does, for the interpreter: float32 [..., 2]."""
    scale = e4m3((scale_code >> SCALE_SHIFT) & 0xFF, True) * power_of_two(119, True)
    scale = scale * power_of_two(119, True)
    low, high = e2m1((word >> SHIFT) & 15, True), e2m1((word >> (SHIFT + 16)) & 15, True)
    return tl.join(low * scale, high * scale)


@triton.jit
def _e4m3_pair(word, SHIFT: tl.constexpr):
    low, high = e4m3((word >> SHIFT) & 0xFF, True), e4m3((word >> (SHIFT + 16)) & 0xFF, True)
    return tl.join(low * power_of_two(120, True), high * power_of_two(120, True))


@triton.jit
def e2m1_tile(
    codes, scales, tile, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr
):
    """Tile `tile` of an NVFP4 weight, [BLOCK_N, BLOCK_K] numbers * 2^-8."""
    GROUPS: tl.constexpr = BLOCK_K // 64
    ROWS: tl.constexpr = BLOCK_N // 16
    word = tl.load(codes + tile * (BLOCK_N * BLOCK_K // 8) + _word_places(GROUPS, ROWS, 32, 1))
    scale = tl.load(scales + tile * (BLOCK_N * BLOCK_K // 32) + _word_places(GROUPS, ROWS, 8, 4))
    scale = scale.to(tl.int32)
    if WIDE:
        a, b = _e2m1_pair(word, scale, 0, 0), _e2m1_pair(word, scale, 4, 8)
        c, d = _e2m1_pair(word, scale, 8, 0), _e2m1_pair(word, scale, 12, 8)
    else:
        a, b, c, d = tl.inline_asm_elementwise(
            _E2M1, "=&r,=&r,=&r,=&r,r,r,r", [word, scale, _TWICE_2_119],
            dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=True, pack=1,
        )  # fmt: skip
        a, b, c, d = _pair(a), _pair(b), _pair(c), _pair(d)
    joined = tl.join(tl.join(a, c), tl.join(b, d))
    # Groups, row groups, g, t, blocks, e, h, r.
    parts = tl.reshape(joined, (GROUPS, ROWS, 8, 4, 4, 2, 2, 2))
    return tl.reshape(tl.permute(parts, (1, 7, 2, 0, 4, 6, 3, 5)), (BLOCK_N, BLOCK_K))


@triton.jit
def e4m3_tile(codes, tile, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """Tile `tile` of an FP8 weight, [BLOCK_N, BLOCK_K] numbers."""
    GROUPS: tl.constexpr = BLOCK_K // 32
    ROWS: tl.constexpr = BLOCK_N // 16
    word = tl.load(codes + tile * (BLOCK_N * BLOCK_K // 4) + _word_places(GROUPS, ROWS, 32, 1))
    if WIDE:
        a, b = _e4m3_pair(word, 0), _e4m3_pair(word, 8)
    else:
        a, b = tl.inline_asm_elementwise(
            _E4M3, "=&r,=&r,r,r", [word, _TWICE_2_120], dtype=(tl.int32, tl.int32),
            is_pure=True, pack=1,
        )  # fmt: skip
        a, b = _pair(a), _pair(b)
    # Groups, row groups, g, t, s, h, e, r.
    parts = tl.reshape(tl.join(a, b), (GROUPS, ROWS, 8, 4, 2, 2, 2, 2))
    return tl.reshape(tl.permute(parts, (1, 7, 2, 0, 4, 5, 3, 6)), (BLOCK_N, BLOCK_K))
