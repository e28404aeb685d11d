# mypy: disallow-untyped-defs=false
"""Number formats inside Triton kernels. `WIDE` is for the interpreter: see triton_mode.py."""

import triton
import triton.language as tl


@triton.jit
def rounded(x, WIDE: tl.constexpr):
    """float32 to bfloat16, to nearest even; kept in float32 when `WIDE`."""
    if WIDE:
        # The interpreter's own cast cuts the low bits off.
        bits = x.to(tl.int32, bitcast=True)
        bits = (bits + 0x7FFF + ((bits >> 16) & 1)) & -65536
        return bits.to(tl.float32, bitcast=True)
    else:
        return x.to(tl.bfloat16)


@triton.jit
def from_bfloat16_bits(bits, WIDE: tl.constexpr):
    """bfloat16 bits in an int32 tensor as numbers, float32 when `WIDE`."""
    if WIDE:
        return (bits << 16).to(tl.float32, bitcast=True)
    else:
        return bits.to(tl.int16).to(tl.bfloat16, bitcast=True)


@triton.jit
def power_of_two(EXPONENT: tl.constexpr, WIDE: tl.constexpr):
    """2^EXPONENT as [1, 1]."""
    return from_bfloat16_bits(tl.full((1, 1), (EXPONENT + 127) << 7, tl.int32), WIDE)


@triton.jit
def e2m1(code, WIDE: tl.constexpr):
    """value * 2^-126 of 4-bit codes: sign to bit 15, magnitude to bits 8..6."""
    code = code.to(tl.int32)
    return from_bfloat16_bits(((code & 8) << 12) | ((code & 7) << 6), WIDE)


@triton.jit
def e4m3(code, WIDE: tl.constexpr):
    """value * 2^-120 of 8-bit codes: sign to bit 15, magnitude to bits 10..4."""
    code = code.to(tl.int32)
    return from_bfloat16_bits(((code & 0x80) << 8) | ((code & 0x7F) << 4), WIDE)


@triton.jit
def scaled_e2m1(code, scale_code, ROWS: tl.constexpr, WIDTH: tl.constexpr, WIDE: tl.constexpr):
    """[ROWS, WIDTH] numbers * 2^-8, exact, of codes and e4m3 scales [ROWS, WIDTH / 16]."""
    # Code * 2^-126 times scale * 2^118: neither leaves bfloat16's range.
    scale = e4m3(scale_code, WIDE) * power_of_two(119, WIDE) * power_of_two(119, WIDE)
    blocks = tl.reshape(e2m1(code, WIDE), (ROWS, WIDTH // 16, 16))
    return tl.reshape(blocks * scale[:, :, None], (ROWS, WIDTH))
