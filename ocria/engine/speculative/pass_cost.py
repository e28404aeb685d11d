"""What a target pass costs by its rows, as data: in passes of one row."""

from bisect import bisect_left
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class PassCost:
    """Measured points (rows, cost), joined by straight lines.

    Attributes:
        points: ascending in rows; the first is (1, 1.0). Rows past the last point go on with the
            slope of the last two.
    """

    points: tuple[tuple[int, float], ...]

    def __post_init__(self) -> None:
        rows = [row for row, _ in self.points]
        assert len(rows) > 1 and rows == sorted(set(rows)), "points must ascend in rows"
        assert self.points[0] == (1, 1.0), "costs are counted in passes of one row"

    def of(self, num_rows: int) -> float:
        """Cost of a pass of `num_rows` rows."""
        right = min(max(1, bisect_left(self.points, (num_rows, 0.0))), len(self.points) - 1)
        (low_rows, low), (high_rows, high) = self.points[right - 1 : right + 1]
        return low + (high - low) * (num_rows - low_rows) / (high_rows - low_rows)
