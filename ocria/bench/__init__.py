"""Speed on this machine, rung by rung, each held against the first in what it writes."""

# First of all, before torch: it tells threads how long to spin, as in `ocria parse`.
import ocria.pipeline.page_reader  # noqa: F401
from ocria.bench.options import SHAPES, BenchOptions, ShapeName
from ocria.bench.report import BenchReport
from ocria.bench.run import bench

__all__ = ["SHAPES", "BenchOptions", "BenchReport", "ShapeName", "bench"]
