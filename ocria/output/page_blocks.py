"""From a page's decoded text to its blocks, whichever way the model writes."""

from ocria.document import Rotation
from ocria.output.blocks import Reading, numbered
from ocria.output.decoded import DecodedText, PageBlocks, PageGeometry
from ocria.output.doctags import read_doctags
from ocria.output.frame import quarter_turns, upright_size
from ocria.output.html_markup import read_html
from ocria.output.json_layout import read_json_layout
from ocria.output.markdown_blocks import read_markdown
from ocria.output.markdown_page import read_markdown_page
from ocria.output.markup_blocks import read_markup
from ocria.output.markup_style import MarkupStyle
from ocria.output.markup_tokens import holds_markup

_NATIVE = MarkupStyle()


def build_page_blocks(
    decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle = _NATIVE
) -> PageBlocks:
    """Blocks in reading order. Damaged text is mended and flagged; nothing raises.

    Natively, markup is read where special tokens of it occur; otherwise the text is plain
    Markdown, and blocks have no boxes.
    """
    blocks, repaired, turn = _read(decoded, geometry, style)
    width_pt, height_pt = upright_size(geometry, turn)
    return PageBlocks(
        blocks=numbered(blocks, geometry.number),
        repaired=repaired,
        rotation=quarter_turns(geometry.rotation + turn),
        turn=turn,
        width_pt=width_pt,
        height_pt=height_pt,
    )


def _read(
    decoded: DecodedText, geometry: PageGeometry, style: MarkupStyle
) -> tuple[list[Reading], bool, Rotation]:
    match style.name:
        case "markdown":
            return *read_markdown_page(decoded), 0
        case "html":
            return *read_html(decoded, geometry, style), 0
        case "doctags":
            return *read_doctags(decoded, geometry, style), 0
        case "json":
            return *read_json_layout(decoded, geometry, style), 0
    if holds_markup(decoded):
        reading = read_markup(decoded, geometry)
        return reading.readings, reading.repaired, reading.turn
    return *read_markdown(decoded), 0
