"""Which positions a pass runs over: handed through the layers with the hidden rows."""

from collections.abc import Iterator
from typing import NamedTuple

from ocria.models.base import SequenceState
from ocria.models.layers.rope import Rotary


class Span(NamedTuple):
    """Consecutive positions of one sequence.

    Attributes:
        state: the sequence.
        start: absolute position of the first row.
        num_rows: rows of the span.
    """

    state: SequenceState
    start: int
    num_rows: int

    @property
    def end(self) -> int:
        return self.start + self.num_rows


class Pass(NamedTuple):
    """The rows of one pass: spans of different sequences, one behind the other.

    Attributes:
        spans: in the order of the rows.
        rotary: angles of all rows.
        prefill: the rows are sure to be committed; a window's are not.
    """

    spans: tuple[Span, ...]
    rotary: Rotary
    prefill: bool

    def placed(self) -> Iterator[tuple[Span, slice]]:
        """Every span with its place among the rows of the pass."""
        first = 0
        for span in self.spans:
            yield span, slice(first, first + span.num_rows)
            first += span.num_rows
