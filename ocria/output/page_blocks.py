"""From a page's decoded text to its blocks, whichever way the model writes."""

from ocria.output.blocks import numbered
from ocria.output.decoded import DecodedText, PageBlocks, PageGeometry
from ocria.output.frame import quarter_turns, upright_size
from ocria.output.markdown_blocks import read_markdown
from ocria.output.markup_blocks import read_markup
from ocria.output.markup_tokens import holds_markup


def build_page_blocks(decoded: DecodedText, geometry: PageGeometry) -> PageBlocks:
    """Blocks in reading order. Damaged text is mended and flagged; nothing raises.

    Markup is read where special tokens of it occur; otherwise the text is plain Markdown, and
    blocks have no boxes.
    """
    if holds_markup(decoded):
        reading = read_markup(decoded, geometry)
        blocks, repaired, turn = reading.readings, reading.repaired, reading.turn
    else:
        blocks, repaired = read_markdown(decoded)
        turn = 0
    width_pt, height_pt = upright_size(geometry, turn)
    return PageBlocks(
        blocks=numbered(blocks, geometry.number),
        repaired=repaired,
        rotation=quarter_turns(geometry.rotation + turn),
        turn=turn,
        width_pt=width_pt,
        height_pt=height_pt,
    )
