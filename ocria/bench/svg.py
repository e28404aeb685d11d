"""The few shapes that the pictures are made of, as text that stands in any SVG."""

from collections.abc import Sequence
from html import escape

INK, SOFT, FAINT, PAPER = "#1b1f24", "#5b6570", "#d5dae0", "#ffffff"
FONT = "font-family='Helvetica, Arial, sans-serif'"


def page(width: float, height: float, parts: Sequence[str]) -> str:
    """A whole picture on white paper; needs no font, script or file beside it."""
    head = (
        f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {width:g} {height:g}' "
        f"width='{width:g}' height='{height:g}' {FONT}>"
    )
    paper = rect(0, 0, width, height, PAPER)
    return "\n".join([head, paper, *parts, "</svg>"]) + "\n"


def rect(x: float, y: float, width: float, height: float, fill: str) -> str:
    """A filled box; no part of it has a negative size."""
    size = f"width='{max(0.0, width):.1f}' height='{max(0.0, height):.1f}'"
    return f"<rect x='{x:.1f}' y='{y:.1f}' {size} fill='{fill}'/>"


def line(x0: float, y0: float, x1: float, y1: float, colour: str, *, dashed: bool = False) -> str:
    """A thin line."""
    dashes = " stroke-dasharray='4 3'" if dashed else ""
    ends = f"x1='{x0:.1f}' y1='{y0:.1f}' x2='{x1:.1f}' y2='{y1:.1f}'"
    return f"<line {ends} stroke='{colour}' stroke-width='1.2'{dashes}/>"


def dot(x: float, y: float, fill: str) -> str:
    """A point of a chart."""
    return f"<circle cx='{x:.1f}' cy='{y:.1f}' r='4.5' fill='{fill}'/>"


def label(
    x: float,
    y: float,
    text: str,
    *,
    size: float = 12,
    colour: str = INK,
    anchor: str = "start",
    bold: bool = False,
    turn: float = 0,
) -> str:
    """Text on its baseline; `turn` rotates it clockwise, in degrees."""
    weight = " font-weight='bold'" if bold else ""
    turned = f" transform='rotate({turn:g} {x:.1f} {y:.1f})'" if turn else ""
    place = f"x='{x:.1f}' y='{y:.1f}' font-size='{size:g}' text-anchor='{anchor}'"
    return f"<text {place} fill='{colour}'{weight}{turned}>{escape(text, quote=True)}</text>"
