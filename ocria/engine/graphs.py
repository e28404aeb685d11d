"""The graph runner: a verify pass as one launch from the host, where the target allows it.

A pass of a size is run plainly, captured, and replayed from then on. Sizes are rounded up, so that
a few graphs serve all windows; a row does not notice: its arithmetic depends on neither.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, runtime_checkable

import torch

from ocria.models.base import ROW_TILE, Output, SequenceState, Target, Window


class StaticPass(Protocol):
    """A pass of a fixed size whose inputs lie on the device."""

    def load(self, windows: Sequence[Window]) -> None:
        """Puts windows in place."""
        ...

    def run(self) -> Output:
        """Runs the pass: the same launches on the same memory each time."""
        ...


@runtime_checkable
class StaticTarget(Protocol):
    """A target that has passes of fixed sizes."""

    def static_pass(
        self, windows: Sequence[Window], num_rows: int, num_sequences: int
    ) -> StaticPass | None:
        """Room for that many rows and sequences with `windows` loaded; None if not captured."""
        ...


class Captured(NamedTuple):
    """A pass and what replays it into its output."""

    static: StaticPass
    output: Output
    replay: Callable[[], None]


class GraphRunner:
    """Runs a target's verify passes, by graphs where it has static passes."""

    def __init__(self, target: Target) -> None:
        self._target = target
        self._captured: dict[tuple[int, int], Captured | None] = {}
        self._layout: tuple[tuple[int, ...], ...] = ()

    @torch.inference_mode()
    def verify(self, windows: Sequence[Window]) -> Output:
        """See `Target.verify`. Logits are overwritten by the next pass, taps are not."""
        if not isinstance(self._target, StaticTarget):
            return self._target.verify(windows)
        num_rows = sum(len(window.token_ids) for window in windows)
        size = (rounded_rows(num_rows), 1 << (len(windows) - 1).bit_length())
        self._forget_other_pools(windows[0].state)
        if size not in self._captured:
            static = self._target.static_pass(windows, *size)
            self._captured[size] = None if static is None else capture(static)
        captured = self._captured[size]
        if captured is None:
            return self._target.verify(windows)
        captured.static.load(windows)
        captured.replay()
        logits, taps = captured.output
        return Output(logits[:num_rows], None if taps is None else taps[:num_rows].clone())

    def _forget_other_pools(self, state: SequenceState) -> None:
        """A resized pool has other strides, which captured launches hold."""
        layout = (state.keys_LJSD.stride(), state.checkpoint_LRKW.stride())
        if layout != self._layout:
            self._captured.clear()
            self._layout = layout


def rounded_rows(num_rows: int) -> int:
    """Rows that a graph for `num_rows` has: a power of two, from a whole tile on whole tiles."""
    if num_rows >= ROW_TILE:
        return -(-num_rows // ROW_TILE) * ROW_TILE
    return 1 << (num_rows - 1).bit_length()


def capture(static: StaticPass) -> Captured:
    """Runs the loaded pass, which compiles its kernels, and captures it on CUDA.

    Running it several times changes nothing: it writes behind the cursor only.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        static.run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        output = static.run()
    return Captured(static, output, graph.replay)
