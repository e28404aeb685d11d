"""Reading the output markup back into blocks, for scoring. MARKUP.md has the rules."""

from __future__ import annotations

import re
from dataclasses import dataclass

from .vocabulary import BLOCK_TYPES, ROTATIONS

_BLOCK = re.compile(r"<\|(" + "|".join(BLOCK_TYPES) + r")\|>((?:<\|\d+\|>){4})")
_TOKEN = re.compile(r"<\|[a-z_0-9]+\|>")
_CELL = re.compile(r"<\|(fcel|ecel|ched|lcel|ucel|xcel|nl)\|>([^<]*)")


@dataclass(frozen=True, kw_only=True)
class ReadBlock:
    """A block as read: type, box in 1/511 of the image's sides, content markup."""

    type: str
    box: tuple[int, int, int, int]
    content: str

    @property
    def text(self) -> str:
        """The characters a reader sees, cells parted by a space."""
        return " ".join(_TOKEN.sub(" ", self.content).split())

    @property
    def cells(self) -> list[tuple[str, str]]:
        """Table cells as (kind, text), `nl` included."""
        return [(kind, text.strip()) for kind, text in _CELL.findall(self.content)]


def read_blocks(markup: str) -> list[ReadBlock]:
    """The blocks of a page; text outside any block is passed over."""
    matches = list(_BLOCK.finditer(markup))
    ends = [m.start() for m in matches[1:]] + [len(markup)]
    blocks = []
    for match, end in zip(matches, ends, strict=False):
        x0, y0, x1, y1 = (int(v) for v in re.findall(r"\d+", match[2]))
        content = markup[match.end() : end]
        blocks.append(ReadBlock(type=match[1], box=(x0, y0, x1, y1), content=content))
    return blocks


def rotation(markup: str) -> str | None:
    """The rotation token's name at the start of a page, if any."""
    return next((name for name in ROTATIONS if markup.startswith(f"<|{name}|>")), None)


def overlap(a: tuple[int, ...], b: tuple[int, ...]) -> float:
    """Intersection over union; a unit is added to each side for thin boxes; 0 if one is damaged."""
    if min(a[2] - a[0], a[3] - a[1], b[2] - b[0], b[3] - b[1]) < 0:
        return 0.0
    width = min(a[2], b[2]) - max(a[0], b[0]) + 1
    height = min(a[3], b[3]) - max(a[1], b[1]) + 1
    shared = max(0, width) * max(0, height)
    areas = [(c[2] - c[0] + 1) * (c[3] - c[1] + 1) for c in (a, b)]
    return shared / (sum(areas) - shared)
