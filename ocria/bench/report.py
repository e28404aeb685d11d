"""What a benchmark found, and its JSON line."""

import json
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from typing import Any

from ocria.bench.figures import Ceilings, Machine, RungFigures, StageFigures
from ocria.errors import ExitCode

SCHEMA = "ocria.bench/1"
_DIGITS = 5


@dataclass(frozen=True, kw_only=True, slots=True)
class BenchReport:
    """A finished run.

    Attributes:
        model: name of the checkpoint, or the shape of random weights.
        digest: of the checkpoint; None for random weights.
        accepted: tokens a pass was given to emit; None where acceptance was measured.
        pages: names of the pages that were read.
        skipped: name and reason of pages that were not.
        max_tokens: limit for each page.
        num_rounds: how often the ladder was run.
        rungs: in the order of the ladder; the first is the reference.
    """

    model: str
    digest: str | None
    accepted: int | None
    machine: Machine
    ceilings: Ceilings
    pages: tuple[str, ...]
    skipped: tuple[tuple[str, str], ...]
    max_tokens: int
    num_rounds: int
    mean_length: float
    stages: tuple[StageFigures, ...]
    rungs: tuple[RungFigures, ...]

    @property
    def differing(self) -> tuple[RungFigures, ...]:
        """Rungs that wrote something else than they had to."""
        return tuple(rung for rung in self.rungs if rung.status == "differs")

    @property
    def exit_code(self) -> ExitCode:
        """`PARTIAL` when a rung differs."""
        return ExitCode.PARTIAL if self.differing else ExitCode.OK

    def as_json_line(self) -> str:
        """One JSON object without a line break."""
        content: dict[str, Any] = {
            "schema": SCHEMA,
            "date": datetime.now(UTC).date().isoformat(),
            **asdict(self),
        }
        return json.dumps(_rounded(content), ensure_ascii=False)


def _rounded(value: Any) -> Any:
    """Numbers to five significant digits: more would be noise."""
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}")
    if isinstance(value, dict):
        return {key: _rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_rounded(item) for item in value]
    return value
