"""The graph runner: a pass as one launch from the host, where the target allows it.

A pass of a size is run plainly, captured, and replayed from then on. Sizes are rounded up, so that
a few graphs serve all windows; a row does not notice: its arithmetic depends on neither. What the
host needs of a verify pass is copied to it behind the pass, and one wait serves a step. Prompts are
read side by side, a chunk of each in a pass.
"""

from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from ocria.models.base import (
    ROW_TILE,
    Best,
    Chunk,
    ImagePatches,
    Output,
    SequenceState,
    Target,
    Window,
)

T = TypeVar("T")


class StaticPass(Protocol):
    """A pass of a fixed size whose inputs lie on the device."""

    def load(self, windows: Sequence[Window]) -> None:
        """Puts windows in place."""
        ...

    def run(self) -> Output:
        """Runs the pass: the same launches on the same memory each time."""
        ...


class StaticPrefill(Protocol):
    """A pass over a chunk each of a fixed number of prompts."""

    def load(self, chunks: Sequence[Chunk]) -> None:
        """Puts chunks in place. Before the first of them a run changes nothing."""
        ...

    def run(self) -> Output:
        """Reads them: logits after each one's last row, taps of all rows."""
        ...


class StaticVision(Protocol):
    """The vision tower over pages of one grid."""

    def load(self, image: ImagePatches) -> None:
        """Puts a page in place."""
        ...

    def run(self) -> Tensor:
        """Its image tokens [N, D]."""
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

    def static_prefill(self, state: SequenceState, num_sequences: int) -> StaticPrefill | None:
        """The same for a chunk each of so many prompts in the pool of `state`, none loaded."""
        ...

    def static_vision(self, image: ImagePatches) -> StaticVision | None:
        """The same of the vision tower, for pages of this one's grid."""
        ...


class Landing:
    """Host memory for what a launch gives: several copies, and one wait for all of them."""

    def __init__(self) -> None:
        self._host: list[Tensor] = []
        self._seen: list[np.ndarray[Any, Any]] = []
        self._landed: torch.cuda.Event | None = None

    def fill(self, *results: Tensor) -> None:
        """Copies results, of the same shapes each time, on their device's stream."""
        if not self._host:
            pinned = results[0].is_cuda
            self._host = [torch.empty(r.shape, dtype=r.dtype, pin_memory=pinned) for r in results]
            self._seen = [host.numpy() for host in self._host]
            self._landed = torch.cuda.Event() if pinned else None
        for host, result in zip(self._host, results, strict=True):
            host.copy_(result, non_blocking=True)
        if self._landed is not None:
            self._landed.record()

    def seen(self) -> list[np.ndarray[Any, Any]]:
        """What was copied last; waits for it. The next copy writes over it."""
        if self._landed is not None:
            self._landed.synchronize()
        return self._seen


class Captured(NamedTuple):
    """A pass and what replays it into its output; `landing` is for the output's `best`."""

    static: StaticPass
    output: Output
    replay: Callable[[], None]
    landing: Landing


class CapturedPrefill(NamedTuple):
    """A pass over chunks and what replays it into its output."""

    static: StaticPrefill
    output: Output
    replay: Callable[[], None]


class CapturedVision(NamedTuple):
    """A run of the vision tower and what replays it into its image tokens."""

    static: StaticVision
    image_ND: Tensor
    replay: Callable[[], None]


class HostBest(NamedTuple):
    """`Best` on the host."""

    token_ids: list[int]
    logprobs: list[float]


class Launched(NamedTuple):
    """A pass that the device runs while the host goes on; the next pass overwrites all it gives.

    Attributes:
        output: of more rows than the windows have, where the pass is padded.
        num_rows: of the windows.
        landing: where `best` comes to; None where it does not come by itself.
    """

    output: Output
    num_rows: int
    landing: Landing | None = None

    def best(self) -> HostBest | None:
        """What the target chose, once the pass is over; None if it gives logits alone."""
        if self.landing is not None:
            parts: Sequence[np.ndarray[Any, Any] | Tensor] = self.landing.seen()
        elif self.output.best is not None:
            parts = self.output.best
        else:
            return None
        token_ids, logprobs = (part[: self.num_rows].tolist() for part in parts)
        return HostBest(token_ids, logprobs)


_Key = tuple[int, int, bool, tuple[int, ...]]
"""Rows, sequences, whether with logits, tapped layers."""

_KEPT_GRIDS = 8
"""Page shapes whose runs of the vision tower are kept: some 100 MB each at full size."""

CHUNKS_AT_ONCE = 4
"""Prompts of which a captured pass reads a chunk: with 1,024 rows a GPU is busy."""


class GraphRunner:
    """Runs a target's verify passes, by graphs where it has static passes.

    Args:
        target: what is run.
        forbidden_ids: tokens that are never the best.
    """

    def __init__(self, target: Target, forbidden_ids: Sequence[int] = ()) -> None:
        self._target = target
        self._static_target = target if isinstance(target, StaticTarget) else None
        forbidden_V = torch.zeros(target.vocab_size, dtype=torch.uint8)
        forbidden_V[list(forbidden_ids)] = 1
        self._forbidden_V = forbidden_V.to(target.device)
        self._captured: dict[_Key, Captured | None] = {}
        self._prefills: dict[tuple[int, tuple[int, ...]], CapturedPrefill | None] = {}
        self._visions: OrderedDict[tuple[int, int], CapturedVision | None] = OrderedDict()
        self._layout: tuple[tuple[int, ...], ...] = ()

    def encode_image(self, image: ImagePatches) -> Tensor:
        """See `Target.encode_image`. A page shape is captured when it comes a second time."""
        grid = (image.grid_h, image.grid_w)
        is_known = grid in self._visions
        captured = self._visions.pop(grid, None)
        if captured is None and is_known and self._static_target is not None:
            static = self._static_target.static_vision(image)
            captured = None if static is None else capture_vision(static)
        self._visions[grid] = captured
        if len(self._visions) > _KEPT_GRIDS:
            self._visions.popitem(last=False)
        if captured is None:
            return self._target.encode_image(image)
        captured.static.load(image)
        captured.replay()
        return captured.image_ND.clone()

    @property
    def chunks_at_once(self) -> int:
        """How many prompts to read together: one where a pass of several saves nothing."""
        return CHUNKS_AT_ONCE if self._static_target is not None else 1

    def prefill(self, chunks: Sequence[Chunk]) -> list[Output]:
        """See `Target.prefill`; an output for each chunk. All is overwritten by the next call."""
        captured = self._prefill_for(chunks)
        if captured is None:
            return [self._target.prefill(*chunk) for chunk in chunks]
        captured.static.load(chunks)
        captured.replay()
        logits_BV, taps_TLD, _ = captured.output
        outputs, first = [], 0
        for place, chunk in enumerate(chunks):
            rows = slice(first, first + chunk.num_rows)
            logits_TV = logits_BV[place : place + 1] if chunk.is_last else logits_BV[:0]
            outputs.append(Output(logits_TV, None if taps_TLD is None else taps_TLD[rows]))
            first = rows.stop
        return outputs

    def verify(self, windows: Sequence[Window], *, with_logits: bool = True) -> Output:
        """See `Target.verify`; a captured pass gives `best`, and logits only `with_logits`.

        All is overwritten by the next pass.
        """
        (logits, taps, best), num_rows, _ = self.launch(windows, with_logits=with_logits)
        return Output(
            logits[:num_rows],
            None if taps is None else taps[:num_rows],
            None if best is None else Best(*(part[:num_rows] for part in best)),
        )

    def launch(self, windows: Sequence[Window], *, with_logits: bool = True) -> Launched:
        """The same, without waiting for what it gives."""
        num_rows = sum(len(window.token_ids) for window in windows)
        captured = self._pass_for(windows, num_rows, with_logits)
        if captured is None:
            with torch.inference_mode():
                return Launched(self._target.verify(windows), num_rows)
        captured.static.load(windows)
        captured.replay()
        output, landing = captured.output, None
        if output.best is not None:
            landing = captured.landing
            landing.fill(*output.best)
        return Launched(output, num_rows, landing)

    def _pass_for(
        self, windows: Sequence[Window], num_rows: int, with_logits: bool
    ) -> Captured | None:
        """The captured pass of these windows' size; None if the target has none."""
        if self._static_target is None:
            return None
        size = (rounded_rows(num_rows), 1 << (len(windows) - 1).bit_length())
        self._forget_other_pools(windows[0].state)
        key = (*size, with_logits, self._target.tap_layers)
        if key not in self._captured:
            with torch.inference_mode():
                static = self._static_target.static_pass(
                    windows, *size, forbidden_V=self._forbidden_V, with_logits=with_logits
                )
                self._captured[key] = None if static is None else capture(static)
        return self._captured[key]

    def _prefill_for(self, chunks: Sequence[Chunk]) -> CapturedPrefill | None:
        """The captured pass over so many chunks; None if the target has none."""
        if self._static_target is None:
            return None
        state = chunks[0].state
        self._forget_other_pools(state)
        key = (len(chunks), self._target.tap_layers)
        if key not in self._prefills:
            with torch.inference_mode():
                static = self._static_target.static_prefill(state, len(chunks))
                self._prefills[key] = None if static is None else capture_prefill(static)
        return self._prefills[key]

    def _forget_other_pools(self, state: SequenceState) -> None:
        """A resized pool has other strides, which captured launches hold."""
        layout = (state.keys_LJSD.stride(), state.checkpoint_LRKW.stride())
        if layout != self._layout:
            self._captured.clear()
            self._prefills.clear()
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
    return Captured(static, *record(static.run), Landing())


def capture_prefill(static: StaticPrefill) -> CapturedPrefill:
    """Runs the pass while it has no rows, which changes nothing, and captures it on CUDA."""
    return CapturedPrefill(static, *record(static.run))


def capture_vision(static: StaticVision) -> CapturedVision:
    """Runs the tower over the loaded page and captures that on CUDA."""
    return CapturedVision(static, *record(static.run))


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
