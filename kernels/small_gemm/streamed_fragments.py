# mypy: disallow-untyped-defs=false
"""Stored weights that stream as operands of the tensor cores: loads and the way to bfloat16.

As fragments.py, but most pairs of bfloat16 take a shift, a mask and one multiplication, and 16
columns of a lane share a scale (streamed_layout.py). Every tensor here is of lanes and what a lane
holds: how Triton spreads more axes over the lanes differs between its versions, and moving numbers
to their lanes costs more than the product.
"""

import triton
import triton.language as tl

from ocria.kernels.triton_numbers import e4m3, power_of_two

from .fragments import _TWICE_2_119, _TWICE_2_120, _pair

# Operand 2: e4m3 scales of rows g and g + 8; 3: 2^119 twice. Outputs: each scale * 2^118, twice.
# -0 keeps the sign of a zero product.
_SCALES = tl.constexpr("""{
.reg .b32 s, z;
mov.b32 z, 0x80008000;
prmt.b32 s, $2, 0, 0x4140;
shl.b32 s, s, 4;
fma.rn.bf16x2 s, s, $3, z;
fma.rn.bf16x2 s, s, $3, z;
prmt.b32 $0, s, 0, 0x1010;
prmt.b32 $1, s, 0, 0x3232;
}""")
# Operand 4: codes; 5 and 6: scales of rows g and g + 8. Outputs: (row g, h 0), (g + 8, 0), (g, 1),
# (g + 8, 1), each columns e 0 and 1.
_E2M1 = tl.constexpr("""{
.reg .b32 v, t, z;
mov.b32 z, 0x80008000;
and.b32 v, $4, 0x81C081C0;
fma.rn.bf16x2 $0, v, $5, z;
shl.b32 v, $4, 6;
and.b32 v, v, 0x81C081C0;
fma.rn.bf16x2 $1, v, $6, z;
shf.l.wrap.b32 v, $4, $4, 12;
and.b32 v, v, 0x81C081C0;
fma.rn.bf16x2 $2, v, $5, z;
shr.u32 t, $4, 6;
and.b32 t, t, 0x01000100;
shl.b32 v, $4, 2;
lop3.b32 v, v, 0x80C080C0, t, 0xEA;
fma.rn.bf16x2 $3, v, $6, z;
}""")
# Operand 2: codes; 3: 2^120 twice. Outputs: rows g and g + 8, each columns e 0 and 1.
_E4M3 = tl.constexpr("""{
.reg .b32 v, t, z;
mov.b32 z, 0x80008000;
and.b32 v, $2, 0x87F087F0;
fma.rn.bf16x2 $0, v, $3, z;
shr.u32 t, $2, 4;
and.b32 t, t, 0x07000700;
shl.b32 v, $2, 4;
lop3.b32 v, v, 0x80F080F0, t, 0xEA;
fma.rn.bf16x2 $1, v, $3, z;
}""")
# Where stored codes become bfloat16 Triton 3.6 gives a lane four neighbouring places of K, 3.9 two
# and two. Both multiply the same numbers in the same registers, so places are named as it expects
# them: else numbers would move between lanes at every step.
FOUR_PLACES = tl.constexpr(tuple(map(int, triton.__version__.split(".")[:2])) < (3, 9))


@triton.jit
def gathered(at, left, apart, falls, COUNT: tl.constexpr, CACHE: tl.constexpr):
    """Numbers at `at`, `at + apart` and so on, 1, 2 or 4 behind each other in a lane: [..., COUNT].

    A place has a number if `left`, less `falls` a step, is positive; else it has zero.
    """
    first = tl.load(at, mask=left > 0, other=0, cache_modifier=CACHE)
    if COUNT == 1:
        return tl.expand_dims(first, -1)
    elif COUNT == 2:
        second = tl.load(at + apart, mask=left > falls, other=0, cache_modifier=CACHE)
        return tl.join(first, second)
    else:
        tl.static_assert(COUNT == 4)
        second = tl.load(at + apart, mask=left > falls, other=0, cache_modifier=CACHE)
        third = tl.load(at + 2 * apart, mask=left > 2 * falls, other=0, cache_modifier=CACHE)
        fourth = tl.load(at + 3 * apart, mask=left > 3 * falls, other=0, cache_modifier=CACHE)
        four = tl.join(tl.join(first, third), tl.join(second, fourth))
        return tl.reshape(four, (at.shape[0], at.shape[1], 4))


@triton.jit
def _words(at, left, GROUPS: tl.constexpr):
    """Words [GROUPS, 1, 32, 4] of a tile of 16 rows that begins at `at`."""
    place = tl.arange(0, 32)[:, None] * 4 + tl.arange(0, 4)[None, :]
    many = tl.full((32, 4), left, tl.int32)
    found = gathered(at + place, many, 128, 0, GROUPS, ".cg")
    return tl.reshape(tl.permute(found, (2, 0, 1)), (GROUPS, 1, 32, 4))


@triton.jit
def _wide_pair(word):
    """Two bfloat16 of a uint32 as float32, for the interpreter."""
    low, high = word << 16, word & 0xFFFF0000
    return tl.join(low.to(tl.float32, bitcast=True), high.to(tl.float32, bitcast=True))


@triton.jit
def _wide_e2m1(word, scale):
    """What the assembly does, for the interpreter: float32 [..., 2], four times."""
    word = word.to(tl.uint32, bitcast=True)
    factor = power_of_two(119, True)
    low = e4m3(scale & 0xFF, True) * factor * factor
    high = e4m3((scale >> 8) & 0xFF, True) * factor * factor
    g, h = tl.join(low, low), tl.join(high, high)
    fourth = ((word << 2) & 0x80C080C0) | ((word >> 6) & 0x01000100)
    return (
        _wide_pair(word & 0x81C081C0) * g,
        _wide_pair((word << 6) & 0x81C081C0) * h,
        _wide_pair(((word << 12) | (word >> 20)) & 0x81C081C0) * g,
        _wide_pair(fourth) * h,
    )


@triton.jit
def _wide_e4m3(word):
    word = word.to(tl.uint32, bitcast=True)
    factor = power_of_two(120, True)
    second = ((word << 4) & 0x80F080F0) | ((word >> 4) & 0x07000700)
    return _wide_pair(word & 0x87F087F0) * factor, _wide_pair(second) * factor


@triton.jit
def e2m1_words(codes, scales, tile, left, BLOCK_K: tl.constexpr):
    """Words [BLOCK_K / 64, 1, 32, 4] of tile `tile` of an NVFP4 weight, and scales [..., 1].

    Zeros if none is `left`.
    """
    GROUPS: tl.constexpr = BLOCK_K // 64
    place = tl.arange(0, 32)[:, None] * GROUPS + tl.arange(0, GROUPS)[None, :]
    many = tl.full((32, GROUPS), left, tl.int32)
    scales += tile * (16 * BLOCK_K // 32)
    scale = tl.load(scales + place, mask=many > 0, other=0, cache_modifier=".cg")
    scale = tl.reshape(tl.permute(scale, (1, 0)), (GROUPS, 1, 32, 1))
    return _words(codes + tile * (16 * BLOCK_K // 8), left, GROUPS), scale


@triton.jit
def e2m1_tile(word, scale, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """[16, BLOCK_K] numbers * 2^-8, columns in the lanes' order."""
    GROUPS: tl.constexpr = BLOCK_K // 64
    if WIDE:
        a, b, c, d = _wide_e2m1(word, scale.to(tl.int32))
    else:
        low, high = tl.inline_asm_elementwise(
            _SCALES, "=&r,=&r,r,r", [scale.to(tl.int32), _TWICE_2_119],
            dtype=(tl.int32, tl.int32), is_pure=True, pack=1,
        )  # fmt: skip
        a, b, c, d = tl.inline_asm_elementwise(
            _E2M1, "=&r,=&r,=&r,=&r,r,r,r", [word, low, high],
            dtype=(tl.int32, tl.int32, tl.int32, tl.int32), is_pure=True, pack=1,
        )  # fmt: skip
        a, b, c, d = _pair(a), _pair(b), _pair(c), _pair(d)
    joined = tl.join(tl.join(a, c), tl.join(b, d))
    # Groups, row groups, g, t, j, e, h, r.
    parts = tl.reshape(joined, (GROUPS, 1, 8, 4, 4, 2, 2, 2))
    if FOUR_PLACES:
        turned = tl.permute(parts, (1, 7, 2, 0, 4, 3, 6, 5))
    else:
        turned = tl.permute(parts, (1, 7, 2, 0, 4, 6, 3, 5))
    return tl.reshape(turned, (16, BLOCK_K))


@triton.jit
def e4m3_words(codes, tile, left, BLOCK_K: tl.constexpr):
    """Words [BLOCK_K / 32, 1, 32, 4] of tile `tile` of an FP8 weight; zeros if none is `left`."""
    return _words(codes + tile * (16 * BLOCK_K // 4), left, BLOCK_K // 32)


@triton.jit
def e4m3_tile(word, BLOCK_K: tl.constexpr, WIDE: tl.constexpr):
    """[16, BLOCK_K] numbers, columns in the lanes' order."""
    GROUPS: tl.constexpr = BLOCK_K // 32
    if WIDE:
        a, b = _wide_e4m3(word)
    else:
        a, b = tl.inline_asm_elementwise(
            _E4M3, "=&r,=&r,r,r", [word, _TWICE_2_120], dtype=(tl.int32, tl.int32),
            is_pure=True, pack=1,
        )  # fmt: skip
        a, b = _pair(a), _pair(b)
    # Groups, row groups, g, t, s, h, e, r.
    parts = tl.reshape(tl.join(a, b), (GROUPS, 1, 8, 4, 2, 2, 2, 2))
    if FOUR_PLACES:
        turned = tl.permute(parts, (1, 7, 2, 0, 4, 3, 5, 6))
    else:
        turned = tl.permute(parts, (1, 7, 2, 0, 4, 5, 3, 6))
    return tl.reshape(turned, (16, BLOCK_K))
