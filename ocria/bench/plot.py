"""Draws a report: the ladder of rungs, and the roofline that bounds them."""

from ocria.bench import svg
from ocria.bench.plot_ladder import ladder_height, ladder_parts
from ocria.bench.plot_roofline import ROOFLINE_HEIGHT, roofline_parts
from ocria.bench.report import BenchReport

WIDTH = 900.0
COLOURS = ("#2f6fb0", "#d1782a", "#3c9258", "#8a5fb8", "#b8444f", "#4a9aa8", "#86714a", "#6b7480")
"""One a rung, in the order of the ladder; further rungs begin again."""


def draw(report: BenchReport) -> str:
    """The picture as self-contained SVG text."""
    colours = {r.name: COLOURS[i % len(COLOURS)] for i, r in enumerate(report.rungs)}
    top = 64.0
    middle = top + ladder_height(report) + 28
    machine = report.machine
    parts = [
        svg.label(24, 30, f"{report.model} on {machine.device}", size=17, bold=True),
        svg.label(24, 50, _subtitle(report), size=12, colour=svg.SOFT),
        *ladder_parts(report, colours, top, WIDTH),
        *roofline_parts(report, colours, middle, WIDTH),
    ]
    return svg.page(WIDTH, middle + ROOFLINE_HEIGHT, parts)


def _subtitle(report: BenchReport) -> str:
    stated = "" if report.accepted is None else f", {report.accepted} tokens a pass stated"
    return (
        f"{report.machine.dtype}, {len(report.pages)} pages, at most {report.max_tokens} tokens "
        f"each, {report.num_rounds} rounds{stated}; commit {report.machine.commit or 'unknown'}"
    )
