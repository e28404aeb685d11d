"""The assembly that dequantises, run here instruction by instruction, against the formats.

Words that stream are packed, and their scales taken apart, as a kernel does it.
"""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from ocria.kernels.small_gemm import Tiling, WeightCodes, pack, unpack

fragments = pytest.importorskip("ocria.kernels.small_gemm.fragments")
streamed = pytest.importorskip("ocria.kernels.small_gemm.streamed_fragments")


def bits(x: Tensor) -> Tensor:
    return x & 0xFFFFFFFF


def bfloat16(halves: Tensor) -> Tensor:
    """Values of 16-bit patterns."""
    return (halves << 16).to(torch.int32).view(torch.float32).double()


def pattern(values: Tensor) -> Tensor:
    """16-bit patterns of values, to nearest even; they must be exact here."""
    rounded = values.to(torch.bfloat16)
    assert torch.equal(rounded.double(), values), "a product was rounded"
    return rounded.view(torch.int16).long() & 0xFFFF


def fma(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    parts = [
        pattern(bfloat16(a >> shift & 0xFFFF) * bfloat16(b >> shift & 0xFFFF)) for shift in (0, 16)
    ]
    assert (c == 0x80008000).all()
    return parts[0] | parts[1] << 16


def prmt(a: Tensor, b: Tensor, selector: Tensor) -> Tensor:
    both, chosen = bits(a) | bits(b) << 32, int(selector)
    places = [8 * (chosen >> 4 * n & 7) for n in range(4)]
    return torch.stack([(both >> place & 0xFF) << 8 * n for n, place in enumerate(places)]).sum(0)


def lop3(a: Tensor, b: Tensor, c: Tensor, table: Tensor) -> Tensor:
    assert int(table) == 0xEA
    return a & b | c


def funnel(low: Tensor, high: Tensor, n: Tensor) -> Tensor:
    return bits(high << n) | low >> (32 - n)


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "mov.b32": lambda a: a,
    "shl.b32": lambda a, n: bits(a << n),
    "shr.u32": lambda a, n: a >> n,
    "and.b32": lambda a, b: a & b,
    "lop3.b32": lop3,
    "shf.l.wrap.b32": funnel,
    "prmt.b32": prmt,
    "fma.rn.bf16x2": fma,
}


def run(assembly: str, num_outputs: int, operands: list[Tensor]) -> list[Tensor]:
    registers = {f"${num_outputs + n}": bits(value) for n, value in enumerate(operands)}
    for line in assembly.strip("{}\n ").split(";"):
        name, _, rest = line.strip().partition(" ")
        if not name or name == ".reg":
            continue
        target, *sources = (part.strip() for part in rest.split(","))
        values = [
            registers[part] if part in registers else torch.tensor(int(part, 0)) for part in sources
        ]
        registers[target] = OPERATIONS[name](*values)
    return [registers[f"${n}"] for n in range(num_outputs)]


def test_e2m1_with_every_scale_is_exact() -> None:
    code, scale = torch.arange(16)[:, None], torch.arange(0x7F)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    value = torch.cat((table, -table))
    of_scale = scale.to(torch.uint8).view(torch.float8_e4m3fn).double()
    # Scale g counts up, scale g + 8 down; all eight codes of a word differ.
    codes = [(code + 3 * n) % 16 for n in range(8)]
    word = sum((codes[n] << 4 * n for n in range(8)), torch.zeros_like(code))
    scales = scale | scale.flip(0) << 8
    factor = torch.tensor(fragments._TWICE_2_119.value)
    found = run(fragments._E2M1.value, 4, [word.expand(16, 0x7F), scales, factor])
    for n, output in enumerate(found):
        row_scale = of_scale.flip(0) if n % 2 else of_scale
        for e in range(2):
            expected = value[codes[4 * e + n]] * row_scale * 2.0**-8
            assert torch.equal(bfloat16(output >> 16 * e & 0xFFFF), expected)


def test_e4m3_is_exact() -> None:
    code = torch.tensor([n for n in range(256) if n & 0x7F != 0x7F])
    codes = [code.roll(n) for n in range(4)]
    word = sum((codes[n] << 8 * n for n in range(4)), torch.zeros_like(code))
    factor = torch.tensor(fragments._TWICE_2_120.value)
    found = run(fragments._E4M3.value, 2, [word, factor])
    for n, output in enumerate(found):
        for e in range(2):
            expected = codes[2 * e + n].to(torch.uint8).view(torch.float8_e4m3fn).double()
            assert torch.equal(bfloat16(output >> 16 * e & 0xFFFF), expected)


def tiles_of(values: WeightCodes) -> tuple[Tensor, Tensor]:
    """Words [K / 64, 8 g, 4 t, 4] of 16 rows in tiles of 64 columns, and scales [K / 64, 8 g, 4 t].

    Codes of 8 bits have two such words: [K / 64, 2 u, 8 g, 4 t, 4].
    """
    weight = pack([values], tiling=Tiling(block_n=16, block_k=64, num_warps=1, streams=True))
    if values.format == "fp8":
        assert torch.equal(unpack(weight), values.codes.float())
        return weight.codes.view(-1, 2, 8, 4, 4).long(), weight.block_scales
    return weight.codes.view(-1, 8, 4, 4).long(), weight.block_scales.view(-1, 8, 4)


def columns(num_groups: int, t: Tensor, j: Tensor, h: int, e: int) -> Tensor:
    return torch.arange(num_groups)[:, None, None, None] * 64 + 16 * t + 4 * j + 2 * h + e


def test_streamed_e2m1_with_every_scale_is_exact() -> None:
    # 16 rows of 128 blocks: a block has all 16 codes, and every scale stands in every row.
    row = torch.arange(16)[:, None]
    code = ((torch.arange(16)[None, None, :] * 5 + row[:, :, None]) % 16).expand(16, 128, 16)
    scale = (torch.arange(128)[None, :] + 37 * row) % 0x7F
    flat = code.reshape(16, 2048)
    stored = WeightCodes(
        "nvfp4",
        (flat[:, 0::2] | flat[:, 1::2] << 4).to(torch.uint8),
        torch.ones(16),
        scale.to(torch.uint8).view(torch.float8_e4m3fn),
    )
    word, scales = tiles_of(stored)
    table = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6], dtype=torch.float64)
    of_scale = scale.to(torch.uint8).view(torch.float8_e4m3fn).double().repeat_interleave(16, 1)
    expected = torch.cat((table, -table))[flat] * of_scale * 2.0**-8
    factor = torch.tensor(fragments._TWICE_2_119.value)
    doubled = run(streamed._SCALES.value, 2, [scales[..., None].long(), factor])
    found = run(streamed._E2M1.value, 4, [word, *doubled])
    g = torch.arange(8)[None, :, None, None]
    t, j = torch.arange(4)[None, None, :, None], torch.arange(4)[None, None, None, :]
    for n, output in enumerate(found):
        for e in range(2):
            at = g + 8 * (n % 2), columns(32, t, j, n // 2, e)
            values, is_minus = expected[at], (flat >= 8)[at]
            assert torch.equal(bfloat16(output >> 16 * e & 0xFFFF), values)
            zeros = values == 0
            assert torch.equal((output >> (16 * e + 15) & 1)[zeros], is_minus[zeros].long())


def test_streamed_e4m3_is_exact() -> None:
    code = torch.tensor([n for n in range(256) if n & 0x7F != 0x7F] + [0, 0x80])
    rows = torch.stack([code.roll(17 * n) for n in range(16)]).to(torch.uint8)
    word, _ = tiles_of(WeightCodes("fp8", rows.view(torch.float8_e4m3fn), torch.ones(16)))
    factor = torch.tensor(fragments._TWICE_2_120.value)
    g = torch.arange(8)[None, :, None, None]
    t, w = torch.arange(4)[None, None, :, None], torch.arange(4)[None, None, None, :]
    expected = rows.view(torch.float8_e4m3fn).double()
    for u in range(2):
        found = run(streamed._E4M3.value, 2, [word[:, u], factor])
        for n, output in enumerate(found):
            for e in range(2):
                at = columns(4, t, 2 * u + w // 2, 0, e) + 2 * (w % 2)
                values = bfloat16(output >> 16 * e & 0xFFFF)
                assert torch.equal(values, expected[g + 8 * n, at])
