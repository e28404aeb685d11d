"""What each product loses, as a bar chart in SVG: layers from top to bottom, coloured by format."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import escape

from ocria.calibration.allocation import Loss
from ocria.calibration.rounding import Format
from ocria.calibration.sites import DECODER

# Readable for the colour-blind, and apart in grey.
_COLOURS: dict[Format, str] = {"nvfp4": "#4477aa", "fp8": "#ee9955", "bf16": "#999999"}
_ROW_PX, _LABEL_PX, _BAR_PX, _VALUE_PX, _TOP_PX = 14, 190, 360, 80, 44
_LAYERS = f"{DECODER}.layers."


def write_plot(path: Path, losses: Sequence[Loss], plan: Mapping[str, Format]) -> None:
    """Writes the chart; at least one loss."""
    width = _LABEL_PX + _BAR_PX + _VALUE_PX
    height = _TOP_PX + len(losses) * _ROW_PX + 8
    body = "\n".join([*_head(losses, plan), *_bars(losses, plan)])
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" '
        f'viewBox="0 0 {width} {height}" font-family="sans-serif" font-size="10" fill="#222">\n'
        f'<rect width="{width}" height="{height}" fill="#fff"/>\n{body}\n</svg>\n',
        encoding="utf-8",
    )


def _head(losses: Sequence[Loss], plan: Mapping[str, Format]) -> Iterator[str]:
    unit = "noise share" if any(loss.agreement is None for loss in losses) else "KL, nats"
    title = f"What each product loses alone in NVFP4 ({unit})"
    yield f'<text x="8" y="16" font-size="12">{title}</text>'
    left = 8
    for format, colour in _COLOURS.items():
        if format in {plan[loss.site] for loss in losses}:
            yield f'<rect x="{left}" y="25" width="10" height="10" fill="{colour}"/>'
            yield f'<text x="{left + 14}" y="34">stored in {format}</text>'
            left += 110


def _bars(losses: Sequence[Loss], plan: Mapping[str, Format]) -> Iterator[str]:
    largest = max(loss.kl for loss in losses) or 1.0
    for row, loss in enumerate(losses):
        top, width = _TOP_PX + row * _ROW_PX, _BAR_PX * loss.kl / largest
        name = escape(loss.site.removeprefix(_LAYERS))
        base, colour = top + _ROW_PX - 4, _COLOURS[plan[loss.site]]
        yield f'<text x="{_LABEL_PX - 6}" y="{base}" text-anchor="end">{name}</text>'
        yield (
            f'<rect x="{_LABEL_PX}" y="{top + 1}" width="{width:.1f}" height="{_ROW_PX - 3}" '
            f'fill="{colour}"/>'
        )
        yield f'<text x="{_LABEL_PX + width + 4:.1f}" y="{base}">{loss.kl:.2g}</text>'
