"""A page image as something an HTML file can hold, with the boxes of its blocks over it."""

import base64
import io

import numpy as np
from PIL import Image

from ocria.document import Block, Page
from ocria.output.html_blocks import escaped

MAX_SIDE_PX = 2000
JPEG_QUALITY = 80


def picture_html(page: Page, image: np.ndarray) -> str:
    """The upright page, RGB uint8 [H, W, 3], with a link over each block that has a box."""
    picture = Image.fromarray(image)
    picture.thumbnail((MAX_SIDE_PX, MAX_SIDE_PX))
    return (
        f'<div class="picture"><img alt="Image of page {page.number}" '
        f'width="{picture.width}" height="{picture.height}" src="{_data_uri(picture)}">'
        f"{_boxes_svg(page)}</div>"
    )


def _data_uri(picture: Image.Image) -> str:
    buffer = io.BytesIO()
    picture.save(buffer, "JPEG", quality=JPEG_QUALITY)
    return "data:image/jpeg;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")


def _boxes_svg(page: Page) -> str:
    links = "".join(_box_link(block) for block in page.blocks)
    if not links or page.width_pt <= 0 or page.height_pt <= 0:
        return ""
    view = f"0 0 {page.width_pt:.2f} {page.height_pt:.2f}"
    return f'<svg viewBox="{view}" preserveAspectRatio="none">{links}</svg>'


def _box_link(block: Block) -> str:
    if block.bbox is None:
        return ""
    x0, y0, x1, y1 = block.bbox
    place = f'x="{x0:.2f}" y="{y0:.2f}" width="{x1 - x0:.2f}" height="{y1 - y0:.2f}"'
    name = escaped(block.type.replace("_", " "))
    return f'<a href="#{escaped(block.id)}"><title>{name}</title><rect {place}/></a>'
