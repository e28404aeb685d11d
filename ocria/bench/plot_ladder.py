"""Tokens a second of every rung, with the spread; rungs without a speed say why."""

from collections.abc import Mapping

from ocria.bench import svg
from ocria.bench.figures import RungFigures
from ocria.bench.report import BenchReport

_ROW, _BAR, _LEFT = 30.0, 18.0, 124.0
_RIGHT = 190.0
_NOTE_CHARS = 112


def ladder_height(report: BenchReport) -> float:
    """Height of the ladder in pixels."""
    return 28 + _ROW * len(report.rungs)


def ladder_parts(
    report: BenchReport, colours: Mapping[str, str], top: float, width: float
) -> list[str]:
    """Bars from `top` down; the fastest takes the whole width."""
    speeds = [rung.tokens_per_s.p80 for rung in report.rungs if rung.tokens_per_s]
    scale = (width - _LEFT - _RIGHT) / max(speeds, default=1.0)
    parts = [svg.label(24, top + 12, "Decoding, tokens/s (median, p20 to p80)", bold=True)]
    for index, rung in enumerate(report.rungs):
        y = top + 24 + _ROW * index
        parts.append(
            svg.label(_LEFT - 10, y + _BAR - 4, rung.name, anchor="end", bold=rung.status == "ok")
        )
        parts += _bar(rung, colours[rung.name], y, scale)
    return parts


def _bar(rung: RungFigures, colour: str, y: float, scale: float) -> list[str]:
    if rung.tokens_per_s is None:
        note = rung.note if len(rung.note) <= _NOTE_CHARS else rung.note[: _NOTE_CHARS - 1] + "…"
        ink = "#b8444f" if rung.status == "differs" else svg.SOFT
        return [svg.label(_LEFT, y + _BAR - 4, note, size=11, colour=ink)]
    speed = rung.tokens_per_s
    low, middle, high = (_LEFT + value * scale for value in (speed.p20, speed.p50, speed.p80))
    centre = y + _BAR / 2
    text = f"{speed.p50:,.1f}" if speed.p50 < 1000 else f"{speed.p50:,.0f}"
    return [
        svg.rect(_LEFT, y, middle - _LEFT, _BAR, colour),
        svg.line(low, centre, high, centre, svg.INK),
        svg.line(low, centre - 4, low, centre + 4, svg.INK),
        svg.line(high, centre - 4, high, centre + 4, svg.INK),
        svg.label(
            max(high, middle) + 8, y + _BAR - 4, f"{text} {_factor(rung)}", size=12, colour=svg.INK
        ),
    ]


def _factor(rung: RungFigures) -> str:
    parts = [] if rung.speedup is None else [f"{rung.speedup:.2f}x"]
    if rung.tokens_per_step is not None:
        parts.append(f"{rung.tokens_per_step:.2f} a step")
    return f"({', '.join(parts)})"
