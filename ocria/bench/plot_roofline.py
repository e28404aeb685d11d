"""The roofline: what copy and product rates allow, and where steps and stages lie below it."""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from ocria.bench import svg
from ocria.bench.report import BenchReport

ROOFLINE_HEIGHT = 420.0
_LEFT, _RIGHT, _TOP, _BOTTOM = 86.0, 30.0, 30.0, 58.0
_COPY_LABEL_PX = 100.0


class Point(NamedTuple):
    """One thing that was measured.

    Attributes:
        intensity: operations for each byte that must be moved.
        rate: operations a second.
    """

    name: str
    intensity: float
    rate: float
    colour: str


class _Scale(NamedTuple):
    """A logarithmic axis of whole decades onto pixels."""

    low: int
    high: int
    start_px: float
    end_px: float

    def at(self, value: float) -> float:
        part = (math.log10(value) - self.low) / (self.high - self.low)
        return self.start_px + part * (self.end_px - self.start_px)

    def decades(self) -> Iterator[float]:
        return (10.0**power for power in range(self.low, self.high + 1))


def roofline_points(report: BenchReport, colours: Mapping[str, str]) -> list[Point]:
    """A point for each rung with a speed: work and bytes counted, the median step measured."""
    points = []
    for rung in report.rungs:
        if rung.step_ms is None or rung.step_bytes is None or rung.step_flops is None:
            continue
        intensity = rung.step_flops / rung.step_bytes.total
        rate = rung.step_flops / (rung.step_ms.p50 / 1e3)
        points.append(Point(rung.name, intensity, rate, colours[rung.name]))
    return points


def roofline_parts(
    report: BenchReport, colours: Mapping[str, str], top: float, width: float
) -> list[str]:
    """The chart from `top` down."""
    copy = report.ceilings.copy_bytes_per_s.p50
    peak = report.ceilings.product_flops_per_s.p50
    points = roofline_points(report, colours)
    x = _axis([peak / copy, *(p.intensity for p in points)], _LEFT, width - _RIGHT)
    bottom = top + ROOFLINE_HEIGHT - _BOTTOM
    y = _axis([peak, *(p.rate for p in points)], bottom, top + _TOP)
    title = "Roofline of a decoding step: operations counted, ceilings measured in this run"
    return [
        svg.label(24, top + 12, title, bold=True),
        *_grid(x, y),
        *_roof(x, y, copy, peak),
        *_dots(points, x, y),
        svg.label((_LEFT + width - _RIGHT) / 2, bottom + 40, "operations a byte", anchor="middle"),
        svg.label(24, (top + _TOP + bottom) / 2, "operations/s", anchor="middle", turn=-90),
    ]


def _axis(values: list[float], start_px: float, end_px: float) -> _Scale:
    logs = [math.log10(value) for value in values]
    low, high = math.floor(min(logs)), math.ceil(max(logs))
    return _Scale(low, max(high, low + 1), start_px, end_px)


def _grid(x: _Scale, y: _Scale) -> Iterator[str]:
    for value in x.decades():
        yield svg.line(x.at(value), y.start_px, x.at(value), y.end_px, svg.FAINT)
        yield svg.label(x.at(value), y.start_px + 18, f"{value:g}", size=11, anchor="middle")
    for value in y.decades():
        yield svg.line(x.start_px, y.at(value), x.end_px, y.at(value), svg.FAINT)
        yield svg.label(x.start_px - 8, y.at(value) + 4, _unit(value), size=11, anchor="end")


def _roof(x: _Scale, y: _Scale, copy: float, peak: float) -> list[str]:
    ridge = peak / copy
    # The slope begins where it enters the chart, at its left or its lower edge.
    start = max(10.0**x.low, 10.0**y.low / copy)
    flat_px, ridge_px = y.at(peak), x.at(ridge)
    # Above the slope, which rises meanwhile.
    steepness = (y.at(start * copy) - flat_px) / max(1.0, ridge_px - x.at(start))
    text_x, text_y = x.at(start) + 8, y.at(start * copy) - 10 - steepness * _COPY_LABEL_PX
    return [
        svg.line(x.at(start), y.at(start * copy), ridge_px, flat_px, svg.INK),
        svg.line(ridge_px, flat_px, x.end_px, flat_px, svg.INK),
        svg.label(x.end_px, flat_px - 6, f"product {_unit(peak)}OP/s", size=11, anchor="end"),
        svg.label(text_x, text_y, f"copy {copy / 1e9:,.1f} GB/s", size=11),
    ]


def _dots(points: list[Point], x: _Scale, y: _Scale) -> Iterator[str]:
    taken: list[tuple[float, float]] = []
    for point in points:
        dot_x, dot_y = x.at(point.intensity), y.at(point.rate)
        text_y = _free_row(dot_x, dot_y + 4, taken)
        taken.append((dot_x, text_y))
        yield svg.dot(dot_x, dot_y, point.colour)
        yield svg.label(dot_x + 9, text_y, point.name, size=11, colour=point.colour)


def _free_row(x_px: float, y_px: float, taken: list[tuple[float, float]]) -> float:
    """The next row down where a label does not stand on another one."""
    near = [other_y for other_x, other_y in taken if abs(x_px - other_x) <= 90]
    while any(abs(y_px - other_y) < 12 for other_y in near):
        y_px += 12
    return y_px


def _unit(value: float) -> str:
    """Such as `10 G`."""
    for size, name in ((1e15, "P"), (1e12, "T"), (1e9, "G"), (1e6, "M")):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g}"
