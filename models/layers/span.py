"""Which positions a pass runs over: handed through the layers with the hidden rows."""

from typing import NamedTuple

from ocria.models.layers.rope import Rotary


class Span(NamedTuple):
    """Consecutive positions of one sequence.

    Attributes:
        start: absolute position of the first row.
        num_rows: rows of the pass.
        rotary: their angles.
        prefill: the rows are sure to be committed; a window's are not.
    """

    start: int
    num_rows: int
    rotary: Rotary
    prefill: bool

    @property
    def end(self) -> int:
        return self.start + self.num_rows
