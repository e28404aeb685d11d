"""The graph runner: a verify pass as one launch from the host, where the target allows it.

A pass of a size is run plainly, captured, and replayed from then on. Sizes are rounded up, so that
a few graphs serve all windows; a row does not notice: its arithmetic depends on neither.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, TypeVar, runtime_checkable

import torch
from torch import Tensor

from ocria.models.base import ROW_TILE, Best, Output, SequenceState, Target, Window

T = TypeVar("T")


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
        self,
        windows: Sequence[Window],
        num_rows: int,
        num_sequences: int,
        *,
        forbidden_V: Tensor,
        with_logits: bool,
    ) -> StaticPass | None:
        """Room for that many rows and sequences with `windows` loaded; None if not captured.

        Its output has `best`, never an id with a one in `forbidden_V`, and logits where asked.
        """
        ...


class Captured(NamedTuple):
    """A pass and what replays it into its output."""

    static: StaticPass
    output: Output
    replay: Callable[[], None]


_Key = tuple[int, int, bool, tuple[int, ...]]
"""Rows, sequences, whether with logits, tapped layers."""


class GraphRunner:
    """Runs a target's verify passes, by graphs where it has static passes.

    Args:
        target: what is run.
        forbidden_ids: tokens that are never the best.
    """

    def __init__(self, target: Target, forbidden_ids: Sequence[int] = ()) -> None:
        self._target = target
        forbidden_V = torch.zeros(target.vocab_size, dtype=torch.uint8)
        forbidden_V[list(forbidden_ids)] = 1
        self._forbidden_V = forbidden_V.to(target.device)
        self._captured: dict[_Key, Captured | None] = {}
        self._layout: tuple[tuple[int, ...], ...] = ()

    @torch.inference_mode()
    def verify(self, windows: Sequence[Window], *, with_logits: bool = True) -> Output:
        """See `Target.verify`; a captured pass gives `best`, and logits only `with_logits`.

        Both are overwritten by the next pass, taps are not.
        """
        if not isinstance(self._target, StaticTarget):
            return self._target.verify(windows)
        num_rows = sum(len(window.token_ids) for window in windows)
        size = (rounded_rows(num_rows), 1 << (len(windows) - 1).bit_length())
        self._forget_other_pools(windows[0].state)
        key = (*size, with_logits, self._target.tap_layers)
        if key not in self._captured:
            static = self._target.static_pass(
                windows, *size, forbidden_V=self._forbidden_V, with_logits=with_logits
            )
            self._captured[key] = None if static is None else capture(static)
        captured = self._captured[key]
        if captured is None:
            return self._target.verify(windows)
        captured.static.load(windows)
        captured.replay()
        logits, taps, best = captured.output
        return Output(
            logits[:num_rows],
            None if taps is None else taps[:num_rows].clone(),
            None if best is None else Best(*(part[:num_rows] for part in best)),
        )

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
    """Runs the loaded pass and captures it on CUDA.

    Running it several times changes nothing: it writes behind the cursor only.
    """
    return Captured(static, *record(static.run))


def can_record(device: torch.device) -> bool:
    """Whether launches on this device can be captured."""
    return device.type == "cuda"


def record(run: Callable[[], T]) -> tuple[T, Callable[[], None]]:
    """Runs something, which compiles its kernels, and captures it on CUDA; its output, and what
    replays it into that.

    What it reads must live as long: a captured launch holds addresses, not tensors.
    """
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        run()
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph, capture_error_mode="thread_local"):
        output = run()
    return output, graph.replay
