"""Aligned text for standard output; the same on a terminal and in a pipe."""

from collections.abc import Sequence

from ocria.console import printable


def format_table(rows: Sequence[Sequence[str]]) -> str:
    """`rows` in columns two spaces apart, one line a row, no trailing spaces."""
    rows = [[printable(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    lines = (
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True))
        for row in rows
    )
    return "".join(f"{line.rstrip()}\n" for line in lines)


def format_bytes(num_bytes: int) -> str:
    """Such as `46.1 MiB`."""
    return f"{num_bytes / 2**20:.1f} MiB"
