"""The assembly that dequantises, run here instruction by instruction, against the formats."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

fragments = pytest.importorskip("ocria.kernels.small_gemm.fragments")


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


OPERATIONS: dict[str, Callable[..., Tensor]] = {
    "mov.b32": lambda a: a,
    "shl.b32": lambda a, n: bits(a << n),
    "shr.u32": lambda a, n: a >> n,
    "and.b32": lambda a, b: a & b,
    "lop3.b32": lop3,
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
