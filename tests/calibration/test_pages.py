"""Self-made pages: the same every time, different from each other, with ink inside the sheet."""

import numpy as np

from ocria.calibration.pages import draw_pages
from ocria.vision import measure_ink


def test_same_seed_same_pages() -> None:
    first, again, other = draw_pages(3), draw_pages(3), draw_pages(3, seed=1)
    for one, two, three in zip(first, again, other, strict=True):
        assert one.rgb.dtype == np.uint8 and one.rgb.shape[2] == 3
        assert np.array_equal(one.rgb, two.rgb) and one.markdown == two.markdown
        assert not np.array_equal(one.rgb, three.rgb)


def test_pages_have_ink_and_margins() -> None:
    for page in draw_pages(6):
        assert not measure_ink(page.rgb).is_blank
        assert page.rgb[:, -6:].min() > 150, "text runs out of the sheet"


def test_the_text_is_what_fitted_on_the_sheet() -> None:
    sizes = {page.rgb.shape: len(page.markdown) for page in draw_pages(6)}
    assert sizes[512, 640, 3] < sizes[896, 640, 3] < sizes[1024, 768, 3]
    for page in draw_pages(6):
        assert page.markdown.startswith("# ") and page.markdown.endswith("\n")
        for table in (block for block in page.markdown.split("\n\n") if block.startswith("|")):
            assert len({line.count("|") for line in table.splitlines()}) == 1
