"""Pages that lie on their side or upside down: seen by the model, turned, read again."""

from collections.abc import Sequence
from dataclasses import replace
from typing import cast

import numpy as np

from ocria.document import Rotation
from ocria.output.frame import quarter_turns
from ocria.pipeline.markup_ids import MarkupIds
from ocria.rasterize import PageImage


def opening_turn(token_ids: Sequence[int], markup: MarkupIds) -> Rotation:
    """The clockwise turn that a reading opens with, in degrees; 0 where it asks for none."""
    if not token_ids:
        return 0
    lexeme = markup.lexemes.get(token_ids[0])
    if lexeme is None or lexeme.kind != "turn":
        return 0
    return cast(Rotation, lexeme.value)


def turn_ids(markup: MarkupIds) -> frozenset[int]:
    """The tokens that ask for a turn."""
    return frozenset(i for i, lexeme in markup.lexemes.items() if lexeme.kind == "turn")


def turned(picture: PageImage, turn: Rotation) -> PageImage:
    """`picture` after a clockwise turn. Its text layer stays behind: its boxes lie otherwise."""
    size = (picture.width_pt, picture.height_pt)
    width_pt, height_pt = size if turn in (0, 180) else size[::-1]
    return replace(
        picture,
        rgb=np.ascontiguousarray(np.rot90(picture.rgb, -turn // 90)),
        width_pt=width_pt,
        height_pt=height_pt,
        rotation=quarter_turns(picture.rotation + turn),
        text=None,
    )
