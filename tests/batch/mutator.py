"""Damages PDFs in the ways that files are damaged, and in some that only malice thinks of.

Every mutation is fixed by its seed: `python mutator.py IN.pdf OUT_DIR COUNT` writes the first
COUNT mutations of a file, named by kind and seed.
"""

import random
import re
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

Mutation = Callable[[bytes, random.Random], bytes]


def flip_bytes(data: bytes, chance: random.Random) -> bytes:
    """Other values for up to 60 bytes anywhere."""
    damaged = bytearray(data)
    for _ in range(chance.randint(1, 60)):
        damaged[chance.randrange(len(damaged))] = chance.randrange(256)
    return bytes(damaged)


def cut(data: bytes, chance: random.Random) -> bytes:
    """The end is missing."""
    return data[: chance.randrange(1, len(data))]


def hole(data: bytes, chance: random.Random) -> bytes:
    """A stretch of zeros, as a bad copy leaves."""
    start = chance.randrange(len(data))
    length = min(chance.randint(1, 4096), len(data) - start)
    return data[:start] + bytes(length) + data[start + length :]


def splice(data: bytes, chance: random.Random) -> bytes:
    """A stretch of the file stands in another place too."""
    start, to = chance.randrange(len(data)), chance.randrange(len(data))
    return data[:to] + data[start : start + chance.randint(1, 2000)] + data[to:]


def wrong_numbers(data: bytes, chance: random.Random) -> bytes:
    """Lengths, offsets, counts and references that cannot be."""
    values = [b"0", b"-1", b"1", b"65535", b"2147483647", b"99999999999999", b"4294967296"]

    def other(found: re.Match[bytes]) -> bytes:
        return chance.choice(values) if chance.random() < 0.05 else found[0]

    return re.sub(rb"(?<![\w.])\d+(?![\w.])", other, data)


def wrong_lengths(data: bytes, chance: random.Random) -> bytes:
    """Streams that say another length."""
    values = [0, 1, 10, 10**6, 2**31, -5]
    return re.sub(rb"/Length \d+", lambda _: b"/Length %d" % chance.choice(values), data)


def looping_tree(data: bytes, chance: random.Random) -> bytes:
    """A page tree that has itself for a child, or whose parents run in a circle."""
    reference = b"%d 0 R" % chance.randint(1, 4)
    if chance.random() < 0.5:
        return re.sub(rb"/Kids ?\[", b"/Kids[" + reference + b" 2 0 R ", data)
    return re.sub(rb"/Parent \d+ 0 R", b"/Parent " + reference, data)


def giant_box(data: bytes, chance: random.Random) -> bytes:
    """Pages of kilometres, of no size, of negative size, of no number."""
    boxes = [
        b"[0 0 1000000 1000000]",
        b"[0 0 14400000 1]",
        b"[0 0 0 0]",
        b"[100 100 -100 -100]",
        b"[0 0 1e38 1e38]",
        b"[0 0 nan inf]",
        b"[0 0]",
        b"7",
    ]
    return re.sub(rb"/MediaBox ?\[[^\]]*\]", b"/MediaBox" + chance.choice(boxes), data)


def deep_nesting(data: bytes, chance: random.Random) -> bytes:
    """Arrays, dictionaries or graphics states in each other, thousands deep."""
    depth = chance.choice([100, 5_000, 100_000])
    opening, closing = chance.choice([(b"[", b"]"), (b"<<", b">>"), (b"q ", b"Q ")])
    start = data.find(b"stream\n") if opening == b"q " else data.find(b"/Contents")
    start = max(0, start) + (7 if opening == b"q " else 0)
    return data[:start] + opening * depth + closing * depth + data[start:]


def nested_forms(data: bytes, chance: random.Random) -> bytes:
    """A form that draws itself."""
    form = (
        b"<</Type/XObject/Subtype/Form/BBox[0 0 100 100]/Resources<</XObject<</F 99 0 R>>>>"
        b"/Length 5>>stream\n/F Do\nendstream"
    )
    drawn = data.replace(b"/Contents", b"/Resources<</XObject<</F 99 0 R>>>>/Contents")
    drawn = re.sub(rb"stream\n", b"stream\n/F Do ", drawn, count=chance.randint(1, 3))
    end = drawn.rfind(b"xref\n0")
    return drawn[:end] + b"99 0 obj\n" + form + b"\nendobj\n" + drawn[end:]


def filter_bomb(data: bytes, chance: random.Random) -> bytes:
    """Filters that are not there, are applied twice, or blow up."""
    filters = [
        b"/Filter/FlateDecode",
        b"/Filter[/FlateDecode/FlateDecode/FlateDecode]",
        b"/Filter/JBIG2Decode",
        b"/Filter/JPXDecode",
        b"/Filter/Unknown",
        b"/Filter/RunLengthDecode",
        b"/Filter/Crypt",
    ]
    return data.replace(b"/Length", chance.choice(filters) + b"/Length")


def no_table(data: bytes, chance: random.Random) -> bytes:
    """The table of objects is gone, and perhaps the trailer with it."""
    table = data.rfind(b"xref\n0")
    trailer = data.rfind(b"trailer")
    return data[:table] + (data[trailer:] if chance.random() < 0.5 else b"")


MUTATIONS: Mapping[str, Mutation] = {
    function.__name__: function
    for function in (
        flip_bytes,
        cut,
        hole,
        splice,
        wrong_numbers,
        wrong_lengths,
        looping_tree,
        giant_box,
        deep_nesting,
        nested_forms,
        filter_bomb,
        no_table,
    )
}


def mutate(data: bytes, seed: int) -> tuple[str, bytes]:
    """The kind and the bytes of mutation `seed` of a file."""
    names = list(MUTATIONS)
    name = names[seed % len(names)]
    return name, MUTATIONS[name](data, random.Random(seed))


if __name__ == "__main__":
    original, folder = Path(sys.argv[1]), Path(sys.argv[2])
    folder.mkdir(parents=True, exist_ok=True)
    for number in range(int(sys.argv[3])):
        kind, damaged = mutate(original.read_bytes(), number)
        (folder / f"{original.stem}-{number:05}-{kind}.pdf").write_bytes(damaged)
