"""Typed results of a run: what a rung measured, and the quantiles that are printed of it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

Status = Literal["ok", "differs", "unavailable"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Quantiles:
    """A median and its spread; `n` values."""

    p20: float
    p50: float
    p80: float
    n: int

    @classmethod
    def of(cls, values: Sequence[float]) -> "Quantiles":
        """Quantiles of at least one value."""
        p20, p50, p80 = np.percentile(np.asarray(values, np.float64), (20, 50, 80)).tolist()
        return cls(p20=p20, p50=p50, p80=p80, n=len(values))


@dataclass(frozen=True, kw_only=True, slots=True)
class PageOutput:
    """What a rung wrote for a page, and how it ended (`eos`, `length`, `loop`)."""

    token_ids: tuple[int, ...]
    finish: str


@dataclass(frozen=True, kw_only=True, slots=True)
class RungRun:
    """One pass of a rung over the page set.

    Attributes:
        outputs: one a page.
        num_tokens: tokens that decoding steps emitted; the prefill's first is not among them.
        num_steps: passes of the target over all its weights.
        num_windows: sequences in these passes, one each without batching.
        num_rows: token rows in these passes.
        decode_s: seconds in these passes, drafting and host work included.
        step_s: seconds of each one that had no other work in it.
        prefill_s: seconds in the prefill.
    """

    outputs: tuple[PageOutput, ...]
    num_tokens: int
    num_steps: int
    num_windows: int
    num_rows: int
    decode_s: float
    step_s: tuple[float, ...]
    prefill_s: float

    @property
    def tokens_per_s(self) -> float:
        """Tokens that decoding emitted a second of decoding."""
        return self.num_tokens / self.decode_s if self.decode_s else 0.0


@dataclass(frozen=True, kw_only=True, slots=True)
class LaunchCounts:
    """What the host asked of the device in one step, as the profiler saw it.

    Attributes:
        launches: kernels, graphs, copies and fills.
        synchronisations: waits of the host for the device.
    """

    launches: float
    synchronisations: float


@dataclass(frozen=True, kw_only=True, slots=True)
class StepBytes:
    """Bytes that a decoding step must read at least: counted, not measured.

    Attributes:
        weights: of the decoder's products, norms and head, as this rung stores them.
        state: keys, values and recurrent states at the mean length of a sequence.
    """

    weights: int
    state: int

    @property
    def total(self) -> int:
        return self.weights + self.state


@dataclass(frozen=True, kw_only=True, slots=True)
class RungFigures:
    """One rung of the ladder. A rung that is not `ok` has a note and no speed.

    Attributes:
        note: why it is not there, where it differs, or how its equality was judged.
        tokens_per_s: over rounds.
        step_ms: over all steps of all rounds.
        tokens_per_step: tokens that a pass emits in the mean.
        rows_per_step: rows that a pass computes in the mean.
        step_bytes: what a step reads at least; `step_flops`, what it computes at least.
        copy_share: bytes a step over the median step, as a share of the measured copy bandwidth.
        speedup: median tokens/s over those of the first rung.
        launches: None where no profiler counts them.
    """

    name: str
    status: Status
    note: str = ""
    tokens_per_s: Quantiles | None = None
    step_ms: Quantiles | None = None
    tokens_per_step: float | None = None
    rows_per_step: float | None = None
    step_bytes: StepBytes | None = None
    step_flops: float | None = None
    copy_share: float | None = None
    speedup: float | None = None
    launches: LaunchCounts | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class StageFigures:
    """Seconds a page of one stage, over pages and rounds; its arithmetic where it is counted.

    Attributes:
        flops: operations of a page in the mean, multiplications and additions apart.
        peak_share: their rate as a share of the measured rate of a large product.
    """

    name: str
    seconds: Quantiles
    flops: float | None = None
    peak_share: float | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Ceilings:
    """What this machine did in this run.

    Attributes:
        copy_bytes_per_s: of a large copy, bytes read and bytes written together.
        product_flops_per_s: of a large matrix product in the model's dtype.
        cache_bytes: last-level cache, 0 if unknown; weights that fit in it need no memory traffic.
    """

    copy_bytes_per_s: Quantiles
    product_flops_per_s: Quantiles
    cache_bytes: int = 0


@dataclass(frozen=True, kw_only=True, slots=True)
class Machine:
    """Where and with what a run was made.

    Attributes:
        commit: of the checkout, with `-dirty` when files were changed; None outside one.
        load: processes ready to run over the last minute when the run began.
    """

    device: str
    dtype: str
    num_threads: int
    versions: dict[str, str] = field(default_factory=dict)
    commit: str | None = None
    load: float | None = None
